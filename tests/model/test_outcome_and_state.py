"""Numbers that are stored are never renumbered; every outcome has its place."""

from __future__ import annotations

import numpy as np
import pytest

from bowerbird.model import errors
from bowerbird.model.outcome import Outcome
from bowerbird.model.snapshot import LinkGraph
from bowerbird.model.url_state import REVISITED, FetchKind, UrlKind, UrlState


def test_stored_numbers_stay() -> None:
    assert [state.name for state in UrlState] == [
        "NEW",
        "FETCHED",
        "REDIRECT",
        "GONE",
        "FAILED",
        "EXCLUDED",
        "FORGOTTEN",
    ]
    assert [kind.name for kind in UrlKind] == ["PAGE", "SITEMAP", "FEED"]
    assert [kind.label for kind in FetchKind] == ["new", "refresh", "hub", "probe"]
    assert [int(outcome) for outcome in Outcome] == list(range(len(Outcome)))
    assert (Outcome.OK, Outcome.THROTTLED, Outcome.ROBOTS, Outcome.ABANDONED, Outcome.ADDED) == (0, 6, 16, 19, 21)


@pytest.mark.parametrize("outcome", Outcome)
def test_outcomes_are_named_for_people_and_sorted(outcome: Outcome) -> None:
    assert outcome.label == outcome.name.lower().replace("_", "-")
    if outcome in (Outcome.ROBOTS, Outcome.FORGOTTEN, Outcome.ADDED):  # no host was asked
        assert not outcome.answered
        assert not outcome.transient
    if outcome in (Outcome.GONE, Outcome.OK, Outcome.NOT_MODIFIED, Outcome.REDIRECT):
        assert outcome.answered
        assert not outcome.transient


def test_what_nobody_may_fetch_is_not_revisited() -> None:
    assert not {UrlState.NEW, UrlState.EXCLUDED, UrlState.FORGOTTEN} & set(REVISITED)


def test_one_exception_tree() -> None:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert len(kinds) > 5
    assert all(issubclass(kind, errors.BowerbirdError) for kind in kinds)
    assert errors.DiskFullError.exit_code == 3


def test_out_links_of_a_graph() -> None:
    graph = LinkGraph(np.array([0, 2, 2, 3]), np.array([1, 2, 0], dtype=np.uint32))
    assert [graph.out_links(row).tolist() for row in range(3)] == [[1, 2], [], [0]]
