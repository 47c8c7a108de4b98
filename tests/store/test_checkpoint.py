"""A checkpoint is a shortcut: whatever is wrong with it, the columns are those of the database."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.store.stored import AT, add_and_fetch, fetch_of, image, make_folder, open_repository

from bowerbird.model.errors import DiskFullError
from bowerbird.store import checkpoint
from bowerbird.store.checkpoint import Mark, read_checkpoint, write_checkpoint
from bowerbird.store.columns import Columns
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.repository import Repository

LAYOUT = {"hash": ("u8", 1), "state": ("u1", 1), "anchors": ("u2", 4)}


def crawled(root: Path, name: str = "a") -> CrawlFolder:
    """A folder with a few pages, closed in good order."""
    folder = make_folder(root)
    repository = open_repository(folder)
    for number in range(5):
        add_and_fetch(
            repository, f"https://{name}.example/{number}", (f"https://{name}.example/{number + 10}",), AT + number
        )
    repository.commit()
    repository.write_checkpoint()
    repository.close()
    return folder


def assert_ignored(folder: CrawlFolder) -> None:
    """With the checkpoint or without it: the same, and everything was replayed."""
    repository = open_repository(folder)
    found, replayed, last = image(repository), repository.replayed, repository.last_fetch_id
    repository.close()
    folder.checkpoint.unlink()
    plain = open_repository(folder)
    assert found == image(plain)
    plain.close()
    assert replayed == last


def test_a_good_one_saves_the_replay(tmp_path: Path) -> None:
    repository = open_repository(crawled(tmp_path))
    assert repository.replayed == 0
    assert repository.last_fetch_id == 5
    repository.close()


def test_only_what_came_after_it_is_replayed(tmp_path: Path) -> None:
    folder = crawled(tmp_path)
    repository = open_repository(folder)
    add_and_fetch(repository, "https://a.example/more", ("https://a.example/0",), AT + 90)
    repository.commit()
    expected = image(repository)
    repository.close()
    again = open_repository(folder)
    assert again.replayed == 1
    assert image(again) == expected
    again.close()


@settings(max_examples=60, deadline=None)
@given(
    count=st.integers(0, 50),
    mark=st.builds(Mark, st.just(0), st.integers(0, 2**40), st.integers(0, 2**40), st.text("abc")),
)
def test_columns_come_back_as_they_were(tmp_path_factory: pytest.TempPathFactory, count: int, mark: Mark) -> None:
    path = tmp_path_factory.mktemp("ckpt") / "columns.ckpt"
    columns = Columns(LAYOUT, capacity=2)
    columns.extend(count)
    columns["hash"][:] = range(2**63, 2**63 + count)
    columns["anchors"][:] = 5
    mark = Mark(count, mark.fetch, mark.anchor, mark.history)
    write_checkpoint(path, columns, mark)
    back = Columns(LAYOUT, capacity=2)
    assert read_checkpoint(path, back) == mark
    assert all((back[name] == columns[name]).all() for name in LAYOUT)
    assert [left.name for left in path.parent.iterdir()] == ["columns.ckpt"]


def test_every_flipped_byte_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "columns.ckpt"
    columns = Columns(LAYOUT)
    columns.extend(3)
    write_checkpoint(path, columns, Mark(3, 17, 19, "x"))
    good = path.read_bytes()
    for place in range(len(good)):
        path.write_bytes(good[:place] + bytes([good[place] ^ 0x04]) + good[place + 1 :])
        assert read_checkpoint(path, Columns(LAYOUT)) is None, f"byte {place}"


def test_every_shorter_or_longer_file_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "columns.ckpt"
    columns = Columns(LAYOUT)
    columns.extend(2)
    write_checkpoint(path, columns, Mark(2, 1, 1, "x"))
    good = path.read_bytes()
    for length in range(len(good)):
        path.write_bytes(good[:length])
        assert read_checkpoint(path, Columns(LAYOUT)) is None, f"{length} bytes"
    path.write_bytes(good + b"\0")
    assert read_checkpoint(path, Columns(LAYOUT)) is None


@pytest.mark.parametrize("header", [b"[]", b"null", b"{}", b'{"layout": 3}', b'"x"', b"{", b""])
def test_headers_that_say_something_else(tmp_path: Path, header: bytes) -> None:
    path = tmp_path / "columns.ckpt"
    path.write_bytes(checkpoint._MAGIC + len(header).to_bytes(4, "little") + header + bytes(8))
    assert read_checkpoint(path, Columns(LAYOUT)) is None


def test_another_layout_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "columns.ckpt"
    write_checkpoint(path, Columns(LAYOUT), Mark(0, 0, 0, "x"))
    assert read_checkpoint(path, Columns({**LAYOUT, "state": ("u2", 1)})) is None
    assert read_checkpoint(path, Columns(LAYOUT)) == Mark(0, 0, 0, "x")


def test_a_missing_one_and_a_folder_in_its_place(tmp_path: Path) -> None:
    assert read_checkpoint(tmp_path / "columns.ckpt", Columns(LAYOUT)) is None
    assert read_checkpoint(tmp_path, Columns(LAYOUT)) is None


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "text"])
def test_a_damaged_one_is_ignored(tmp_path: Path, damage: str) -> None:
    folder = crawled(tmp_path)
    data = folder.checkpoint.read_bytes()
    middle = len(data) * 2 // 3
    folder.checkpoint.write_bytes(
        {
            "cut": data[:-20],
            "flip": data[:middle] + bytes([data[middle] ^ 0xFF]) + data[middle + 1 :],
            "empty": b"",
            "text": b"to be or not to be",
        }[damage]
    )
    assert_ignored(folder)


def test_a_foreign_one_is_ignored(tmp_path: Path) -> None:
    """Copied over from another crawl of the same size, or of a smaller one."""
    ours, theirs = crawled(tmp_path / "ours", "a"), crawled(tmp_path / "theirs", "b")
    shutil.copy(theirs.checkpoint, ours.checkpoint)
    assert_ignored(ours)
    smaller = make_folder(tmp_path / "smaller")
    repository = open_repository(smaller)
    add_and_fetch(repository, "https://c.example/")
    repository.commit()
    repository.write_checkpoint()
    repository.close()
    shutil.copy(smaller.checkpoint, ours.checkpoint)
    assert_ignored(ours)


def test_one_that_is_newer_than_a_restored_database_is_ignored(tmp_path: Path) -> None:
    folder = crawled(tmp_path)
    older = folder.database.read_bytes()
    repository = open_repository(folder)
    add_and_fetch(repository, "https://a.example/late", ("https://a.example/later",), AT + 500)
    repository.commit()
    repository.write_checkpoint()
    repository.close()
    folder.database.write_bytes(older)
    assert_ignored(folder)


def test_one_of_another_past_is_ignored_even_when_the_database_has_grown_beyond_it(tmp_path: Path) -> None:
    """A database is restored from a copy, crawls on along another way, and is killed before its next checkpoint."""
    folder = crawled(tmp_path)
    older = folder.database.read_bytes()
    repository = open_repository(folder)
    add_and_fetch(repository, "https://a.example/one-way", ("https://a.example/x", "https://a.example/y"), AT + 500)
    repository.commit()
    repository.write_checkpoint()
    repository.close()
    folder.database.write_bytes(older)
    repository = open_repository(folder)
    for number in range(9):
        add_and_fetch(repository, f"https://a.example/other-way/{number}", (f"https://a.example/z{number}",), AT + 600)
    repository.commit()
    repository.close()
    assert_ignored(folder)


def test_it_is_taken_right_after_a_commit(tmp_path: Path) -> None:
    repository = open_repository(make_folder(tmp_path))
    repository.write_checkpoint()  # of nothing at all
    rows, _ = repository.add_urls(["https://a.example/", "https://a.example/1"], at=AT)
    with pytest.raises(RuntimeError, match="right after a commit"):
        repository.write_checkpoint()
    repository.commit()
    for change in (
        lambda: repository.record(fetch_of(0)),
        lambda: repository.record_links(0, rows[1:], AT),
        lambda: repository.record_hint(1, AT, AT),
    ):
        change()
        with pytest.raises(RuntimeError, match="right after a commit"):
            repository.write_checkpoint()
        repository.commit()
        repository.write_checkpoint()
    repository.close()


def test_a_full_disk_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = crawled(tmp_path)
    before = folder.checkpoint.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    repository: Repository = open_repository(folder)
    monkeypatch.setattr(checkpoint.os, "fsync", full)
    with pytest.raises(DiskFullError, match=r"columns\.ckpt"):
        repository.write_checkpoint()
    repository.close()
    assert folder.checkpoint.read_bytes() == before
    assert not folder.checkpoint.with_suffix(".partial").exists()


def test_the_header_is_for_people_too(tmp_path: Path) -> None:
    data = crawled(tmp_path).checkpoint.read_bytes()
    length = int.from_bytes(data[8:12], "little")
    header = orjson.loads(data[12 : 12 + length])
    assert (header["urls"], header["fetch"], header["anchor"]) == (10, 5, 5)
