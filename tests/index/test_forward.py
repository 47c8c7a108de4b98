"""Forward records: kept, forgotten, and never in the way."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.index import forward
from bowerbird.index.forward import ForwardRecords
from bowerbird.index.forward_kernels import NEVER
from bowerbird.index.protocol import Document
from bowerbird.index.tantivy_index import TantivyIndex


def marks(*values: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint32]]:
    return np.array(values, dtype=np.uint32)


def put(records: ForwardRecords, page: int, data: bytes) -> None:
    records.put([page], data, np.array([0, len(data)]))


def read(records: ForwardRecords, *pages: int) -> list[tuple[int, bytes]]:
    data, ends, generations = records.read(pages)
    return [
        (generation, data[start:end].tobytes())
        for generation, start, end in zip(generations.tolist(), ends[:-1], ends[1:], strict=True)
    ]


def test_records_are_read_back_before_and_after_a_commit(tmp_path: Path) -> None:
    records = ForwardRecords(tmp_path / "forward.db")
    records.enter(marks(7, 8))
    put(records, 5, b"five")
    put(records, 6, b"six")
    assert read(records, 6, 4, 5) == [(1, b"six"), (-1, b""), (1, b"five")]
    records.commit()
    put(records, 5, b"five again")
    records.forget([6])
    assert read(records, 5, 6) == [(1, b"five again"), (-1, b"")]
    records.commit()
    records.close()
    again = ForwardRecords(tmp_path / "forward.db")
    assert again.exists
    assert read(again, 5, 6) == [(1, b"five again"), (-1, b"")]
    again.close()
    assert again.failures == 0


def test_more_records_than_one_question_holds(tmp_path: Path) -> None:
    records = ForwardRecords(tmp_path / "forward.db")
    records.enter(marks(1))
    records.put(range(1200), b"x" * 1200, np.arange(1201))
    records.commit()
    assert [data for _, data in read(records, *range(1300))] == [b"x"] * 1200 + [b""] * 100
    records.close()


def test_what_is_not_committed_is_not_kept(tmp_path: Path) -> None:
    records = ForwardRecords(tmp_path / "forward.db")
    records.enter(marks(1))
    put(records, 5, b"five")
    records.close()
    assert read(ForwardRecords(tmp_path / "forward.db"), 5) == [(-1, b"")]


def test_a_word_is_known_from_the_generation_in_which_it_came(tmp_path: Path) -> None:
    path = tmp_path / "forward.db"
    records = ForwardRecords(path)
    assert records.enter(marks(10, 20)).tolist() == [1, 1]
    assert (records.enter(marks(20, 30)).tolist(), records.generation) == ([1, 2], 2)
    records.close()
    records = ForwardRecords(path)
    assert (records.enter(marks(30, 20)).tolist(), records.generation) == ([2, 1], 2)  # nothing new
    assert (records.enter(marks(20)).tolist(), records.generation) == ([1], 2)
    # 30 went and came again; a record of generation 2 may have been made without it
    assert (records.enter(marks(20, 30, 10)).tolist(), records.generation) == ([1, 3, 3], 3)
    records.close()


def test_of_words_with_the_same_mark_one_is_kept(tmp_path: Path) -> None:
    records = ForwardRecords(tmp_path / "forward.db")
    assert records.enter(marks(5, 9, 5)).tolist() == [1, 1, NEVER]
    records.close()


def test_without_a_file_nothing_is_written(tmp_path: Path) -> None:
    records = ForwardRecords(tmp_path / "forward.db")
    records.forget([1, 2])
    assert read(records, 1) == [(-1, b"")]
    records.commit()
    records.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", [b"no database at all" * 100, b"", b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_damaged_file_is_no_records(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "forward.db"
    path.write_bytes(damage)
    records = ForwardRecords(path)
    assert read(records, 1) == [(-1, b"")]
    assert records.enter(marks(1)).tolist() in ([1], [NEVER])
    records.enter(marks(1))
    put(records, 1, b"one")
    records.commit()
    assert read(records, 1) == [(1, b"one")]
    records.close()


def test_a_file_of_another_format_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "forward.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.execute("CREATE TABLE records (a)")
    connection.close()
    records = ForwardRecords(path)
    assert records.enter(marks(1)).tolist() == [1]
    records.close()


def test_a_folder_that_cannot_be_written_is_no_trouble(tmp_path: Path) -> None:
    records = ForwardRecords(tmp_path / "nowhere" / "forward.db")
    assert records.enter(marks(1)).tolist() == [NEVER]
    put(records, 1, b"one")
    records.commit()
    assert read(records, 1) == [(-1, b"")]
    assert records.failures > 0


WRITER = """
import os, sys
from pathlib import Path
import numpy as np
from bowerbird.index.forward import ForwardRecords
records = ForwardRecords(Path(sys.argv[1]))
records.enter(np.array([1], dtype=np.uint32))
data = os.urandom(1000) * 1000
for turn in range(1000):
    records.put(range(1000), bytes([turn % 256]) + data[1:], np.arange(0, 1_000_001, 1000))
    records.commit()
    print(turn, flush=True)
