"""The workload: what the log says, in the index's words."""

from __future__ import annotations

import gzip
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.demand.events import QueryAsked, ResultClicked
from bowerbird.demand.forgetting import forget_queries
from bowerbird.demand.importing import import_log
from bowerbird.demand.log import DemandLog
from bowerbird.demand.sources import Source
from bowerbird.demand.workload import attach_clicks, build_workload, mark_heard, words_of
from bowerbird.index.analysis import tokenize
from bowerbird.model.workload import EMPTY, make_workload

NOW = 1_700_000_000.0
WORDS = st.sampled_from(["red", "car", "blue", "sky"])


def test_a_workload_of_a_log(tmp_path: Path) -> None:
    with DemandLog.open(tmp_path / "demand.db", write=True) as log:
        assert build_workload(log, NOW) == EMPTY
        log.record(
            [
                QueryAsked("Red car", NOW, 3),
                QueryAsked("car", NOW, 5),
                QueryAsked("crème -sugar site:example.org", NOW, 3),
                QueryAsked("???", NOW, 9),
                QueryAsked("rare", NOW),
            ]
        )
        workload = build_workload(log, NOW)
        assert workload.queries == ("car", "crème -sugar site:example.org", "red car")
        assert workload.frequency.tolist() == [5, 3, 3]
        assert workload.terms == ("car", "creme", "red")
        assert [workload.terms_of(number).tolist() for number in range(3)] == [[0], [1], [0, 2]]
        assert workload.term_frequency().tolist() == [8, 3, 3]
        assert build_workload(log, NOW, limit=2).queries == ("car",)  # the most frequent has no word
        assert build_workload(log, NOW, limit=0) == EMPTY


@given(st.dictionaries(st.lists(WORDS, min_size=1, max_size=4).map(" ".join), st.floats(0.1, 100), max_size=12))
def test_sums_and_order(queries: dict[str, float]) -> None:
    workload = make_workload(list(queries), list(queries.values()), str.split)
    assert workload.frequency.sum() == pytest.approx(sum(queries.values()))
    assert list(workload.queries) == sorted(queries, key=lambda text: (-queries[text], text))
    assert workload.starts[-1] == len(workload.members)
    expected = {term: sum(f for text, f in queries.items() if term in text.split()) for term in workload.terms}
    assert dict(zip(workload.terms, workload.term_frequency().tolist(), strict=True)) == pytest.approx(expected)
    assert list(workload.terms) == sorted({word for text in queries for word in text.split()})


def test_words_are_the_index_s() -> None:
    for text in ("crème brûlée", "東京 tokyo", "plain words here"):
        assert list(words_of(text)) == tokenize(text)
    assert words_of('"two words" -three lang:en') == ("two", "words")


def test_clicks_by_row() -> None:
    rows = {"http://a.test/": 0, "http://b.test/": 2}
    column = attach_clicks([("http://b.test/", 2.5), ("http://c.test/", 1.0)], rows.get, 4)
    assert column.tolist() == [0, 0, 2.5, 0]
    assert column.dtype == np.float64


def test_real_queries(shared_data: Path, tmp_path: Path) -> None:
    for name, queries in (("terabyte05", 42_169), ("million_query", 59_674)):
        path = shared_data / "queries" / f"{name}.tsv.gz"
        (tmp_path / name).mkdir()
        with gzip.open(path, "rt", encoding="utf-8") as file:
            next(file)
            expected = sum(int(line.rpartition("\t")[2]) for line in file)
        with (
            DemandLog.open(tmp_path / name / "demand.db", write=True, min_occurrences=1) as log,
            Source.open(str(path)) as source,
        ):
            report = import_log(log, source)
            assert (report.format, report.lines, report.bad, report.asked) == ("tsv", queries + 1, 0, expected)
            began_s = time.perf_counter()
            workload = build_workload(log, time.time())
            assert time.perf_counter() - began_s < 5
            assert 0.98 * queries < len(workload) <= queries
            assert workload.frequency.sum() == pytest.approx(expected, rel=0.01)


def test_the_mark_of_what_was_heard_moves_with_whatever_is_counted_imported_or_forgotten(tmp_path: Path) -> None:
    place = tmp_path / "demand.db"
    with DemandLog.open(place, write=False) as log:
        marks = [mark_heard(log)]
    old = tmp_path / "old.tsv"
    old.write_text("query\tcount\nred car\t3\n", encoding="utf-8")
    with DemandLog.open(place, write=True) as log:
        marks.append(mark_heard(log))
        log.record([QueryAsked("red car", NOW, 3)])
        marks.append(mark_heard(log))
        log.record([ResultClicked(None, "http://a.example/", None, NOW)])
        marks.append(mark_heard(log))
        with Source.open(str(old)) as source:
            assert import_log(log, source).lines > 0
        marks.append(mark_heard(log))
        forget_queries(log, ["red car"])
        marks.append(mark_heard(log))
        assert mark_heard(log) == marks[-1]
    assert len(set(marks)) == len(marks)
    with DemandLog.open(place, write=False) as log:
        assert mark_heard(log) == marks[-1]
