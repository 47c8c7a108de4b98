"""Bids that are read off a study, and what they say of themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.appraise.snapshots import NOW, snapshot_of

from bowerbird.appraise.frontier.in_degree import InDegree
from bowerbird.appraise.frontier.studied import Studied
from bowerbird.model.bid import Term
from bowerbird.model.snapshot import Snapshot
from bowerbird.model.study import CalibrationNote, FrontierStudy, Reasons, mark_queries, seal_marks
from bowerbird.model.workload import make_workload

NAN = np.nan


def reasons() -> Reasons:
    return Reasons(
        np.array([1]),
        np.array([[7, 3, -1]], dtype=np.int32),
        np.array([[0.5, 0.25, 0.0]], dtype=np.float32),
        np.array([[1, 0, 2]], dtype=np.int32),
        np.array([[2.0, np.inf, 4.0]], dtype=np.float32),
        mark_queries(["red car", "blue boat", "gone"]),
    )


def studied_snapshot(**changes: object) -> Snapshot:
    """Six pages; the study knew the first four of them, and hosts 0 and 1."""
    study = FrontierStudy(
        at=NOW - 120.0,
        method="rw-eg",
        count=4,
        worth=np.array([NAN, 2.5, 0.5, NAN], dtype=np.float32),
        score=np.array([9.0, 0.75, 0.1, 0.0], dtype=np.float32),
        host_worth=np.array([1.5, NAN], dtype=np.float32),
        default_worth=0.125,
        calibration=CalibrationNote("calibrated", 80, 40.0, "by 40 clicks"),
        reasons=reasons(),
    )
    snapshot = snapshot_of(host=[0, 0, 1, 1, 0, 2], in_degree=[1, 2, 3, 4, 5, 6])
    workload = make_workload(["red car", "blue boat"], [3.0, 2.0], str.split)
    return replace(snapshot, study=replace(study, **changes), workload=workload)  # type: ignore[arg-type]  # fields of many types


def find(tree: Term, name: str) -> Term:
    """The node of that name."""
    if tree.name == name:
        return tree
    for child in tree.children:
        try:
            return find(child, name)
        except LookupError:
            pass
    raise LookupError(name)


def test_a_page_bids_one_and_its_expected_clicks_in_those_of_the_average_page() -> None:
    bids = Studied("rw-eg").appraise(studied_snapshot(), np.arange(6))
    # row 0 was not on the frontier then, 3 neither and its host had none, 4 and 5 were not known, nor the host of 5
    # the average page, 0.125 clicks, bids 2
    assert bids.amplitude.tolist() == [13.0, 21.0, 5.0, 2.0, 13.0, 2.0]
    assert bids.terms["expected_clicks"].tolist() == [1.5, 2.5, 0.5, 0.125, 1.5, 0.125]
    hosts, everything = "mean of its host", "mean of all"
    assert bids.terms["basis"].tolist() == [hosts, "study", "study", everything, hosts, everything]


@pytest.mark.parametrize("snapshot", [replace(studied_snapshot(), study=None), studied_snapshot(method="pagerank")])
def test_without_a_study_of_its_own_it_goes_by_links_and_says_so(snapshot: Snapshot) -> None:
    rows = np.arange(6)
    bids = Studied("rw-eg").appraise(snapshot, rows)
    assert bids.amplitude.tolist() == InDegree().appraise(snapshot, rows).amplitude.tolist()
    assert str(bids.terms["basis"]) == "in-links, before a study"
    tree = Studied("rw-eg").explain(snapshot, 2)
    assert tree.value == 2 - 1 / 4
    assert "no study by rw-eg yet" in tree.note


def test_the_explanation_names_calibration_score_links_and_queries() -> None:
    tree = Studied("rw-eg").explain(studied_snapshot(), 1)
    assert (tree.value, tree.name) == (21.0, "1 + expected clicks/mean")
    assert "reserve" in tree.note
    assert find(tree, "expected clicks").value == 2.5
    assert find(tree, "mean clicks").value == 0.125
    assert find(tree, "calibration").value == "calibrated"
    assert find(tree, "calibration").note == "by 40 clicks"
    assert find(tree, "study_age_s").value == 120.0
    score = find(tree, "score")
    assert score.value == 0.75
    links = [child for child in score.children if child.page is not None]
    assert [(child.page, child.value) for child in links] == [(7, 0.5), (3, 0.25)]
    queries = [(child.name, child.value) for child in score.children if child.page is None]
    assert queries == [
        ("query 'blue boat'", 2.0),
        ("query 'red car'", "beyond the first"),
        ("a query asked earlier", 4.0),
    ]
    assert links[0].as_dict()["page"] == 7


def test_a_page_without_reasons_is_explained_too() -> None:
    tree = Studied("rw-eg").explain(studied_snapshot(), 2)
    assert find(tree, "score").children == ()
    assert find(Studied("rw-eg").explain(studied_snapshot(reasons=None), 1), "score").children == ()
    found_later = Studied("rw-eg").explain(studied_snapshot(), 4)
    assert "mean of its host" in find(found_later, "expected clicks").note
    with pytest.raises(LookupError):
        find(found_later, "score")


def test_a_bid_is_of_a_page_and_a_query_is_known_by_its_mark_only() -> None:
    assert mark_queries(["a", "b"]).tolist() == mark_queries(["a", "b"]).tolist()
    assert len(set(mark_queries(["a", "b", "a "]).tolist())) == 3
    unnamed = replace(studied_snapshot(), workload=None)
    names = {child.name for child in find(Studied("rw-eg").explain(unnamed, 1), "score").children}
    assert names == {"link from", "a query asked earlier"}


def test_what_was_learnt_is_said_with_the_score() -> None:
    info = {"learnt from": 1234.0, "leans on": "rw, directory 1: log clicks"}
    snapshot = studied_snapshot(method="learned", info=info, reasons=None)
    score = find(Studied("learned").explain(snapshot, 1), "score")
    assert score.note == "as learned gives it, learnt from 1,234 pages fetched earlier"
    (leans,) = score.children
    assert (leans.name, leans.value) == ("leans on", "rw, directory 1: log clicks")
    empty = studied_snapshot(method="learned", info={"note": "too few clicks to learn from"}, reasons=None)
    score = find(Studied("learned").explain(empty, 1), "score")
    assert score.note == "as learned gives it: too few clicks to learn from"
    assert score.children == ()


def test_queries_are_known_by_sealed_marks_under_their_own_key_alone() -> None:
    marks = mark_queries(["red car", "blue boat"])
    sealed = seal_marks(marks, b"one")
    assert sealed.dtype == np.uint64
    assert seal_marks(marks, b"one").tolist() == sealed.tolist()
    assert not set(sealed.tolist()) & {*marks.tolist(), *seal_marks(marks, b"two").tolist()}
    assert seal_marks(marks[1:], b"one").tolist() == sealed[1:].tolist()  # each by itself
    assert len(seal_marks(marks[:0], b"one")) == 0
    assert seal_marks(marks, b"").tolist() == marks.tolist()

    def names(key: bytes) -> list[str]:
        snapshot = studied_snapshot(reasons=reasons().seal(b"one"))
        assert snapshot.workload is not None
        snapshot = replace(snapshot, workload=replace(snapshot.workload, mark_key=key))
        score = find(Studied("rw-eg").explain(snapshot, 1), "score")
        return [child.name for child in score.children if "query" in child.name]

    assert names(b"one") == ["query 'blue boat'", "query 'red car'", "a query asked earlier"]
    assert names(b"two") == names(b"") == ["a query asked earlier"] * 3
