"""The paper's policies: what each does, and the reference levels they reach."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.lab.echo_toy import make_news, make_world

from bowerbird.lab.echo_data import read_echo_world
from bowerbird.lab.echo_estimates import ClickHistory, VisitHistory
from bowerbird.lab.echo_paper import EchoNewpages, PaperOptions, paper_policy
from bowerbird.lab.echo_replay import Setting, run
from bowerbird.lab.echo_world import BIN_S, DAY_S, HOUR_S, EchoWorld

X = (0.22, 0.43, 0.87)
CHEAP = ("bfs", "fixed-quota", "frequency")  # a tenth of a second a replay, others take a second
GLOBO = {
    "bfs": (0.133, 0.314, 0.671),
    "fixed-quota": (0.125, 0.283, 0.529),
    "frequency": (0.152, 0.331, 0.706),
    "echo-greedy": (0.204, 0.481, 0.743),
    "echo-newpages": (0.203, 0.409, 0.780),
}
FRONTPAGES = {
    "bfs": (0.209, 0.412, 0.732),
    "fixed-quota": (0.110, 0.214, 0.434),
    "frequency": (0.213, 0.419, 0.775),
    "echo-greedy": (0.212, 0.415, 0.756),
    "echo-newpages": (0.208, 0.408, 0.764),
}


def setting(hubs: int = 2, rate: float = 0.01) -> Setting:
    return Setting(tuple("ab"[:hubs]), np.zeros(hubs, dtype=np.int64), 0.0, rate, BIN_S, HOUR_S)


def test_rates_are_those_of_the_last_visits() -> None:
    history = VisitHistory(setting(), 2, 0.5)
    assert history.rate_per_s.tolist() == [0.005, 0.005]
    for now, found in ((100.0, 50), (200.0, 3), (400.0, 6)):
        history.visit(now, 1, found)
    assert history.rate_per_s.tolist() == [0.005, pytest.approx(9.5 / 300)]
    assert history.last_s.tolist() == [0.0, 400.0]


def test_profit_and_decay_are_found_in_clicks() -> None:
    history = ClickHistory(setting(), 5.0, 1 / DAY_S)
    pages = np.arange(3)
    history.found(1, pages)
    for page in pages.tolist():
        history.fetched(0.0, page)
    decay = 1 / (6 * HOUR_S)
    edges = np.arange(int(2 * DAY_S / BIN_S) + 1) * BIN_S
    made = 40.0 * -np.diff(np.exp(-decay * edges))
    for push in range(0, len(made), 3):
        rows = [(page, edges[push + nth], made[push + nth]) for nth in range(3) for page in range(3)]
        page, begin, clicks = (np.array(column) for column in zip(*rows, strict=True))
        history.pushed(edges[push + 3], page, begin, clicks)
    history.fit()
    assert history.profit[0] == 5.0
    assert history.profit[1] == pytest.approx(40.0, rel=1e-2)
    assert history.decay_per_s[1] == pytest.approx(decay, rel=2e-2)


def test_fewer_pages_than_are_needed_say_nothing_and_no_profit_is_below_the_default() -> None:
    history = ClickHistory(setting(), 5.0, 1 / DAY_S)
    for hub, pages in ((0, np.array([0, 1])), (1, np.array([2, 3, 4]))):
        history.found(hub, pages)
        for page in pages.tolist():
            history.fetched(0.0, page)
    history.pushed(HOUR_S, np.array([0, 2]), np.array([0.0, 0.0]), np.array([1000.0, 1.0]))
    history.fit()
    assert history.profit.tolist() == [5.0, 5.0]


def test_a_fixed_quota_is_half() -> None:
    done = run(make_news(), paper_policy("fixed-quota"), 0.5, 0)
    assert done.visits == pytest.approx(len(done.fetch_page), rel=0.1)
    done = run(make_news(), paper_policy("fixed-quota", quota=0.8), 0.5, 0)
    assert done.visits == pytest.approx(4 * len(done.fetch_page), rel=0.1)


def test_busy_hubs_are_visited_more_by_frequency_and_worthy_ones_by_greedy() -> None:
    world = make_news(hubs=4, days=8.0)  # hub 3 has four times the pages of hub 0; hubs 1 and 3 ten times the clicks
    by_rate, by_worth = (
        np.bincount(run(world, paper_policy(policy), 1.1, 0).visit_hub, minlength=4)
        for policy in ("frequency", "echo-greedy")
    )
    assert by_rate[3] > by_rate[0]
    assert by_worth[3] / by_worth[2] > 2 * by_rate[3] / by_rate[2]


def test_newpages_follow_the_intervals() -> None:
    world = make_world([(hub, hub, 1.0, 9e4, 0) for hub in range(2)], [(0, 1.0, 2.0, 1.0)], end_s=8e4)
    made: list[EchoNewpages] = []

    def make(one: Setting, rng: np.random.Generator) -> EchoNewpages:
        made.append(EchoNewpages(one, rng, PaperOptions()))
        return made[0]

    done = run(world, make, 1.0, 0, fetches_per_s=1 / 1000)
    assert done.fetched_share == 1.0
    often = np.bincount(done.visit_hub, minlength=2)
    assert often[0] == pytest.approx(often[1], abs=4)  # alike, so that they take turns
    assert made[0].interval_s[0] == pytest.approx(made[0].interval_s[1], rel=0.2)


@pytest.fixture(scope="module")
def globo(shared_data: Path) -> dict[str, list[float]]:
    """Mean shares by policy and budget, over 5 seeds or 3."""
    world = read_echo_world("globo", shared_data / "globo")
    return {
        policy: [
            float(
                np.mean(
                    [run(world, paper_policy(policy), x, seed).share for seed in range(5 if policy in CHEAP else 3)]
                )
            )
            for x in X
        ]
        for policy in GLOBO
    }


@pytest.mark.parametrize("policy", GLOBO)
def test_reference_on_globo(globo: dict[str, list[float]], policy: str) -> None:
    """One replay differs from the next by .01 to .04 (standard deviation), those of the reference too.

    With 20 seeds two cells are out: frequency at .43 is .021 above its level, and echo-greedy there .029 below.
    """
    near = 0.025 if policy == "echo-greedy" else 0.02
    assert globo[policy] == pytest.approx(GLOBO[policy], abs=near)


def test_reference_on_globo_as_a_whole(globo: dict[str, list[float]]) -> None:
    off = np.array([globo[policy] for policy in GLOBO]) - np.array(list(GLOBO.values()))
    assert np.abs(off).mean() < 0.013
    assert abs(off.mean()) < 0.006  # neither too good nor too bad


@pytest.fixture(scope="module")
def frontpages(shared_data: Path) -> EchoWorld:
    return read_echo_world("frontpages", shared_data / "frontpages")


@pytest.mark.parametrize("policy", CHEAP)
def test_reference_on_frontpages(frontpages: EchoWorld, policy: str) -> None:
    """The reference is the share of new pages that are fetched, not weighed by their presence."""
    done = [run(frontpages, paper_policy(policy), x, 0) for x in X]
    assert [each.fetched_share for each in done] == pytest.approx(FRONTPAGES[policy], abs=0.006)
    assert all(each.fetched_share <= x for each, x in zip(done, X, strict=True))
    by_presence = np.array([each.share for each in done])
    assert (by_presence > np.array(FRONTPAGES[policy]) + 0.05).all()


def test_newpages_on_frontpages(frontpages: EchoWorld) -> None:
    done = run(frontpages, paper_policy("echo-newpages"), X[1], 0)
    assert done.fetched_share == pytest.approx(FRONTPAGES["echo-newpages"][1], abs=0.01)


def test_bfs_on_hackernews(shared_data: Path) -> None:
    world = read_echo_world("hackernews", shared_data / "hackernews")
    assert world.hub_count == 1553
    assert run(world, paper_policy("bfs"), 4.0, 0).share == pytest.approx(0.020, abs=0.01)
