from __future__ import annotations

import numpy as np
import pytest

from bowerbird.crawl.measure import _Answers, still_fresh
from bowerbird.crawl.probe_reader import Probe
from bowerbird.demand.visibility import PowerLaw
from bowerbird.quality.answers import LocalAnswers
from bowerbird.quality.estimate import ProbeTable

FREQUENCY = np.array([2.0])


def table(old: float, new: float, *, fetched: bool) -> ProbeTable:
    one = np.zeros(1, dtype=np.int64)
    return ProbeTable(
        np.ones(1), one, np.array([fetched]), np.array([new == 0]), one, one, np.array([old]), np.array([new])
    )


def answers(before: list[float], frontier_in: list[float], now: list[float]) -> _Answers:
    return _Answers(*(LocalAnswers.from_lists([np.array(scores)]) for scores in (before, frontier_in, now)))


def test_a_page_of_the_frontier_repairs_what_it_brings() -> None:
    lists = answers([3.0, 1.0], [4.0, 3.0, 1.0], [4.0, 3.0, 1.0])
    worth = [2 * (3 + 1 * 2**-1.5), 2 * (4 + 3 * 2**-1.5 + 1 * 3**-1.5)]
    found = lists.repaired(FREQUENCY, table(0.0, 4.0, fetched=False), PowerLaw(), fresh=0.0)
    assert found == pytest.approx(worth[1] - worth[0])


def test_a_page_that_is_gone_gives_its_rank_to_the_next_as_long_as_that_holds() -> None:
    lists = answers([3.0, 1.0], [3.0, 1.0], [1.0])  # the answer from before is the longer one
    gone = table(3.0, 0.0, fetched=True)
    assert lists.repaired(FREQUENCY, gone, PowerLaw(), fresh=1.0) == pytest.approx(2 * 1 * (1 - 2**-1.5))
    assert lists.repaired(FREQUENCY, gone, PowerLaw(), fresh=0.0) == 0.0


def test_a_page_grows_stale_again_in_the_time_it_had_been_left_alone_for() -> None:
    def probe(at: float, age_s: float, stratum: str = "fetched") -> Probe:
        return Probe(1, at, stratum, 0.1, age_s, None, None)

    assert still_fresh([probe(100.0, 50.0)], 100.0) == 1.0
    assert still_fresh([probe(100.0, 50.0)], 125.0) == 0.5
    assert still_fresh([probe(100.0, 50.0), probe(0.0, 10.0)], 100.0) == 0.5
    assert still_fresh([probe(100.0, 0.0, "frontier")], 100.0) == 0.0
