"""The crawl's memory: what commits acknowledge, what readers see, what errors leave behind."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from tests.store.stored import AT, INTERVAL_S, Maker, add_and_fetch, fetch_of, image, make_folder, open_repository

from bowerbird.model.errors import ArchiveError, DiskFullError, FolderError, StoreError
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import UrlKind, UrlState
from bowerbird.store import postgres_schema, recovery, schema
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.records import Version
from bowerbird.store.repository import Repository
from bowerbird.store.url_table import anchor_mark


def version_of(row: int, **facts: object) -> Version:
    values: dict[str, object] = {
        "etag": '"1"',
        "last_modified": "",
        "sketch": b"\1\2",
        "fetched_at": AT,
        "media": "html",
    }
    values |= {"noindex": False, "duplicate_of": None, "file": 1, "offset": 10, "length": 20, **facts}
    return Version(row, **values)  # type: ignore[arg-type]  # fields of many types


# -- what is kept


def test_what_was_not_committed_is_gone(folder: CrawlFolder) -> None:
    repository = open_repository(folder)
    row = add_and_fetch(repository, "https://a.example/", ("https://a.example/1",))
    repository.record_version(version_of(row))
    repository.commit()
    expected = image(repository)
    add_and_fetch(repository, "https://b.example/", ("https://a.example/", "https://b.example/2"), AT + 5)
    repository.record_version(version_of(row, etag='"2"'))
    repository.record_hint(row, AT, AT)
    repository.record_robots(0, "ok", b"x")
    repository.note_archive_end(repository.archive_file("a.warc.gz"), 99)
    repository.note_inbox_done(1, ("https://b.example/",))
    repository.close()
    again = open_repository(folder)
    assert image(again) == expected
    assert again.version(row) == version_of(row)
    assert again.table.find_url("https://b.example/") is None
    assert again.archive_ends() == {}
    assert again.seeds() == ()
    assert again.robots(0) is None
    again.close()


def test_pending_things_can_be_read_before_and_after_the_commit(folder: CrawlFolder) -> None:
    repository = open_repository(folder)
    row = add_and_fetch(repository, "https://a.example/", ("https://a.example/1", "https://b.example/2"))
    repository.record_version(version_of(row))
    for _ in range(2):
        assert repository.url(2) == "https://b.example/2"
        assert repository.urls([2, 0, 2]) == ["https://b.example/2", "https://a.example/", "https://b.example/2"]
        assert repository.version(row) == version_of(row)
        links = repository.links(row)
        assert links is not None
        assert links.targets.tolist() == [1, 2]
        assert repository.version(1) is None
        assert repository.links(1) is None
        assert repository.pending in (0, 4)
        repository.commit()
    assert repository.pending == 0
    assert repository.anchors(2) == ["to https://b.example/2"]
    assert repository.anchors_of([0, 1]) == {0: [], 1: ["to https://a.example/1"]}
    repository.close()


def test_more_urls_than_one_question_can_hold(folder: CrawlFolder) -> None:
    repository = open_repository(folder)
    urls = [f"https://a.example/{number}" for number in range(1234)]
    repository.add_urls(urls[:1200], at=AT)
    repository.commit()
    repository.add_urls(urls, at=AT)
    assert repository.urls(range(1234)) == urls
    assert list(repository.anchors_of(range(1234)).values()) == [[]] * 1234
    repository.close()


def test_adding_urls_keeps_the_facts_of_the_first_time(folder: CrawlFolder) -> None:
    repository = open_repository(folder)
    rows, added = repository.add_urls(
        ["https://a.example/x", "https://b.example/y", "https://a.example/x"],
        at=AT,
        kind=[UrlKind.PAGE, UrlKind.FEED, UrlKind.SITEMAP],
        depth=[3, 4, 5],
        source=[7, 8, 9],
        hops=2,
    )
    assert rows.tolist() == [0, 1, 0]
    assert added.tolist() == [0, 1]
    again, none = repository.add_urls(["https://b.example/y"], at=AT + 99, depth=0)
    assert again.tolist() == [1]
    assert none.tolist() == []
    columns = repository.table.columns
    assert columns["kind"].tolist() == [UrlKind.PAGE, UrlKind.FEED]
    assert columns["depth"].tolist() == [3, 4]
    assert columns["hops"].tolist() == [2, 2]
    assert columns["first_seen"].tolist() == [int(AT)] * 2
    assert columns["interval_s"].tolist() == [INTERVAL_S] * 2
    repository.commit()
    stored = repository.connection.execute("SELECT url, kind, depth, hops, first_seen, source FROM urls").fetchall()
    assert stored == [("https://a.example/x", 0, 3, 2, AT, 7), ("https://b.example/y", 2, 4, 2, AT, 8)]
    assert repository.table.hosts.origins == ["https://a.example", "https://b.example"]
    repository.close()


def test_nothing_to_add(folder: CrawlFolder) -> None:
    repository = open_repository(folder)
    rows, added = repository.add_urls([], at=AT)
    assert len(rows) == len(added) == 0
    assert repository.commit() == 0
    repository.close()


def test_links_seen_again_count_once(folder: CrawlFolder) -> None:
    repository = open_repository(folder)
    row = add_and_fetch(repository, "https://a.example/", ("https://a.example/1", "https://a.example/2"))
    for turn in range(3):
        repository.record(fetch_of(row, AT + 60 * (turn + 1)))
        assert repository.record_links(row, np.array([1, row]), AT + 60 * (turn + 1)) == (1 if turn == 0 else 0)
        repository.commit()
    assert repository.table.columns["in_degree"].tolist() == [1, 1, 1]
    links = repository.links(row)
    assert links is not None
    assert sorted(links.current().tolist()) == [0, 1]
    repository.close()


def test_the_journal_holds_each_decision_and_its_sums(folder: CrawlFolder) -> None:
    repository = open_repository(folder)
    repository.add_urls(["https://a.example/"], at=AT)
    record = fetch_of(
        0,
        AT,
        outcome=Outcome.REDIRECT,
        state=UrlState.REDIRECT,
        status=301,
        elapsed_s=0.5,
        resemblance=0.25,
        target=0,
        error="none",
        file=3,
        offset=4,
        length=5,
        errors=2,
        not_before=AT + 30,
        changed=True,
    )
    repository.record(record)
    repository.record(fetch_of(0, AT + 1))
    repository.record(fetch_of(0, AT + 2))
    assert repository.commit() == 3
    stored = repository.connection.execute("SELECT * FROM fetches ORDER BY id").fetchall()
    assert stored[0] == (1, *record.row())
    assert [row[0] for row in stored] == [1, 2, 3]
    sums = repository.connection.execute("SELECT * FROM totals ORDER BY outcome").fetchall()
    assert sums == [(0, Outcome.OK, 2, 200), (0, Outcome.REDIRECT, 1, 100)]
    repository.close()


def test_hints_only_move_forward(folder: CrawlFolder) -> None:
    repository = open_repository(folder)
    repository.add_urls(["https://a.example/"], at=AT)
    seen = []
    for stamp in (100.9, 50.0, 200.0, -5.0):
        repository.record_hint(0, stamp, AT)
        seen.append(int(repository.table.columns["hint_modified"][0]))
    assert seen == [100, 100, 200, 200]
    repository.close()


def test_a_date_far_ahead_is_dropped(folder: CrawlFolder) -> None:
    repository = open_repository(folder)
    repository.add_urls(["https://a.example/"], at=AT)
    for at, stamp, kept in (
        (AT, AT + 86_401.0, 0),
        (AT, 1e12, 0),
        (AT, AT - 9.0, AT - 9),
        (AT, AT + 90_000.0, AT - 9),
        (AT + 3600.0, AT + 90_000.0, AT + 90_000),
    ):
        repository.record_hint(0, stamp, at)
        assert int(repository.table.columns["hint_modified"][0]) == int(kept)
    repository.close()


def test_a_date_that_lies_ahead_gives_way_and_that_is_found_again(folder: CrawlFolder) -> None:
    repository = open_repository(folder)
    repository.add_urls(["https://a.example/", "https://a.example/1"], at=AT)
    for row in (0, 1):
        repository.record_hint(row, AT + 5000.0, AT)
    repository.commit()
    repository.write_checkpoint()
    repository.record_hint(0, AT - 5.0, AT + 60.0)
    repository.record_hint(1, AT - 5.0, AT + 6000.0)  # it has come: the latest date stands
    repository.commit()
    assert repository.table.columns["hint_modified"][:2].tolist() == [int(AT - 5), int(AT + 5000)]
    expected = image(repository)
    repository.close()
    for checkpoint in (True, False):
        if not checkpoint:
            folder.checkpoint.unlink()
        again = open_repository(folder)
        assert image(again) == expected
        again.close()


def test_robots_of_a_host_come_back_with_their_time(folder: CrawlFolder) -> None:
    repository = open_repository(folder)
    repository.add_urls(["https://a.example/", "https://b.example/"], at=AT)
    repository.table.hosts.columns["robots_at"][1] = AT
    repository.record_robots(1, "ok", b"User-agent: *\nDisallow: /x")
    repository.commit()
    repository.close()
    again = open_repository(folder)
    assert again.robots(1) == (AT, "ok", b"User-agent: *\nDisallow: /x")
    assert again.robots(0) is None
    again.close()


def test_archive_files_keep_their_numbers(folder: CrawlFolder) -> None:
    repository = open_repository(folder)
    one, lost, two = (repository.archive_file(name) for name in ("one.warc.gz", "lost.warc.gz", "two.warc.gz"))
    assert repository.archive_file("one.warc.gz") == one
    repository.note_archive_end(one, 100)
    repository.note_archive_end(one, 70)
    repository.note_archive_end(two, 50)
    assert repository.pending_archive_files() == ["one.warc.gz", "two.warc.gz"]
    repository.commit()
    repository.close()
    again = open_repository(folder)  # `lost` never got a record: its number is gone, and nobody else's is given twice
    three = again.archive_file("three.warc.gz")
    assert three not in (one, two)
    again.note_archive_end(three, 30)
    again.commit()
    assert again.archive_ends() == {"one.warc.gz": 100, "two.warc.gz": 50, "three.warc.gz": 30}
    assert [again.archive_name(number) for number in (one, two, three)] == [
        "one.warc.gz",
        "two.warc.gz",
        "three.warc.gz",
    ]
    assert lost != one
    again.close()


def test_requests_leave_the_inbox_with_the_commit_that_applied_them(folder: CrawlFolder) -> None:
    repository = open_repository(folder)
    repository.post("add", ["https://a.example/", "https://b.example/"], AT)
    repository.note_inbox_done(1, ("https://a.example/",))
    assert repository.pending == 1
    repository.commit()
    waiting = repository.connection.execute("SELECT id, url FROM inbox").fetchall()
    assert waiting == [(2, "https://b.example/")]
    assert repository.seeds() == ("https://a.example/",)
    repository.close()


def test_values_of_the_folder_s_own(folder: CrawlFolder) -> None:
    repository = open_repository(folder)
    assert repository.meta("colour") is None
    repository.set_meta("colour", "blue")
    repository.commit(indexed_through=12)
    seed = repository.table.seed
    repository.close()
    again = open_repository(folder, write=False)
    assert (again.meta("colour"), str(again.meta("indexed_through")), again.table.seed) == ("blue", "12", seed)
    again.close()


def test_two_crawls_hash_differently(maker: Maker, tmp_path: Path) -> None:
    seeds = set()
    for name in "ab":
        repository = open_repository(maker(tmp_path / name))
        seeds.add(repository.table.seed)
        repository.close()
    assert len(seeds) == 2


def test_a_snapshot_shows_what_is_known(folder: CrawlFolder) -> None:
    repository = open_repository(folder)
    add_and_fetch(repository, "https://a.example/", ("https://a.example/1", "https://b.example/2"))
    snapshot = repository.snapshot(AT)
    assert snapshot.now == AT
    assert snapshot.pages.state.tolist() == [UrlState.FETCHED, UrlState.NEW, UrlState.NEW]
    assert snapshot.pages.in_degree.tolist() == [0, 1, 1]
    assert snapshot.hosts.known.tolist() == [2, 1]
    repository.close()


# -- who else is there


def test_a_moved_folder_is_the_same_crawl(folder: CrawlFolder, tmp_path: Path) -> None:
    repository = open_repository(folder)
    add_and_fetch(repository, "https://a.example/", ("https://a.example/1",))
    repository.commit()
    repository.write_checkpoint()
    expected = image(repository)
    repository.close()
    moved = CrawlFolder(tmp_path / "elsewhere" / "ü b%20er")
    moved.root.parent.mkdir()
    shutil.move(folder.root, moved.root)
    for write in (False, True):
        again = open_repository(moved, write=write)
        assert image(again) == expected
        assert again.replayed == 0
        again.close()
    assert not folder.root.exists()


def test_a_reader_names_what_was_committed_after_it_was_opened(folder: CrawlFolder) -> None:
    writer = open_repository(folder)
    add_and_fetch(writer, "https://a.example/")
    writer.commit()
    reader = open_repository(folder, write=False)
    late = add_and_fetch(writer, "https://a.example/late")
    writer.note_archive_end(writer.archive_file("late.warc.gz"), 10)
    assert writer.urls([late, 0, late]) == ["https://a.example/late", "https://a.example/", "https://a.example/late"]
    writer.commit()
    assert reader.urls([0, late, 0]) == ["https://a.example/", "https://a.example/late", "https://a.example/"]
    assert reader.archive_name(writer.archive_file("late.warc.gz")) == "late.warc.gz"
    with pytest.raises(ArchiveError, match="number 77"):
        reader.archive_name(77)
    reader.close()
    writer.close()


def test_a_load_that_fails_lets_go_of_the_database(folder: CrawlFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[Repository] = []
    monkeypatch.setattr(Repository, "close", lambda self: (closed.append(self), self.connection.close()))
    monkeypatch.setattr(recovery, "replay", lambda *given: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        open_repository(folder)
    assert len(closed) == 1


def test_readers_see_whole_commits_while_a_writer_works(folder: CrawlFolder) -> None:
    """Each commit adds one page with three links and an anchor each; no reader ever sees a part of one."""
    writer = open_repository(folder)
    done = threading.Event()
    seen: list[tuple[int, int, int, int]] = []
    problems: list[BaseException] = []

    def read() -> None:
        try:
            while not done.is_set() or not seen:
                reader = open_repository(folder, write=False)
                columns = reader.table.columns
                seen.append(
                    (
                        reader.last_fetch_id,
                        len(reader.table),
                        int(columns["in_degree"].sum()),
                        int(np.count_nonzero(columns["anchors"])),
                    )
                )
                reader.close()
        except BaseException as error:
            problems.append(error)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(60):
        links = tuple(f"https://a.example/{number}/{k}" for k in range(3))
        add_and_fetch(writer, f"https://a.example/{number}", links, AT + number)
        writer.commit()
        if number % 7 == 0:
            writer.write_checkpoint()
    done.set()
    for thread in threads:
        thread.join()
    writer.close()
    assert problems == []
    assert seen
    assert all((urls, links, anchors) == (4 * n, 3 * n, 3 * n) for n, urls, links, anchors in seen)


def test_a_reader_never_blocks_the_writer(folder: CrawlFolder) -> None:
    writer = open_repository(folder)
    reader = open_repository(folder, write=False)
    reader.connection.execute("BEGIN")
    assert reader.connection.execute("SELECT count(*) FROM urls").fetchone() == (0,)
    add_and_fetch(writer, "https://a.example/")
    assert writer.commit() == 1
    assert reader.connection.execute("SELECT count(*) FROM urls").fetchone() == (0,)  # its own moment
    reader.connection.execute("COMMIT")
    assert reader.connection.execute("SELECT count(*) FROM urls").fetchone() == (1,)
    reader.close()
    writer.close()


def test_a_newer_folder_is_refused(folder: CrawlFolder) -> None:
    if folder.store_url is None:
        connection = sqlite3.connect(folder.database)
        connection.execute(f"PRAGMA user_version = {schema.VERSION + 3}")
        connection.close()
    else:
        writer = open_repository(folder)
        writer.set_meta("format", postgres_schema.VERSION + 3)
        writer.close()
    for write in (True, False):
        with pytest.raises((FolderError, StoreError), match="Upgrade Bowerbird"):
            open_repository(folder, write=write)


# -- when something goes wrong


def test_a_commit_that_fails_can_be_repeated(folder: CrawlFolder) -> None:
    """Whatever goes wrong in the middle: nothing is half written, and nothing recorded is lost."""
    repository = open_repository(folder)
    add_and_fetch(repository, "https://a.example/", ("https://a.example/1",))
    bad = fetch_of(0, AT + 1, content_hash=5)
    repository.record(bad)
    bad.content_hash = 2**70  # more than the database takes
    with pytest.raises((OverflowError, StoreError)):
        repository.commit()
    assert repository.connection.execute("SELECT count(*) FROM urls").fetchone() == (0,)
    bad.content_hash = 5
    assert repository.commit() == 2
    expected = image(repository)
    repository.close()
    again = open_repository(folder)
    assert image(again) == expected
    again.close()


DISK_FULL = """
import resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.store.stored import AT, add_and_fetch, open_repository
from bowerbird.model.errors import DiskFullError
from bowerbird.store.folder import CrawlFolder

