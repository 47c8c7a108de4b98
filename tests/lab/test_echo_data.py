"""Worlds of hubs from folders: what is read, and what is said of files that are wrong."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from bowerbird.lab.echo_data import host_of, read_echo_world
from bowerbird.lab.echo_world import DAY_S
from bowerbird.model.errors import InputFileError

EVENTS = "source_id page_id first_seen prev_snapshot last_seen gone_at\n"


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        stem, _, ending = name.rpartition("_")
        (folder / f"{stem}.{ending}").write_text(text.replace(" ", "\t" if ending == "tsv" else ","), encoding="utf-8")
    return folder


def test_sections_with_clicks(tmp_path: Path) -> None:
    articles = "article source first_click_s\n7 sport 90000\n8 news 1728000\n9 news 100\n"
    clicks = "article bin clicks\n7 75 4\n7 76 6\n8 1440 2\n9 0 1\n5 3 1\n"
    world = read_echo_world("mine", write(tmp_path, articles_tsv=articles, clicks_20min_tsv=clicks))
    assert world.hub_names == ("news", "sport")
    assert [time / DAY_S for time in (world.begin_s, world.end_s, world.scored_from_s, world.scored_to_s)] == [
        2,
        20,
        5,
        19,
    ]
    assert world.old.tolist() == [True, False, True]
    assert world.total_profit.tolist() == [10.0, 2.0, 1.0]
    assert world.link_to_s[0] == 90_000 + 86_400
    assert any("1 rows are of pages that articles lacks (e.g. '5')" in note for note in world.notes)


def test_index_pages_with_real_presence(tmp_path: Path) -> None:
    events = (
        "source_id,page_id,first_seen,prev_snapshot,last_seen,gone_at,n_present,first_pos,best_pos,n_runs\n"
        "0,a,1000,,4600,8200,2,1,1,1\n1,b,2000,1500,5600,9200,2,3,1,1\n2,b,5600,5000,5600,,1,1,1,1\n"
    )
    sources = "source_id,name,page_url\n0,x.de/a,http\n1,x.de/b,http\n2,y.de,http\n3,y.de/empty,http\n"
    world = read_echo_world("mine", write(tmp_path, link_events_csv=events, sources_csv=sources))
    assert world.hub_names == ("x.de/a", "x.de/b", "y.de", "y.de/empty")
    assert world.hub_group.tolist() == [0, 0, 1, 1]
    assert world.old.tolist() == [True, False]
    assert world.appeared_s.tolist() == [0.0, 1000.0]
    assert world.total_profit.tolist() == [2.0, 2.0]
    assert world.link_position.tolist() == [0, 2, 0]
    assert world.unit == "hours of presence"


def test_hosts_with_votes(tmp_path: Path) -> None:
    items = "item_id,url,first_seen\n" + "".join(f"{n},https://www.a.org/{n},{1000 + 100 * n}\n" for n in range(4))
    items += "9,https://b.org/,1000\n8,item?id=8,1000\n"
    votes = "snapshot_unix,rank,item_id,upvotes,comments\n1100,1,1,10,0\n1200,1,1,15,0\n1300,1,1,12,0\n"
    votes += "1400,1,1,18,\n1300,1,9,5,\n"
    world = read_echo_world("mine", write(tmp_path, items_csv=items, snapshots_csv=votes))
    assert world.hub_names == ("a.org",)
    assert world.page_names == ("0", "1", "2", "3")
    assert world.old.tolist() == [True, False, False, False]
    assert world.total_profit.tolist() == [0.0, 8.0, 0.0, 0.0]
    assert world.profit_between(np.array([1]), np.array([150.0]), np.array([np.inf])).tolist() == [5.5]
    assert host_of("http://[bad") == ""


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, r"none of articles.tsv, link_events.csv and items.csv"),
        ({"articles_tsv": "article source first_click_s\n1 a 5\n"}, r"no clicks_20min.tsv"),
        (
            {
                "articles_tsv": "article source first_click_s\n1 a x\n2 b y\n",
                "clicks_20min_tsv": "article bin clicks\n1 2 3\n",
            },
            r"articles.tsv, line 2: first_click_s is 'x', no number.*docs/lab-data.md",
        ),
        (
            {
                "articles_tsv": "article source first_click_s\n1 a 5\n1 b 6\n",
                "clicks_20min_tsv": "article bin clicks\n1 2 3\n",
            },
            r"articles.tsv: article '1' has two lines. Keep one",
        ),
        (
            {
                "link_events_csv": f"{EVENTS}0 a 5000 4000 6000 4500\n",
                "sources_csv": "source_id name\n0 x\n",
            },
            r"link_events.csv: source 0, page a is gone at 4500, before it was first seen at 5000",
        ),
        (
            {
                "link_events_csv": f"{EVENTS}0 a 5000  6000 6500\n",
                "sources_csv": "source_id name\n0 x\n",
            },
            r"every page has a link without prev_snapshot",
        ),
        (
            {
                "items_csv": "item_id url first_seen\n1 http://a.b/ 5\n",
                "snapshots_csv": "snapshot_unix rank item_id upvotes\n5 1 1 2\n",
            },
            r"items.csv: no host has 3 items or more",
        ),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, files: dict[str, str], said: str) -> None:
    with pytest.raises(InputFileError, match=said):
        read_echo_world("mine", write(tmp_path, **files))


@pytest.mark.parametrize(
    ("name", "hubs", "pages", "days"),
    [
        ("globo", 60, 45_704, (2, 16, 5, 15)),
        ("frontpages", 139, 175_153, (0, 57, 7, 56)),
        ("hackernews", 1553, 19_667, (0, 364, 60, 361)),
    ],
)
def test_shared_data(shared_data: Path, name: str, hubs: int, pages: int, days: tuple[int, ...]) -> None:
    world = read_echo_world(name, shared_data / name)
    assert (world.hub_count, world.page_count) == (hubs, pages)
    assert tuple(time / DAY_S for time in (world.begin_s, world.end_s, world.scored_from_s, world.scored_to_s)) == days
    assert np.all(np.diff(world.gain_page) >= 0)
    assert np.all(world.gain_to_s > world.gain_from_s)
