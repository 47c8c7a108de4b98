"""What is said of a page before it is fetched: the right numbers, and nothing that only a fetch could tell."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bowerbird.appraise.frontier.features import Features, describe_pages, take_names
from bowerbird.appraise.frontier.graph import BoolArray, FrontierGraph, IntArray, make_graph
from bowerbird.appraise.frontier.inputs import FloatArray, Inputs
from bowerbird.appraise.frontier.link_features import describe_linking_groups, describe_links, shrink
from bowerbird.appraise.frontier.name_features import describe_directories, describe_names, read_names
from bowerbird.appraise.frontier.neighbours import DIMENSIONS, NAMES, NEAREST, describe_neighbours, place_pages
from bowerbird.model.page_words import make_page_words
from bowerbird.model.workload import make_workload

PAGES = 200
WORDS = ("red", "blue", "car", "boat", "1999", "moon")


def make_inputs(seed: int, links: tuple[IntArray, IntArray] | None = None, clicks: FloatArray | None = None) -> Inputs:
    """A crawl with everything that can be known of it; links and clicks of one's own if given."""
    rng = np.random.default_rng(seed)
    drawn = rng.integers(0, PAGES, 500), rng.integers(0, PAGES, 500)
    sources, targets = drawn if links is None else links
    crawled = rng.random(PAGES) < 0.7
    had = np.where(crawled, rng.poisson(rng.pareto(1.5, PAGES) * 3), 0.0)
    texts = [[[WORDS[word] for word in rng.integers(0, len(WORDS), page % 4)]] for page in range(PAGES)]
    return Inputs(
        now=86400.0 * 10,
        graph=make_graph(sources, targets, PAGES, crawled),
        clicks=had if clicks is None else clicks,
        host=rng.integers(0, 4, PAGES).astype(np.uint32),
        first_seen=rng.uniform(0, 86400.0 * 11, PAGES),
        rng=np.random.default_rng(seed + 1),
        words=make_page_words(texts),
        workload=make_workload(["red car", "moon"], [5.0, 2.0], str.split),
        groups=(rng.integers(0, 6, PAGES), rng.integers(0, 20, PAGES)),
    )


def draw_links(seed: int) -> tuple[IntArray, IntArray]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, PAGES, 500), rng.integers(0, PAGES, 500)


def hide(inputs: Inputs, seed: int) -> BoolArray:
    rng = np.random.default_rng(seed)
    hidden: BoolArray = inputs.graph.crawled & (rng.random(PAGES) < 0.25)
    return hidden


def describe_hidden(inputs: Inputs, hidden: BoolArray) -> Features:
    return describe_pages(inputs.without(hidden), np.flatnonzero(hidden), take_names(inputs))


def column(features: Features, name: str) -> FloatArray:
    return features.values[:, features.names.index(name)].astype(np.float64)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000))
def test_nothing_rests_on_the_clicks_of_hidden_pages(seed: int) -> None:
    inputs = make_inputs(seed)
    hidden = hide(inputs, seed)
    seen = inputs.clicks.copy()
    # the scale of scores is that of the most clicks: let it be the same
    seen[np.flatnonzero(inputs.graph.crawled & ~hidden)[0]] = seen.max() + 1000.0
    other = np.where(hidden, 100.0 + np.arange(PAGES), seen)
    first, second = (describe_hidden(make_inputs(seed, clicks=clicks), hidden) for clicks in (seen, other))
    assert first.names == second.names
    np.testing.assert_array_equal(first.values, second.values)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000))
def test_nothing_rests_on_the_links_of_hidden_pages(seed: int) -> None:
    links = draw_links(seed)
    inputs = make_inputs(seed, links)
    hidden = hide(inputs, seed)
    theirs = hidden[links[0]]
    turned = (links[0], np.where(theirs, (links[1] + 1 + links[0]) % PAGES, links[1]))
    first, second = (describe_hidden(make_inputs(seed, each), hidden) for each in (links, turned))
    np.testing.assert_array_equal(first.values, second.values)


