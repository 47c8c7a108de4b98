"""A crawl chooses its seeds anew: from a past written by hand, and while it runs."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tests.crawl.conftest import Command
from tests.crawl.crawling import Left, interrupt, make_crawl, run_command, running_crawl, wait_for
from tests.crawl.hub_past import urls
from tests.crawl.seed_past import GIVEN, Site

from bowerbird.crawl.seed_report import change_text
from bowerbird.crawl.seed_study import gather_crawled, make_seed_study
from bowerbird.crawl.settings import load_settings
from bowerbird.crawl.study_kinds import kind_of
from bowerbird.crawl.studying import Studies, Studying
from bowerbird.crawl.view import CrawlView
from bowerbird.lab.world import World, WorldServer, WorldSpec
from bowerbird.model.errors import ConfigError
from bowerbird.model.hub_study import HubKind
from bowerbird.model.outcome import Outcome
from bowerbird.model.seed_study import SeedStudy
from bowerbird.model.url_state import UrlKind, UrlState
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.seed_study_file import read_seed_study


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path / "crawl")
    yield made
    made.repository.close()


# -- a choice


def test_the_first_choice_is_measured_against_the_seeds_that_people_gave(site: Site) -> None:
    study = site.choose()
    assert study.row.tolist() == [site.hall]
    assert study.before.tolist() == [site.given]
    assert (study.pages.tolist(), study.covered_value, study.before_value) == ([9], 9.0, 4.0)
    assert (study.all_pages, study.all_value, study.unit) == (12, 12.0, "pages, with those to be found")
    assert study.bound is not None
    assert study.bound[0] >= 9.0
    assert study.depth[[site.given, site.hall, site.far[0]]].tolist() == [255, 0, 1]
    said = "seeds: 1 chosen, 1 new, 1 dropped; it covers 75.0% of the value within 1 link, the one before 33.3%"
    assert change_text(study) == said
    assert [(change.added, change.dropped) for change in study.history] == [(1, 1)]
    assert "chosen anew" in str(study.info["note"])
    table = site.repository.table
    kept = read_seed_study(site.folder.study("seeds"), table.seed, table.columns["hash"]).study
    assert kept is not None
    assert kept.row.tolist() == study.row.tolist()


def test_seeds_do_not_flicker(tmp_path: Path) -> None:
    site = Site(tmp_path / "crawl", worth_change=1.0)
    assert site.choose().row.tolist() == [site.hall]  # 9 against 4
    rival = site.near[1]
    site.visit(rival, site.now - 10.0, urls("rival", 10))
    for row in site.repository.links(rival).targets.tolist():  # type: ignore[union-attr]  # they were recorded above
        site.visit(row, site.now - 9.0)
    study = site.choose()
    assert study.row.tolist() == [site.hall]  # 11 is not worth twice 9
    assert not study.is_change
    assert "kept: the best that were found cover 22.22% more" in str(study.info["note"])
    assert len(study.history) == 1
    config = site.folder.config
    config.write_text(config.read_text().replace("worth_change = 1.0", "worth_change = 0.2"))
    site.settings = load_settings(config)
    study = site.choose()
    assert study.row.tolist() == [rival]
    assert study.dropped.tolist() == [site.hall]
    assert (study.covered_value, study.before_value) == (11.0, 9.0)
    assert len(study.history) == 2
    assert study.depth[site.hall] == 0  # what was near once stays near
    site.repository.close()


def test_seeds_that_people_gave_stay_where_none_are_better(tmp_path: Path) -> None:
    site = Site(tmp_path / "crawl", hops=2)
    study = site.choose()
    assert study.row.tolist() == [site.given]
    assert not study.is_change
    assert study.history == ()
    assert study.share == 1.0
    site.repository.close()


def test_a_seed_that_is_gone_is_dropped(tmp_path: Path) -> None:
    site = Site(tmp_path / "crawl", k=2)
    assert site.choose().row.tolist() == [site.hall, site.given]
    site.settle(site.hall, UrlState.GONE, Outcome.GONE)
    study = site.choose()
    assert site.hall not in study.row
    assert study.dropped.tolist() == [site.hall]
    assert study.history[-1].dropped == 1
    site.repository.close()


def test_a_redirect_is_no_link(site: Site) -> None:
    door = site.near[1]
    site.visit(site.given, site.now - 5.0, still=(door, site.near[2]))  # the hall is linked no more
    site.settle(door, UrlState.REDIRECT, Outcome.REDIRECT, target=site.hall)
    site.repository.commit()
    crawled = gather_crawled(site.repository, site.settings, site.now)
    assert door not in crawled.row
    given, hall = crawled.number(np.array([site.given, site.hall])).tolist()
    graph = crawled.graph
    assert hall in graph.targets[graph.starts[given] : graph.starts[given + 1]]
    study = site.choose()
    assert study.row.tolist() == [site.hall]
    past = Site(site.folder.root.parent / "other", hops=2)
    past.visit(past.given, past.now - 5.0, still=(past.near[1], past.near[2]))
    past.settle(past.near[1], UrlState.REDIRECT, Outcome.REDIRECT, target=past.hall)
    study = past.choose()
    assert study.row.tolist() == [past.given]
    assert study.depth[[past.near[1], past.hall, past.far[0]]].tolist() == [1, 1, 2]
    past.repository.close()


def test_links_to_pages_not_fetched_yet_count_by_their_chance(site: Site) -> None:
    site.visit(site.near[2], site.now - 5.0, urls("unseen", 4))
    site.repository.commit()
    crawled = gather_crawled(site.repository, site.settings, site.now)
    place = int(crawled.number(np.array([site.near[2]]))[0])
    chance = 13 / 14  # 12 URLs were fetched, 12 are pages
    assert crawled.weight[place] == pytest.approx(1.0 + 4 * chance)
    assert "4 links to URLs not fetched yet" in crawled.notes[0]


def test_a_crawl_without_pages_is_told(tmp_path: Path) -> None:
    make_crawl(tmp_path / "crawl", [GIVEN])
    folder = CrawlFolder(tmp_path / "crawl")
    with pytest.raises(ConfigError, match="has no fetched page yet"):
        make_seed_study(folder, load_settings(folder.config), time.time())


# -- what it does


def test_who_looks_counts_depths_from_it_and_is_told_of_it(site: Site, command: Command) -> None:
    root = site.folder.root
    assert command("status", root, "--json").json()["seeds"] is None
    site.choose()
    status = command("status", root, "--json").json()["seeds"]
    assert [seed["pages"] for seed in status["seeds"]] == [9]
    assert status["dropped"] == [GIVEN]
    assert status["history"][0]["added"] == 1
    hall = status["seeds"][0]["url"]
    said = command("status", root).out
    assert "1 seed covers 75.0% of the value within 1 link; last change " in said
    assert "1 new, 1 dropped, 33.3% to 75.0%" in said
    story = command("explain", root, hall, "--json").json()
    assert (story["depth"], story["seed"]["place"], story["seed"]["pages"]) == (0, 1, 9)
    assert story["found_how"] == f"on {GIVEN}"
    assert "chosen    by the crawl to start from: seed 1 of 1: adds 9 pages" in command("explain", root, hall).out
    assert command("explain", root, GIVEN, "--json").json()["seed"] is None
    assert command("explain", root, GIVEN, "--json").json()["found_how"] == "given by a person"
    off = root / "bowerbird.toml"
    off.write_text(off.read_text().replace("[seeds]", "[seeds]\nstudy_every_s = 0", 1))
    assert command("status", root, "--json").json()["seeds"] is None
    assert "seed" not in str(command("explain", root, hall).out.split("chosen")[1:])


def test_depth_zero_does_not_make_a_sitemap_one_that_people_gave(site: Site) -> None:
    row, _ = site.repository.add_urls(["http://seed.example/sitemap.xml"], at=1.0, kind=UrlKind.SITEMAP, depth=1)
    site.visit(site.hall, site.now - 1.0, still=(int(row[0]), *site.far))
    study = site.choose()
    assert study.depth[row[0]] == 1
    view = CrawlView(site.folder.root)
    view.repository.table.columns["depth"][row[0]] = 0  # whatever a choice comes to
    assert view.found_how("http://seed.example/sitemap.xml") == "looked for at a well-known place"
    view.close()


def test_the_command_chooses_and_shows_them(site: Site, command: Command) -> None:
    site.repository.commit()
    root = site.folder.root
    ran = command("study", root, "--policy", "seeds")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("seeds: 1 chosen, 1 new, 1 dropped; it covers 75.0% of the value")
    assert "(new)" in ran.out
    assert f"dropped              {GIVEN}" in ran.out
    assert "no choice of 1 covers more than" in ran.out
    data = command("study", root, "--policy", "seeds", "--json").json()
    assert (data["method"], len(data["seeds"]), data["added"]) == ("seeds", 1, [])
    both = command("study", root, "--policy", "pagerank+seeds", "--json").json()
    assert [one["method"] for one in both] == ["pagerank", "seeds"]
    assert "|seeds" in command("study", root).err


def test_echo_takes_a_chosen_seed_for_a_hub(site: Site) -> None:
    assert site.hall not in site.study().hubs.row
    site.choose()
    study = site.study()
    kinds = dict(zip(study.hubs.row.tolist(), study.hubs.kind.tolist(), strict=True))
    assert kinds[site.hall] == HubKind.SEED
    assert kinds[site.given] == HubKind.MAIN_PAGE


def test_a_damaged_file_is_noted_and_the_next_begins_anew(site: Site) -> None:
    site.choose()
    site.folder.study("seeds").write_bytes(b"damaged")
    studying = Studying(site.repository, "seeds", site.settings)
    studying.take_up()
    assert "is damaged and ignored" in studying.said
    assert site.repository.seed_study is None
    view = CrawlView(site.folder.root)
    assert view.seeds() is None
    assert "is damaged" in view.seed_note
    view.close()
    assert site.choose().before.tolist() == [site.given]


# -- when it is made


def test_none_is_begun_with_few_pages_or_before_its_time(site: Site) -> None:
    studying = Studying(site.repository, "seeds", site.settings)
    studying._due_at = 0.0
    studying.keep_up()
    assert not studying.is_busy  # 12 pages are no 200
    assert kind_of("seeds").fewest_pages == 200
    site.choose()
    studying.take_up()
    assert studying._due_at > time.monotonic() + 3000.0  # an hour after the last, also after a restart


def test_only_a_change_is_told(site: Site) -> None:
    studies = Studies(site.repository, ("seeds",), site.settings)
    studies.take_up()
    studies.keep_up()
    assert studies.seeds_said == ""
    site.choose()
    studies.keep_up()
    assert studies.seeds_said.startswith("seeds: 1 chosen, 1 new, 1 dropped")
    assert studies.tell() == ("", 0.0)  # bids do not rest on it
    again = Studies(site.repository, ("seeds",), site.settings)
    again.take_up()
    again.keep_up()
    assert again.seeds_said == ""  # that was told when it was new
    assert site.repository.table.columns["depth"][site.hall] == 0


# -- live

SPEC = WorldSpec(seed=3, frozen=True, hosts=12, pages=700, crawl_delay_share=0.0, redirect_share=0.04)


def depths(root: Path) -> tuple[np.ndarray, SeedStudy]:
    """Those of everybody who looks, and the choice they go by."""
    view = CrawlView(root)
    try:
        study = view.repository.seed_study
        assert study is not None
        return view.repository.table.columns["depth"].copy(), study
    finally:
        view.close()


def test_a_crawl_chooses_its_seeds_tells_goes_on_with_them_after_a_kill_and_can_be_kept_from_it(tmp_path: Path) -> None:
    root = tmp_path / "crawl"
    left, made = Left(root), CrawlFolder(root).study("seeds")

    def fetches() -> int:
        return int(left.one("SELECT coalesce(max(id), 0) FROM fetches"))

    def said() -> str:
        live = left.rows("SELECT value FROM meta WHERE key = 'live'")
        return str(json.loads(str(live[0][0]))["seeds"]) if live else ""

    with WorldServer(World(SPEC)) as server:
        make_crawl(root, server.world.seeds()[:1], {"seeds": {"study_every_s": 1.0, "k": 4, "hops": 2}})
        with running_crawl(root, "--rate", 100) as process:
            assert wait_for(lambda: said() != "", 40)
            process.send_signal(signal.SIGKILL)
            _, err = process.communicate(timeout=10)
        told = [line for line in err.splitlines() if " seeds: " in line]
        assert told
        assert "of the value within 2 links, the one before " in told[0]
        assert left.one("SELECT count(DISTINCT url) FROM fetches WHERE outcome = ?", int(Outcome.OK)) >= 200
        seen, study = depths(root)
        assert (seen[study.row] == 0).all()
        assert (seen[: study.count] <= study.depth).all()
        stored = np.array([depth for (depth,) in left.rows("SELECT depth FROM urls ORDER BY id")])
        assert (seen < stored).any()  # some are nearer than they were
        with running_crawl(root, "--rate", 100) as process:
            before = fetches()
            assert wait_for(lambda: fetches() > before + 30, 20)
            ran = interrupt(process)
        assert ran.code in (0, 130), ran.err
        again, later = depths(root)
        assert (again[: len(seen)] <= seen).all()
        assert (again[later.row] == 0).all()
        left.check_agreement(tmp_path / "scratch")
        assert later.history
        assert 0 < len(later.row) <= 4
        config = root / "bowerbird.toml"
        config.write_text(config.read_text().replace("study_every_s = 1.0", "study_every_s = 0", 1))
        made.unlink()
        ran = run_command("crawl", root, "--rate", 50, "--for", 3)
        assert " seeds: " not in ran.err
        assert not made.exists()
