"""The crawl folder and its lock: one writer, none after a crash, and plain words."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.store.stored import make_folder

from bowerbird.model.errors import FolderError
from bowerbird.store.folder import CrawlFolder, WriterLock

HOLDER = """
import os, subprocess, sys, time
from pathlib import Path
from bowerbird.store.folder import CrawlFolder, WriterLock

lock = WriterLock(CrawlFolder(Path(sys.argv[1])))
child = ""
if sys.argv[2] == "with-child":
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], pass_fds=(lock.fd,)).pid
print("held", child, flush=True)
time.sleep(60)
"""


@pytest.fixture
def folder(tmp_path: Path) -> CrawlFolder:
    return make_folder(tmp_path / "crawl")


@pytest.fixture
def started() -> Iterator[list[int]]:
    """Processes to end when the test is over, however it went."""
    numbers: list[int] = []
    yield numbers
    for number in numbers:
        try:
            os.kill(number, signal.SIGKILL)
        except ProcessLookupError:
            pass


def hold(folder: CrawlFolder, started: list[int], how: str = "alone") -> tuple[subprocess.Popen[str], int | None]:
    """Another process that holds the lock, and a child that inherited it."""
    process = subprocess.Popen([sys.executable, "-c", HOLDER, folder.root, how], stdout=subprocess.PIPE, text=True)
    started.append(process.pid)
    assert process.stdout is not None
    word, *child = process.stdout.readline().split()
    process.stdout.close()
    assert word == "held"
    if child:
        started.append(int(child[0]))
    return process, int(child[0]) if child else None


def wait_until_free(folder: CrawlFolder) -> bool:
    give_up = time.monotonic() + 10
    while WriterLock.is_held(folder) and time.monotonic() < give_up:
        time.sleep(0.01)
    return not WriterLock.is_held(folder)


def test_a_second_writer_is_refused_with_the_first_one_s_number(folder: CrawlFolder, started: list[int]) -> None:
    process, _ = hold(folder, started)
    assert WriterLock.is_held(folder)
    with pytest.raises(FolderError, match=rf"another process \(pid {process.pid}\) is writing.*one writer"):
        WriterLock(folder, wait_s=0.1)
    process.kill()
    process.wait()
    assert wait_until_free(folder)
    WriterLock(folder, wait_s=0.0).release()


def test_a_child_that_inherited_the_lock_keeps_it(folder: CrawlFolder, started: list[int]) -> None:
    process, child = hold(folder, started, "with-child")
    assert child is not None
    process.kill()
    process.wait()
    assert WriterLock.is_held(folder)
    with pytest.raises(FolderError, match="another process"):
        WriterLock(folder, wait_s=0.1)
    os.kill(child, signal.SIGKILL)
    assert wait_until_free(folder)
    WriterLock(folder, wait_s=0.0).release()


def test_two_locks_in_one_process_exclude_each_other_and_release_is_final(folder: CrawlFolder) -> None:
    assert not WriterLock.is_held(folder)
    lock = WriterLock(folder)
    assert WriterLock.is_held(folder)
    assert folder.lock.read_text() == str(os.getpid())
    with pytest.raises(FolderError, match=str(os.getpid())):
        WriterLock(folder, wait_s=0.0)
    lock.release()
    lock.release()
    assert not WriterLock.is_held(folder)
    again = WriterLock(folder, wait_s=0.0)
    again.release()


def test_a_writer_waits_a_little_for_the_one_before_it(folder: CrawlFolder) -> None:
    lock = WriterLock(folder)
    timer = threading.Timer(0.2, lock.release)
    timer.start()
    WriterLock(folder, wait_s=5.0).release()
    timer.join()
    assert lock.fd == -1


def test_asking_who_writes_disturbs_nobody(folder: CrawlFolder) -> None:
    """Many ask at once while nobody writes: none of them takes another for a writer."""
    WriterLock(folder).release()
    answers: list[bool] = []

    def ask() -> None:
        answers.extend(WriterLock.is_held(folder) for _ in range(500))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [False] * 2000


def test_a_lock_that_cannot_say_whose_it_is_holds_all_the_same(
    folder: CrawlFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    lock = WriterLock(folder)
    with pytest.raises(FolderError, match="pid unknown"):
        WriterLock(folder, wait_s=0.0)
    lock.release()


def test_the_places_in_a_folder_are_all_within_it(folder: CrawlFolder) -> None:
    places = (folder.config, folder.database, folder.checkpoint, folder.archive, folder.index, folder.lock)
    assert len({place.name for place in places}) == len(places)
    assert all(place.parent == folder.root for place in places)
    folder.check()


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match=r"no such folder.*bowerbird init"):
        CrawlFolder(tmp_path / "missing").check()
    with pytest.raises(FolderError, match=r"not a crawl folder.*bowerbird init"):
        CrawlFolder(tmp_path).check()
    file = tmp_path / "file"
    file.write_text("x")
    with pytest.raises(FolderError, match="no such folder"):
        CrawlFolder(file).check()
    (tmp_path / "bowerbird.toml").write_text("")
    with pytest.raises(FolderError, match="not a crawl folder"):
        CrawlFolder(tmp_path).check()


def test_a_folder_that_may_not_be_written(folder: CrawlFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(FolderError, match=r"not writable \(Permission denied\)"):
        WriterLock(folder)
    assert not WriterLock.is_held(folder)


def test_a_folder_that_may_not_be_read(folder: CrawlFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(FolderError, match="not readable"):
        folder.check()