def test_known_clicks_do_matter() -> None:
    inputs = make_inputs(5)
    hidden = hide(inputs, 5)
    seen = np.where(inputs.graph.crawled & ~hidden, inputs.clicks * 7.0 + 13.0, inputs.clicks)
    first, second = (describe_hidden(make_inputs(5, clicks=clicks), hidden) for clicks in (inputs.clicks, seen))
    changed = {name for place, name in enumerate(first.names) if (first.values != second.values)[:, place].any()}
    for name in ("rw", "linkers' clicks", "co-cited near: log clicks", "directory 1: log clicks", "spelling"):
        assert name in changed
    for name in ("in-links", "pagerank", "words", "asked mean", "days known"):
        assert name not in changed


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000))
def test_rows_are_in_order_and_finite(seed: int) -> None:
    inputs = make_inputs(seed)
    names = take_names(inputs)
    rows = np.flatnonzero(~inputs.graph.crawled)
    whole = describe_pages(inputs, rows, names)
    assert whole.values.shape == (len(rows), len(whole.names))
    assert len(set(whole.names)) == len(whole.names)
    assert np.isfinite(whole.values).all()
    assert column(whole, "in-links").tolist() == inputs.graph.in_degree[rows].tolist()
    assert (column(whole, "days known") >= 0).all()
    turned = describe_pages(replace(make_inputs(seed), rng=np.random.default_rng(seed + 1)), rows[::-1], names)
    for name in ("rw", "word clicks mean", "directory 2: pages", "co-cited: pages"):
        np.testing.assert_array_equal(column(turned, name), column(whole, name)[::-1])


def small_inputs(count: int, **more: object) -> Inputs:
    none = np.zeros(count)
    graph = make_graph([], [], count, np.zeros(count, dtype=np.bool_))
    return Inputs(1.0, graph, none, none.astype(np.uint32), none, np.random.default_rng(0), **more)  # type: ignore[arg-type]  # fields of many types


def test_a_fetched_page_was_known_for_as_long_as_it_had_to_wait() -> None:
    inputs = replace(small_inputs(3), now=86400.0 * 9, first_seen=np.full(3, 86400.0))
    rows = np.arange(3)
    assert column(describe_pages(inputs, rows, None), "days known").tolist() == [8.0, 8.0, 8.0]
    fetched = replace(inputs, asked_at=np.array([86400.0 * 3, 0.0, 86400.0 * 9]))
    assert column(describe_pages(fetched, rows, None), "days known").tolist() == [2.0, 0.0, 8.0]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_next_to_nothing_can_be_described(count: int) -> None:
    empty = make_page_words([[] for _ in range(count)])
    for inputs in (small_inputs(count), small_inputs(count, words=empty, groups=(np.zeros(count, np.int64),))):
        found = describe_pages(inputs, np.arange(count), take_names(inputs))
        assert found.values.shape[0] == count
        assert np.isfinite(found.values).all()
    no_rows = describe_pages(make_inputs(0), np.zeros(0, dtype=np.int64), take_names(make_inputs(0)))
    assert no_rows.values.shape == (0, len(no_rows.names))


def test_directories_are_shrunk_towards_all() -> None:
    labelled = np.array([True, True, True, False, False])
    clicks = np.array([8.0, 8.0, 0.0, 99.0, 99.0])
    columns = describe_directories((np.array([0, 0, 1, 0, 2]),), clicks, labelled)
    level = 2 * np.log(9) / 3
    means = [(2 * np.log(9) + 3 * level) / 5, (2 * np.log(9) + 3 * level) / 5, 3 * level / 4]
    assert columns["directory 0: log clicks"].tolist() == pytest.approx([*means, means[0], level])
    assert columns["directory 0: pages"].tolist() == [2, 2, 1, 2, 0]
    roots = 2 * np.sqrt(8) / 3
    assert columns["directory 0: root clicks"][3] == pytest.approx((2 * np.sqrt(8) + 3 * roots) / 5)
    assert shrink(np.zeros(1), np.zeros(1), 4.0, 2.0).tolist() == [4.0]


