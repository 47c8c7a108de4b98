"""The weekly replay against brute force, and against the reference on real sites."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.lab.refresh_toy import Toy, toys

from bowerbird.lab.refresh_data import RefreshData, read_refresh_data
from bowerbird.lab.refresh_policies import refresh_none, refresh_oracle, uniform
from bowerbird.lab.refresh_replay import Replay, Truth, replay
from bowerbird.lab.refresh_scores import SCORINGS, ScoredVersions, score_versions
from bowerbird.quality.exact import repository_quality

#: site, workload, scoring; loss in bp with no refresh, and with the oracle at 1%
REFERENCE = {
    ("mdn", "web", "tf-idf"): (140.2, 124, 0.03),
    ("mdn", "site", "tf-idf"): (79.7, 71, 0.26),
    ("k8s", "web", "tf-idf"): (56.8, 41, 0.21),
    ("k8s", "site", "tf-idf"): (85.6, 66, 0.29),
    ("mdn", "web", "in-link"): (386.3, 321, 0.00),
    ("mdn", "site", "in-link"): (243.3, 166, 0.01),
    ("k8s", "web", "in-link"): (230.9, 189, 0.06),
    ("k8s", "site", "in-link"): (197.4, 142, 0.06),
}


def quality_of(toy: Toy, scored: ScoredVersions, week: int, fetched: list[int]) -> float:
    """Q by its definition, from dense scores of all pages; `fetched` is the week that each page's local copy is of.

    Scores are checked against the texts elsewhere; taken from there, they tie here where they tie there.
    """
    weeks = [fetched, [week] * len(fetched)]
    local, live = (np.zeros((len(scored.queries), len(fetched))) for _ in weeks)
    for scores, at in zip((local, live), weeks, strict=True):
        for page, until in enumerate(at):
            version = int(scored.data.first[page]) + sum(text is not None for text in toy.texts[page][1 : until + 1])
            slots, values = scored.row(version)
            scores[scored.slot_query[slots], page] = values
    return repository_quality(scored.queries.frequency, local, live, lambda rank: np.asarray(rank) ** -1.5)


@pytest.mark.parametrize("scoring", SCORINGS)
@given(toy=toys(), choices=st.data())
@settings(max_examples=80, deadline=None)
def test_quality_and_gains_equal_brute_force(scoring: str, toy: Toy, choices: st.DataObject) -> None:
    """In every week, before and after any refreshes; and the gain of every page alone."""
    data = toy.data()
    scored = score_versions(data, data.workloads["web"], scoring)
    state = Replay(Truth(scored))
    fetched = [0] * len(toy.texts)
    for week in range(1, toy.weeks + 1):
        state.begin_week()
        before = quality_of(toy, scored, week, fetched)
        assert state.quality == pytest.approx(before, abs=1e-9)
        gains = state.gains()
        for page in range(len(fetched)):
            alone = [week if other == page else at for other, at in enumerate(fetched)]
            assert gains[page] == pytest.approx(quality_of(toy, scored, week, alone) - before, abs=1e-9)
        chosen = sorted(choices.draw(st.sets(st.sampled_from(range(len(fetched))))))
        state.refresh(np.array(chosen, dtype=np.int64))
        for page in chosen:
            fetched[page] = week
        assert state.quality == pytest.approx(quality_of(toy, scored, week, fetched), abs=1e-9)
        assert set(chosen).isdisjoint(state.stale.tolist())


@given(toy=toys())
@settings(max_examples=40, deadline=None)
def test_refreshing_everything_loses_nothing(toy: Toy) -> None:
    """And nothing is better than that."""
    data = toy.data()
    truth = Truth(score_versions(data, data.workloads["web"], "tf-idf"))
    assert replay(truth, lambda state, _: np.arange(state.data.count), 1.0).loss_bp == pytest.approx(0, abs=1e-9)
    assert replay(truth, refresh_none, 0.5).loss_bp >= -1e-9


def test_a_policy_may_not_exceed_the_budget() -> None:
    """Doubles count once."""
    data = Toy([[["car"], None], [["car"], ["bus"]]], [1, 1], {("car",): 1.0}).data()
    truth = Truth(score_versions(data, data.workloads["web"], "tf-idf"))
    assert replay(truth, lambda _, __: np.array([1, 1]), 0.5).loss_bp == 0.0
    with pytest.raises(ValueError, match="chose 2 pages where 1"):
        replay(truth, lambda _, __: np.array([0, 1]), 0.5)


@pytest.fixture(scope="module")
def sites(shared_data: Path) -> dict[str, RefreshData]:
    """Both real sites."""
    return {name: read_refresh_data(name, shared_data / name) for name in ("mdn", "k8s")}


@pytest.mark.parametrize(("name", "workload", "scoring"), REFERENCE)
def test_conformance(sites: dict[str, RefreshData], name: str, workload: str, scoring: str) -> None:
    """No refresh within 0.2 bp of the reference; uniform within 1 bp; the oracle at 1% at most 0.5 bp, and as it."""
    none, even, oracle = REFERENCE[name, workload, scoring]
    data = sites[name]
    truth = Truth(score_versions(data, data.workloads[workload], scoring))
    assert replay(truth, refresh_none, 0.0).loss_bp == pytest.approx(none, abs=0.2)
    assert replay(truth, uniform(data.count, np.random.default_rng(0)), 0.01).loss_bp == pytest.approx(even, abs=1)
    best = replay(truth, refresh_oracle, 0.01).loss_bp
    assert best <= 0.5
    assert best == pytest.approx(oracle, abs=0.01)
