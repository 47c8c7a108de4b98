"""A table in, a ranking out: the same that `bowerbird rank` makes of files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.crawl.conftest import Command, command

import bowerbird
from bowerbird.library.ranking_methods import ASKING, METHODS

__all__ = ["Command", "command"]

LINKS = {
    "source": ["a", "a", "b", "b", "c", "c", "a", "b"],
    "target": ["b", "new1", "new1", "new2", "new2", "new3", "new1", "b"],
}
CLICKS = {"page": ["a", "b", "c"], "clicks": [10, 3, 0]}


def make_web() -> tuple[dict[str, list[Any]], dict[str, list[Any]]]:
    rng = np.random.default_rng(5)
    worth = rng.pareto(1.2, 500) + 0.1
    names = [
        f"http://h{page % 5}.example/{('news', 'old')[page % 2]}/red_car_{page % 11}/{page}" for page in range(500)
    ]
    names[5], names[6] = "Home page", "about"
    sources, targets = rng.integers(0, 250, 4000), rng.choice(500, 4000, p=worth / worth.sum())
    links = {"source": [names[page] for page in sources], "target": [names[page] for page in targets]}
    return links, {"page": names[:250], "clicks": rng.poisson(worth[:250]).tolist()}


@pytest.mark.parametrize("method", METHODS)
def test_a_table_is_ranked_as_a_file_is(tmp_path: Path, command: Command, method: str) -> None:
    links, clicks = make_web()
    asked = method in ASKING
    words: list[object] = ["rank", "--method", method, "-n", 40, "--seed", 3, "--json"]
    queries = {"query": ["red car 3", "news", "car"], "frequency": [9.0, 4.0, 1.5]}
    crawled = {"page": clicks["page"][::2]}
    tables = {"links": links, "clicks": clicks} | ({"queries": queries, "crawled": crawled} if asked else {})
    for name, table in tables.items():
        parquet.write_table(pa.table(table), tmp_path / f"{name}.parquet")
        words += [f"--{name}", tmp_path / f"{name}.parquet"]
    ran = command(*words)
    assert ran.code == 0, ran.err
    rows = json.loads(ran.out)["rows"]
    more: dict[str, Any] = {"queries": pl.DataFrame(queries), "crawled": crawled["page"]} if asked else {}
    ranking = bowerbird.rank(links, pd.DataFrame(clicks), method=method, n=40, seed=3, **more)
    assert ranking.to_arrow().to_pylist() == rows
    assert len(rows) == 40
    assert ranking.method == method


def test_a_ranking_is_a_table_of_any_library() -> None:
    ranking = bowerbird.rank(LINKS, CLICKS)
    assert ranking.page.tolist() == ["new1", "new2", "new3"]
    assert ranking.in_links.tolist() == [2, 2, 1]
    assert list(ranking.columns()) == ["page", "score", "expected_clicks", "in_links"]
    expected = ranking.to_arrow().to_pydict()
    assert pl.DataFrame(ranking).to_dict(as_series=False) == expected
    assert pd.DataFrame(ranking.columns()).to_dict("list") == expected
    assert pa.table(ranking).to_pydict() == expected
    assert (ranking.calibration.kind, ranking.notes) == ("prior", ())


def test_in_degree_has_two_names_and_n_cuts() -> None:
    whole = bowerbird.rank(LINKS, CLICKS, method="in-degree")
    assert whole.method == "indegree"
    assert bowerbird.rank(LINKS, CLICKS, method="indegree", n=2).page.tolist() == whole.page.tolist()[:2]


def test_who_is_crawled_can_be_said() -> None:
    ranking = bowerbird.rank(LINKS, CLICKS, crawled=["a", "c"], method="indegree")
    assert sorted(ranking.page) == ["b", "new1", "new2", "new3"]
    assert ranking.notes == ("1 pages with clicks not crawled: not looked at",)


def test_a_workload_may_be_made_before() -> None:
    links = {"source": ["Home"] * 4, "target": ["Red_car_1", "Red_car_2", "Blue_boat_1", "Blue_boat_2"]}
    clicks = {"page": ["Home"], "clicks": [5]}
    queries = {"query": ["blue boat", " blue boat ", "submarine"], "frequency": [5, 4, 1]}
    workload = bowerbird.workload_of(queries)
    assert workload.frequency.tolist() == [9.0, 1.0]
    by_table = bowerbird.rank(links, clicks, queries=queries, method="query-driven")
    by_workload = bowerbird.rank(links, clicks, queries=workload, method="query-driven")
    assert by_table.score.tolist() == by_workload.score.tolist()
    assert {page.rsplit("_", 1)[0] for page in by_table.page[:2]} == {"Blue_boat"}


def test_queries_that_say_nothing_are_noted() -> None:
    queries = {"query": ["submarine"], "frequency": [4]}
    told = bowerbird.rank(LINKS, CLICKS, queries=queries, method="hybrid").notes
    assert told == ("no query has words of a page on the frontier: no page is told from another by queries",)
    told = bowerbird.rank(LINKS, CLICKS, queries=queries).notes
    assert told == ("queries not read, for rw-eg does not look at queries",)


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"method": "rw-ge"}, bowerbird.ConfigError, "method 'rw-ge' is not known; did you mean 'rw-eg'? There are"),
        ({"method": "best"}, bowerbird.ConfigError, "method 'best' is not known. There are random, indegree"),
        ({"method": "hybrid"}, bowerbird.ConfigError, "method 'hybrid': needs queries to look for. Pass"),
        ({"real_share": float("nan")}, bowerbird.ConfigError, "real_share nan: must be a number from 0 to 1."),
        ({"n": 0}, bowerbird.ConfigError, "n 0: must be 1 or more, or None for all."),
        ({"seed": -1}, bowerbird.ConfigError, "seed -1: must be 0 or more."),
        ({"crawled": "a"}, bowerbird.TableError, "crawled: 'a' is one name. Give a list of names, or a table."),
        ({"crawled": {"who": ["a"]}}, bowerbird.TableError, "crawled: has no column page"),
        ({"crawled": ["a", None]}, bowerbird.TableError, "crawled: row 1: page is empty."),
        ({"crawled": [*"abc", "new1", "new2", "new3"]}, bowerbird.TableError, "links: links to no page that is not"),
        ({"links": {"source": [], "target": []}}, bowerbird.TableError, "links: holds no rows."),
        ({"links": {"source": ["a"], "dest": ["b"]}}, bowerbird.TableError, "links: has no column target (or to, dst"),
        ({"clicks": {"page": ["a"], "clicks": [-1]}}, bowerbird.TableError, "clicks: row 0: clicks is -1, no number"),
        (
            {"queries": {"query": ["?!"], "frequency": [1]}, "method": "hybrid"},
            bowerbird.TableError,
            "queries: none of them has a word to look for.",
        ),
        (
            {"queries": {"query": ["car"], "frequency": [None]}, "method": "hybrid"},
            bowerbird.TableError,
            "queries: row 0: frequency is empty, no number",
        ),
    ],
)
def test_what_cannot_be_ranked_is_refused(options: dict[str, Any], error: type[Exception], said: str) -> None:
    arguments = {"links": LINKS, "clicks": CLICKS, **options}
    with pytest.raises(error) as told:
        bowerbird.rank(**arguments)
    assert said in str(told.value)
    assert isinstance(told.value, bowerbird.BowerbirdError)


def test_tables_without_clicks_are_ranked_by_links() -> None:
    ranking = bowerbird.rank(LINKS, {"page": [], "clicks": []}, method="pagerank")
    assert set(ranking.page) == {"new1", "new2", "new3"}
    assert bowerbird.rank(pl.DataFrame(LINKS), pl.DataFrame({"page": [], "clicks": []})).page.tolist() != []
