"""Measured gains are written with a commit and read back by page."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
from tests.store.stored import open_repository

from bowerbird.store.folder import CrawlFolder
from bowerbird.store.gains import MeasuredGain, read_gains, read_gains_of, write_gains
from bowerbird.store.schema import MIGRATIONS, VERSION, open_database, open_state


def gain_of(page: int, at: float, gain: float = 0.5, queries: int = 2) -> MeasuredGain:
    marks = np.arange(queries, dtype=np.uint64) + 2**63
    return MeasuredGain(page, at, at - 10, gain, 7, marks, np.linspace(1, 0.5, queries, dtype=np.float32))


def same(one: MeasuredGain, other: MeasuredGain) -> bool:
    facts = ("page", "at", "since", "gain", "words")
    return (
        all(getattr(one, name) == getattr(other, name) for name in facts)
        and np.array_equal(one.marks, other.marks)
        and one.marks.dtype == other.marks.dtype
        and np.array_equal(one.shares, other.shares)
        and one.shares.dtype == other.shares.dtype
    )


def test_gains_commit_with_the_repository(folder: CrawlFolder) -> None:
    repository = open_repository(folder)
    gains = [gain_of(5, 30.0), gain_of(3, 20.0, 0.0, 0), gain_of(5, 10.0, 0.25)]
    repository.record_gains(gains)
    assert len(read_gains(repository.connection)) == 0
    repository.commit()
    repository.commit()  # they are written once
    repository.close()
    reader = open_repository(folder, write=False)
    columns = read_gains(reader.connection)
    assert columns.page.tolist() == [3, 5, 5]
    assert columns.at.tolist() == [20.0, 10.0, 30.0]
    assert columns.since.tolist() == [10.0, 0.0, 20.0]
    assert columns.gain.tolist() == [0.0, 0.25, 0.5]
    found = read_gains_of(reader.connection, 5)
    assert [same(one, other) for one, other in zip(found, [gains[0], gains[2]], strict=True)] == [True, True]
    assert same(read_gains_of(reader.connection, 3)[0], gains[1])
    assert len(read_gains_of(reader.connection, 5, limit=1)) == 1
    assert read_gains_of(reader.connection, 4) == []
    reader.close()


def test_a_gain_that_is_measured_again_takes_the_place_of_the_first(folder: CrawlFolder) -> None:
    connection = open_state(folder, write=True)
    write_gains(connection, [gain_of(1, 5.0, 0.1)])
    write_gains(connection, [gain_of(1, 5.0, 0.3)])
    assert read_gains(connection).gain.tolist() == [0.3]
    connection.close()


def test_a_folder_from_before_gets_the_table(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    connection = sqlite3.connect(path)
    connection.executescript(f"{MIGRATIONS[0]} PRAGMA user_version = 1;")
    connection.close()
    connection = open_database(path, write=True)
    assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
    assert len(read_gains(connection)) == 0
    connection.close()