def brute_force_co_cited(graph: FrontierGraph, clicks: FloatArray, labelled: BoolArray, power: int) -> list[FloatArray]:
    """Log clicks, clicks and evidence of pages linked together with each page, link by link."""
    logs, amounts, evidence = np.zeros(graph.count), np.zeros(graph.count), np.zeros(graph.count)
    for source in range(graph.count):
        targets = graph.targets[graph.starts[source] : graph.starts[source + 1]].tolist()
        for page in targets:
            for other in targets:
                if other != page and labelled[other]:
                    near = len(targets) ** -float(power)
                    logs[page] += near * np.log1p(clicks[other])
                    amounts[page] += near * clicks[other]
                    evidence[page] += near
    return [logs, amounts, evidence]


@pytest.mark.parametrize(("name", "power"), [("", 0), (" near", 1), (" nearest", 2)])
def test_co_cited_pages_are_those_of_brute_force(name: str, power: int) -> None:
    rng = np.random.default_rng(power)
    labelled = rng.random(40) < 0.6
    graph = make_graph(rng.integers(0, 40, 150), rng.integers(0, 40, 150), 40, labelled)
    clicks = np.where(labelled, rng.poisson(3, 40), 50).astype(np.float64)
    columns = describe_links(graph, clicks, labelled, 50.0)
    logs, amounts, evidence = brute_force_co_cited(graph, clicks, labelled, power)
    strength = 0.3 * np.median(evidence[evidence > 1e-12])
    level = np.log1p(clicks[labelled]).mean()
    np.testing.assert_allclose(columns[f"co-cited{name}: pages"], evidence, atol=1e-9)
    expected = (logs + strength * level) / (evidence + strength)
    np.testing.assert_allclose(columns[f"co-cited{name}: log clicks"], expected, rtol=1e-6)
    np.testing.assert_allclose(columns[f"co-cited{name}: clicks"], amounts / (evidence + strength), atol=1e-6)


def test_linkers_are_those_of_brute_force() -> None:
    inputs = make_inputs(9)
    graph, clicks = inputs.graph, inputs.clicks
    columns = describe_links(graph, clicks, graph.crawled, inputs.clicks_scale)
    starts, sources = graph.into
    for page in graph.frontier.tolist():
        linkers = sources[starts[page] : starts[page + 1]]
        links = graph.out_degree[linkers]
        assert columns["linkers' clicks"][page] == pytest.approx(clicks[linkers].sum())
        assert columns["linkers' clicks a link"][page] == pytest.approx((clicks[linkers] / links).sum())
        assert columns["most clicked linker"][page] == pytest.approx(np.log1p(clicks[linkers].max()))
        assert columns["most links of a linker"][page] == links.max()
        assert columns["fewest links of a linker"][page] == pytest.approx(links.min())
        assert columns["linkers' links"][page] == pytest.approx(links.mean())
        share = np.count_nonzero(clicks[linkers]) / (len(linkers) + 1)
        assert columns["linkers clicked"][page] == pytest.approx(share)


def test_directories_that_link_are_counted_once() -> None:
    # 0, 1 and 2 link to 4; 0 and 1 are in one directory, 2 in that of 4; 3 is not crawled
    crawled = np.array([True, True, True, False, False])
    graph = make_graph([0, 1, 2, 3], [4, 4, 4, 4], 5, crawled)
    clicks = np.array([3.0, 0.0, 8.0, 99.0, 99.0])
    columns = describe_linking_groups(graph, (np.array([0, 0, 1, 2, 1]),), clicks, crawled)
    assert {name: values[4] for name, values in columns.items()} == pytest.approx(
        {
            "linking directories 0": 2.0,
            "linking directories 0: largest share": 2 / 3,
            "linking directories 0: log clicks": (np.log(4) / 2 + np.log(9)) / 3,
            "linked from its directory 0": 1 / 3,
        }
    )
    assert not any(values[:4].any() for values in columns.values())