"""


def test_a_writer_that_is_killed_leaves_whole_commits(tmp_path: Path) -> None:
    path = tmp_path / "forward.db"
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    done = [int(process.stdout.readline()) for _ in range(3)][-1]
    os.kill(process.pid, signal.SIGKILL)
    done = max([done, *(int(line) for line in process.stdout.read().split())])
    process.stdout.close()
    process.wait()
    records = ForwardRecords(path)
    found = read(records, *range(1000))
    assert {len(data) for _, data in found} == {1000}
    assert found[0][1][0] in (done, done + 1)
    assert records.failures == 0
    records.close()


def test_the_index_leaves_the_file_alone_and_the_file_the_index(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    index = TantivyIndex.open(folder, write=True)
    records = ForwardRecords(folder / "forward.db")
    records.enter(marks(1))
    for turn in range(12):
        index.add(Document(1, "http://a/", "t", f"word{turn}", "", "", "a", "en", 0.0), replace=True)
        index.commit()
        put(records, 1, b"%d" % turn)
        records.commit()
    index.close()
    records.close()
    assert read(ForwardRecords(folder / "forward.db"), 1) == [(1, b"11")]
    with TantivyIndex.open(folder, write=False) as reader:
        assert reader.pages().tolist() == [1]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.integers(0, 9), max_size=6, unique=True), max_size=8))
def test_a_word_is_known_exactly_since_it_was_there_without_a_break(
    tmp_path_factory: pytest.TempPathFactory, vocabularies: list[list[int]]
) -> None:
    records = ForwardRecords(tmp_path_factory.mktemp("forward") / "forward.db")
    made: list[int] = []  # the generation in which a record was made, by turn
    for turn, words in enumerate(vocabularies):
        since = records.enter(marks(*words))
        made.append(records.generation)
        for word, first in zip(words, since.tolist(), strict=True):
            for earlier in range(turn + 1):
                unbroken = all(word in vocabularies[later] for later in range(earlier, turn + 1))
                if made[earlier] >= first:  # taken to be known
                    assert unbroken
    records.close()


def held(path: Path) -> sqlite3.Connection:
    """Another process that writes."""
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    return other


def two_records(path: Path) -> ForwardRecords:
    records = ForwardRecords(path)
    records.enter(marks(1, 2))
    put(records, 7, b"seven")
    put(records, 8, b"eight")
    records.commit()
    return records


def test_while_another_holds_the_file_pages_lose_their_records_and_no_others_do(tmp_path: Path) -> None:
    path = tmp_path / "forward.db"
    records = two_records(path)
    other = held(path)
    put(records, 7, b"seven again")
    put(records, 9, b"nine")
    began = time.monotonic()
    records.commit()
    assert time.monotonic() - began < 3.0
    assert records.failures == 1
    assert records.waiting == 0
    assert read(records, 7, 8, 9) == [(-1, b""), (1, b"eight"), (-1, b"")]  # not "seven": the page is another now
    put(records, 9, b"nine again")
    assert read(records, 9) == [(1, b"nine again")]
    other.execute("COMMIT")
    records.commit()
    for each in (records, ForwardRecords(path)):
        assert read(each, 7, 8, 9) == [(-1, b""), (1, b"eight"), (1, b"nine again")]
        each.close()
    other.close()


def test_words_can_be_entered_while_another_holds_the_file(tmp_path: Path) -> None:
    path = tmp_path / "forward.db"
    two_records(path).close()
    other = held(path)
    records = ForwardRecords(path)
    assert records.enter(marks(2, 3)).tolist() == [1, 2]
    assert records.enter(marks(2, 3, 1)).tolist() == [1, 2, 3]  # 1 was away
    put(records, 9, b"nine")
    assert read(records, 7, 9) == [(1, b"seven"), (3, b"nine")]
    other.execute("COMMIT")
    records.commit()
    records.close()
    again = ForwardRecords(path)
    assert read(again, 7, 9) == [(1, b"seven"), (3, b"nine")]
    assert (again.enter(marks(1, 2, 3)).tolist(), again.generation) == ([3, 1, 2], 3)
    again.close()
    other.close()


def test_a_file_that_is_held_to_the_end_misleads_nobody(tmp_path: Path) -> None:
    path = tmp_path / "forward.db"
    records = two_records(path)
    other = held(path)
    put(records, 7, b"seven again")
    records.commit()
    records.close()
    other.execute("ROLLBACK")
    other.close()
    assert read(ForwardRecords(path), 7) == [(-1, b"")]


def test_a_file_that_cannot_be_written_for_long_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forward, "_MOST_STALE", 3)
    path = tmp_path / "forward.db"
    records = two_records(path)
    other = held(path)
    for page in range(10, 13):
        put(records, page, b"page")
    records.commit()
    assert read(records, 7) == [(1, b"seven")]
    put(records, 13, b"page")
    records.commit()
    assert not path.exists()
    assert read(records, 7, 10) == [(-1, b"")] * 2
    other.close()
    assert records.enter(marks(1)).tolist() == [records.generation]
    records.close()


def test_pages_that_change_while_no_words_can_be_entered_have_no_record_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "forward.db"
    two_records(path).close()
    records = ForwardRecords(path)

    def refuse() -> sqlite3.Connection:
        error = sqlite3.OperationalError("database is locked")
        error.sqlite_errorcode = sqlite3.SQLITE_BUSY
        raise error

    with monkeypatch.context() as busy:
        busy.setattr(records, "_connect", refuse)
        assert records.enter(marks(1, 2)).tolist() == [NEVER, NEVER]
        put(records, 7, b"seven again")
        records.commit()
    assert read(records, 7, 8) == [(-1, b""), (1, b"eight")]
    records.close()
    assert read(ForwardRecords(path), 7, 8) == [(-1, b""), (1, b"eight")]
