"""How much new pages better the answers is learnt from one study to a later one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bowerbird.appraise.frontier.improvement import FEWEST_PAGES, learn_answers, model_of
from bowerbird.appraise.frontier.sketches import CrawledScores, make_crawled_scores
from bowerbird.model.study import mark_queries
from bowerbird.model.workload import Workload, make_workload
from bowerbird.quality.neediness import improvability


def asked(count: int = 200, first: int = 0) -> Workload:
    names = [f"q{number:04d}" for number in range(first, first + count)]
    return make_workload(names, [1.0] * count, str.split)


def answered(level: list[float]) -> CrawledScores:
    """Ten results for each query, all of one score."""
    return make_crawled_scores([[(page, score) for page in range(10)] if score else [] for score in level])


def test_badly_answered_queries_that_gained_most_are_taken_for_improvable() -> None:
    level = np.linspace(0.0, 4.0, 200)
    first = learn_answers(None, asked(), answered(level.tolist()), 1000)
    assert first.model is None
    assert model_of(first) is None
    gained = np.exp(-level)
    later = learn_answers(first, asked(), answered((level + gained).tolist()), 1000 + FEWEST_PAGES)
    model = model_of(later)
    assert model is not None
    assert model.slope == pytest.approx(-1.0, abs=0.05)
    better = improvability(np.array([0.0, 3.0]), np.array([10, 10]), model)
    assert better.tolist() == pytest.approx([1.0, np.exp(-3.0)], rel=0.1)
    assert later.pages == 1000 + FEWEST_PAGES


def test_a_cycle_must_be_long_enough() -> None:
    first = learn_answers(None, asked(), answered([1.0] * 200), 1000)
    assert learn_answers(first, asked(), answered([2.0] * 200), 1000 + FEWEST_PAGES - 1) is first
    large = learn_answers(None, asked(), answered([1.0] * 200), 100_000)
    assert learn_answers(large, asked(), answered([2.0] * 200), 104_000) is large
    assert learn_answers(large, asked(), answered([2.0] * 200), 105_000) is not large


def test_what_was_learnt_stays_where_a_cycle_teaches_nothing() -> None:
    first = learn_answers(None, asked(), answered([1.0, 2.0] * 100), 1000)
    second = learn_answers(first, asked(), answered([1.5, 2.1] * 100), 2000)
    assert second.model is not None
    no_gain = learn_answers(second, asked(), answered([1.0, 2.0] * 100), 3000)
    assert no_gain.model == second.model
    other_queries = learn_answers(second, asked(first=500), answered([9.0] * 200), 3000)
    assert other_queries.model == second.model
    assert len(other_queries.marks) == 200


def test_queries_are_kept_by_sealed_marks_and_are_others_under_another_key() -> None:
    level = np.linspace(0.0, 4.0, 200)
    first = learn_answers(None, replace(asked(), mark_key=b"one"), answered(level.tolist()), 1000)
    assert not set(first.marks.tolist()) & set(mark_queries(asked().queries).tolist())
    better = answered((level + np.exp(-level)).tolist())
    assert learn_answers(first, replace(asked(), mark_key=b"one"), better, 2000).model is not None
    assert learn_answers(first, replace(asked(), mark_key=b"two"), better, 2000).model is None
