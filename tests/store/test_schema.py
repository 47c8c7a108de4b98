"""The database: made, brought up to date, or refused with a reason."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from bowerbird.demand.schema import open_database as open_demand
from bowerbird.model.errors import FolderError
from bowerbird.store import schema
from bowerbird.store.schema import MIGRATIONS, VERSION, check_version, connect, migrate, open_database


def tables(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def test_an_empty_file_is_brought_from_version_0_to_the_present(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    connection = connect(path, write=True)
    assert check_version(connection, path) == 0
    migrate(connection, path)
    assert check_version(connection, path) == VERSION == len(MIGRATIONS)
    assert {"meta", "urls", "hosts", "fetches", "versions", "links", "anchors", "hints", "inbox"} <= tables(connection)
    migrate(connection, path)  # nothing left to do
    connection.close()


def test_migrations_are_applied_in_turn_and_a_failed_one_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state.db"
    open_database(path, write=True).close()
    steps = (*MIGRATIONS, "CREATE TABLE more (a);", "CREATE TABLE most (a); CREATE TABLE urls (b);")
    monkeypatch.setattr(schema, "MIGRATIONS", steps)
    monkeypatch.setattr(schema, "VERSION", len(steps))
    with pytest.raises(sqlite3.OperationalError, match="urls already exists"):
        open_database(path, write=True)
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS) + 1,)
    assert "more" in tables(connection)
    assert "most" not in tables(connection)
    connection.close()


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    connection = connect(path, write=True)
    connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    connection.close()
    for write in (True, False):
        with pytest.raises(FolderError, match=rf"newer Bowerbird \(format {VERSION + 1}.*Upgrade"):
            open_database(path, write=write)


def test_a_reader_does_not_bring_up_to_date_but_says_who_does(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    connect(path, write=True).close()
    with pytest.raises(FolderError, match=r"format 0, older than .* `bowerbird crawl "):
        open_database(path, write=False)


@pytest.mark.parametrize("write", [True, False])
@pytest.mark.parametrize("content", [b"not a database at all" * 500, b"SQLite format 3\0" + b"\xff" * 8000])
def test_what_is_no_database_is_refused(tmp_path: Path, content: bytes, write: bool) -> None:
    path = tmp_path / "state.db"
    path.write_bytes(content)
    with pytest.raises(FolderError, match=r"state\.db: cannot be opened"):
        open_database(path, write=write)
    assert path.read_bytes() == content


def test_somebody_else_s_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    other = sqlite3.connect(path)
    other.execute("CREATE TABLE recipes (name)")
    other.close()
    with pytest.raises(FolderError, match="not of a crawl"):
        open_database(path, write=True)
    other = sqlite3.connect(path)
    assert tables(other) == {"recipes"}
    other.close()


def test_a_reader_makes_no_file(tmp_path: Path) -> None:
    with pytest.raises(FolderError):
        open_database(tmp_path / "state.db", write=False)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="cannot be opened"):
        open_database(tmp_path / "nowhere" / "state.db", write=True)


def test_odd_names_of_folders_are_no_trouble(tmp_path: Path) -> None:
    folder = tmp_path / "100% odd? name#1 ü"
    folder.mkdir()
    open_database(folder / "state.db", write=True).close()
    open_database(folder / "state.db", write=False).close()
    assert (folder / "state.db").stat().st_size > 0


@pytest.mark.parametrize("opened", [open_database, open_demand])
def test_caches_of_the_databases_are_small_and_so_soon_full(tmp_path: Path, opened: Callable[..., Any]) -> None:
    for write in (True, False):
        with closing(opened(tmp_path / "some.db", write=write)) as connection:
            assert -2000 <= connection.execute("PRAGMA cache_size").fetchone()[0] < 0


def test_a_reader_cannot_write_and_a_writer_syncs(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    writer = open_database(path, write=True)
    assert writer.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert writer.execute("PRAGMA synchronous").fetchone() == (2,)
    reader = open_database(path, write=False)
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader.execute("INSERT INTO seeds VALUES ('https://a.example/')")
    writer.close()
    reader.close()
