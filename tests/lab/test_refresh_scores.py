"""Scores of all versions against their definition."""

from __future__ import annotations

from collections import Counter
from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from tests.lab.refresh_toy import Toy, toys

from bowerbird.lab.refresh_scores import SCORINGS, score_versions


def score_of(toy: Toy, page: int, week: int, query: tuple[str, ...], scoring: str) -> float:
    """[UC05] by the definition: a page that lacks a term scores 0."""
    counts = Counter(toy.words(page, week))
    if not all(counts[word] for word in query):
        return 0.0
    if scoring == "in-link":
        return float(toy.in_links[page])
    pages = len(toy.texts)
    starts = [toy.words(other, 0) for other in range(pages)]
    idf = {word: 1 + log(pages / (1 + sum(word in text for text in starts))) for word in query}
    norm = 1 / sqrt(sum(weight**2 for weight in idf.values()))
    return norm * sum(sqrt(counts[word]) * idf[word] ** 2 for word in query) / sqrt(len(toy.words(page, week)))


def answered(toy: Toy) -> dict[tuple[str, ...], float]:
    """Queries with a result at week 0."""
    starts = [set(toy.words(page, 0)) for page in range(len(toy.texts))]
    return {query: weight for query, weight in toy.queries.items() if any(text.issuperset(query) for text in starts)}


@pytest.mark.parametrize("scoring", SCORINGS)
@given(toy=toys())
@settings(max_examples=60, deadline=None)
def test_scores_are_those_of_the_definition(scoring: str, toy: Toy) -> None:
    """For every version, page and query that is answered at week 0."""
    data = toy.data()
    scored = score_versions(data, data.workloads["web"], scoring)
    kept = answered(toy)
    assert scored.queries.frequency.tolist() == list(kept.values())
    for version in range(len(data.week)):
        page, week = int(data.page[version]), int(data.week[version])
        slots, scores = scored.row(version)
        found = dict(zip(scored.slot_query[slots].tolist(), scores.tolist(), strict=True))
        assert (scored.slot_page[slots] == page).all()
        for number, query in enumerate(kept):
            assert found.get(number, 0.0) == pytest.approx(score_of(toy, page, week, query, scoring), rel=1e-12)


def test_slots_are_ordered_by_query_and_page() -> None:
    """So that the lower slot is the lower path."""
    toy = Toy([[["car"]], [["car", "red"]], [["red"]]], [1, 1, 1], {("car",): 1.0, ("red",): 1.0})
    data = toy.data()
    scored = score_versions(data, data.workloads["web"], "in-link")
    assert scored.query_starts.tolist() == [0, 2, 4]
    assert scored.slot_page.tolist() == [0, 1, 1, 2]
    assert np.array_equal(scored.at_start(), np.ones(4))


def test_an_unknown_scoring_is_told() -> None:
    """With those that there are."""
    data = Toy([[["car"]]], [1], {("car",): 1.0}).data()
    with pytest.raises(ValueError, match="tf-idf, in-link"):
        score_versions(data, data.workloads["web"], "bm25")