def test_words_carry_the_clicks_of_pages_that_have_them() -> None:
    texts = [["good", "a1"], ["good"], ["bad"], ["bad"], ["good", "bad"], []]
    names = read_names(make_page_words([[text] for text in texts]), make_workload(["good"], [9.0], str.split))
    labelled = np.array([True, True, True, True, False, False])
    clicks = np.array([20.0, 20.0, 0.0, 0.0, 77.0, 77.0])
    columns = describe_names(names, clicks, labelled, np.random.default_rng(0))
    level = np.log(21) / 2
    good, bad = (2 * np.log(21) + 3 * level) / 5, 3 * level / 5
    assert columns["word clicks high"][4] == pytest.approx(good)
    assert columns["word clicks low"][4] == pytest.approx(bad)
    assert columns["word clicks mean"][4] == pytest.approx((good + bad) / 2)
    assert columns["words with digits"].tolist() == [1, 0, 0, 0, 0, 0]
    assert columns["words"].tolist() == [2, 1, 1, 1, 2, 0]
    assert columns["asked high"][4] == pytest.approx(np.log(10))
    assert columns["asked low"][4] == 0.0
    assert not columns["spelling"].any()  # too few pages to learn spelling from


def test_spelling_reaches_words_that_no_labelled_page_has() -> None:
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, 400)
    texts = [[[f"{('guide', 'archive')[one]}{number}"]] for number, one in enumerate(kind.tolist())]
    clicks = np.where(kind == 0, 30.0, 0.0)
    labelled = np.arange(400) < 300
    columns = describe_names(read_names(make_page_words(texts), None), clicks, labelled, rng)
    new, good = ~labelled, kind == 0
    assert columns["spelling"][new & good].min() > columns["spelling"][new & ~good].max() + 1.0
    assert np.ptp(columns["word clicks mean"][new]) == 0.0


def test_pages_that_the_same_pages_link_to_are_alike() -> None:
    rng = np.random.default_rng(1)
    topic = np.arange(200) % 4
    sources = np.repeat(np.arange(200), 6)
    targets = np.concatenate([rng.choice(np.flatnonzero(topic == topic[page]), 6) for page in range(200)])
    labelled = rng.random(200) < 0.7
    graph = make_graph(sources, targets, 200, labelled)
    units = place_pages(graph, 0)
    lengths = np.linalg.norm(units, axis=1)
    assert units.shape == (200, DIMENSIONS)
    assert lengths[graph.in_degree > 0] == pytest.approx(1.0)
    assert not lengths[graph.in_degree == 0].any()
    clicks = np.where(topic == 2, 50.0, 1.0)
    rows = graph.frontier
    found = describe_neighbours(graph, clicks, labelled, rows, rng)
    assert tuple(found) == NAMES
    mine = topic[rows] == 2
    # one in-link may be from a page that is linked to nothing else near: nearly all, not all
    assert np.median(found["alike: log clicks"][mine]) == pytest.approx(np.log(51), abs=0.1)
    assert np.median(found["alike: log clicks"][~mine]) == pytest.approx(np.log(2), abs=0.1)
    assert (found["alike: most log clicks"] <= np.log(51) + 1e-9).all()
    few = np.zeros(200, dtype=np.bool_)
    few[:NEAREST] = True
    assert not any(values.any() for values in describe_neighbours(graph, clicks, few, rows, rng).values())


def test_a_page_is_not_its_own_neighbour() -> None:
    rng = np.random.default_rng(2)
    graph = make_graph(rng.integers(0, 60, 400), rng.integers(0, 60, 400), 60)
    labelled, rows = np.ones(60, dtype=np.bool_), np.arange(60)
    for page in (3, 17):
        clicks = np.zeros(60)
        clicks[page] = 1000.0
        found = describe_neighbours(graph, clicks, labelled, rows, np.random.default_rng(0))
        assert found["alike: most log clicks"][page] == 0.0
        assert found["alike: most log clicks"].max() > 0.0