repository = open_repository(CrawlFolder(Path(sys.argv[1])))
resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, 1_500_000))
done = 0
try:
    for number in range(10_000):
        url = f"https://a.example/{number}/" + "x" * 500
        add_and_fetch(repository, url, tuple(f"{url}{k}" for k in range(20)), AT + number)
        done = repository.commit()
        print(done, flush=True)
except DiskFullError as error:
    print("full:", error, flush=True)
    sys.exit(error.exit_code)
"""


def test_on_a_full_disk_everything_acknowledged_is_safe(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    folder = make_folder(tmp_path / "crawl")
    ran = subprocess.run(
        [sys.executable, "-c", DISK_FULL, folder.root, pytestconfig.rootpath],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    *acknowledged, last = ran.stdout.splitlines()
    assert ran.returncode == DiskFullError.exit_code, ran.stderr
    assert last.startswith("full:")
    assert "Free some space" in last
    assert str(folder.database) in last
    assert len(acknowledged) > 3
    repository = open_repository(folder)
    assert repository.last_fetch_id == int(acknowledged[-1])
    assert len(repository.table) == 21 * repository.last_fetch_id
    assert repository.connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    add_and_fetch(repository, "https://a.example/more")  # there is room again
    assert repository.commit() == int(acknowledged[-1]) + 1
    repository.close()


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from tests.store.stored import AT, add_and_fetch, open_repository
from bowerbird.store.folder import CrawlFolder

repository = open_repository(CrawlFolder(Path(sys.argv[1])))
for number in range(25):
    add_and_fetch(repository, f"https://a.example/{number}", (f"https://a.example/{number}/1",), AT + number)
    print(repository.commit(), flush=True)
    if number == 10:
        repository.write_checkpoint()
add_and_fetch(repository, "https://a.example/never")
repository.connection.execute("BEGIN IMMEDIATE")
repository._unwritten.urls.write(repository.connection)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_killed_in_the_middle_of_a_commit(folder: CrawlFolder, pytestconfig: pytest.Config) -> None:
    ran = subprocess.run(
        [sys.executable, "-c", KILLED, folder.root, pytestconfig.rootpath],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == -9, ran.stderr
    repository = open_repository(folder)
    assert repository.last_fetch_id == int(ran.stdout.split()[-1]) == 25
    assert repository.replayed == 14
    assert len(repository.table) == 50
    assert repository.table.find_url("https://a.example/never") is None
    repository.close()


def test_anchors_are_told_apart_by_their_marks(folder: CrawlFolder) -> None:
    repository = open_repository(folder)
    rows, _ = repository.add_urls(["https://a.example/"], at=AT)
    texts = ["one", "two", "one", "", "three", "four", "five"]
    marks = np.array([anchor_mark(text) for text in texts], dtype=np.uint16)
    repository.record_anchors(np.repeat(rows, len(texts)), marks, texts)
    repository.record_anchors(np.array([-1]), marks[:1], texts[:1])  # a link that was not taken
    repository.commit()
    assert repository.anchors(0) == ["one", "two", "three", "four"]
    repository.close()


def test_a_repository_that_cannot_be_opened_lets_go_of_the_file(tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "crawl")
    folder.database.write_bytes(b"nothing" * 999)
    for _ in range(3):
        with pytest.raises(FolderError):
            Repository(folder, write=True)
    folder.database.unlink()
    assert not folder.database.exists()
