"""A crawl chooses its seeds anew: from a past written by hand."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.crawl.conftest import Command
from tests.crawl.crawling import make_crawl
from tests.crawl.hub_past import urls
from tests.crawl.seed_past import GIVEN, Site

from bowerbird.crawl import hub_study, seed_study
from bowerbird.crawl.seed_report import change_text, last_change_text, report_seeds, summary_text
from bowerbird.crawl.seed_study import gather_crawled, make_seed_study
from bowerbird.crawl.settings import load_settings
from bowerbird.crawl.study_kinds import kind_of
from bowerbird.crawl.studying import Studies, Studying
from bowerbird.crawl.view import CrawlView
from bowerbird.model.errors import ConfigError
from bowerbird.model.hub_study import HubKind
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import UrlKind, UrlState
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.repository import Repository
from bowerbird.store.seed_study_file import read_seed_study, write_seed_study


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path / "crawl")
    yield made
    made.repository.close()


# -- a choice


def test_the_first_choice_adds_to_what_the_seeds_that_people_gave_cover(site: Site) -> None:
    study = site.choose()
    assert study.row.tolist() == [site.hall]
    assert (study.given.tolist(), study.given_pages, study.given_value) == ([site.given], 4, 4.0)
    assert study.before.tolist() == []
    assert (study.pages.tolist(), study.value.tolist()) == ([8], [8.0])  # the hall itself is covered
    assert (study.covered_pages, study.covered_value, study.before_value) == (12, 12.0, 4.0)
    assert (study.all_pages, study.all_value, study.unit) == (12, 12.0, "pages and links to URLs not fetched yet")
    assert study.bound == (12.0, 1.0)
    assert study.depth[[site.given, site.hall, site.far[0]]].tolist() == [255, 0, 1]
    said = (
        "seeds: 1 chosen beside 1 given, 1 new, 0 dropped; "
        "together they cover 100.0% of the value within 1 link, 33.3% before"
    )
    assert change_text(study) == last_change_text(study) == said
    assert [(change.added, change.dropped) for change in study.history] == [(1, 0)]
    assert "chosen anew: they cover more than the seeds before them, by 200.0%" in str(study.info["note"])
    table = site.repository.table
    kept = read_seed_study(site.folder.study("seeds"), table.seed, table.columns["hash"]).study
    assert kept is not None
    assert kept.row.tolist() == study.row.tolist()


def test_seeds_do_not_flicker(tmp_path: Path) -> None:
    site = Site(tmp_path / "crawl", worth_change=1.0)
    first = site.choose()
    assert first.row.tolist() == [site.hall]  # 12 against 4
    rival = site.near[1]
    site.visit(rival, site.now - 10.0, urls("rival", 10))
    for row in site.repository.links(rival).targets.tolist():  # type: ignore[union-attr]  # they were recorded above
        site.visit(row, site.now - 9.0)
    study = site.choose()
    assert study.row.tolist() == [site.hall]  # 14 is not worth twice 12
    assert not study.is_change
    assert "kept: the best that were found cover 16.67% more" in str(study.info["note"])
    assert study.history == first.history
    assert last_change_text(study) == last_change_text(first)
    assert "0 new, 0 dropped; together they cover 54.5% of the value within 1 link, 54.5% before" in change_text(study)
    config = site.folder.config
    config.write_text(config.read_text().replace("worth_change = 1.0", "worth_change = 0.1"))
    site.settings = load_settings(config)
    study = site.choose()
    assert study.row.tolist() == [rival]
    assert study.dropped.tolist() == [site.hall]
    assert (study.covered_value, study.before_value) == (14.0, 12.0)
    assert len(study.history) == 2
    assert study.depth[site.hall] == 0  # what was near once stays near
    site.repository.close()


def test_none_is_chosen_where_those_that_people_gave_cover_everything(tmp_path: Path) -> None:
    site = Site(tmp_path / "crawl", hops=2)
    study = site.choose()
    assert study.row.tolist() == []
    assert not study.is_change
    assert study.history == ()
    assert study.share == 1.0
    report = report_seeds(study, site.now, site.repository.urls)
    said = (
        "0 chosen beside 1 given; together they cover 100.0% of the value within 2 links: no others are worth a change"
    )
    assert summary_text(report) == said
    site.repository.close()


def test_more_given_seeds_than_may_be_chosen_are_no_loss(tmp_path: Path) -> None:
    site = Site(tmp_path / "crawl", k=1)
    many = [GIVEN, *(site.repository.url(row) for row in site.near)]
    site.repository.note_inbox_done(0, tuple(many))
    study = site.choose()
    assert sorted(study.given.tolist()) == sorted([site.given, *site.near])
    assert (study.row.tolist(), study.dropped.tolist(), study.share) == ([], [], 1.0)
    assert study.before_share == 1.0
    assert " 0 dropped; together they cover 100.0%" in change_text(study)
    site.repository.close()


def test_a_chosen_page_that_is_given_later_is_not_dropped(site: Site) -> None:
    assert site.choose().row.tolist() == [site.hall]
    site.repository.note_inbox_done(0, (site.repository.url(site.hall),))
    study = site.choose()
    assert (study.row.tolist(), study.dropped.tolist(), study.share) == ([], [], 1.0)


def test_a_seed_that_is_gone_is_dropped(tmp_path: Path) -> None:
    site = Site(tmp_path / "crawl", k=2)
    assert site.choose().row.tolist() == [site.hall]
    site.settle(site.hall, UrlState.GONE, Outcome.GONE)
    study = site.choose()
    assert site.hall not in study.row
    assert study.dropped.tolist() == [site.hall]
    assert study.history[-1].dropped == 1
    site.repository.close()


def test_a_seed_that_redirects_is_where_that_ends(site: Site) -> None:
    assert site.choose().row.tolist() == [site.hall]
    site.visit(site.near[2], site.now - 5.0, still=tuple(site.far))
    site.settle(site.hall, UrlState.REDIRECT, Outcome.REDIRECT, target=site.near[2])
    study = site.choose()
    assert (study.before.tolist(), study.row.tolist()) == ([site.near[2]], [site.near[2]])
    assert not study.is_change
    assert len(study.history) == 1


def test_the_last_twenty_changes_are_kept(site: Site) -> None:
    study = site.choose()
    table, path = site.repository.table, site.folder.study("seeds")
    past = tuple(replace(study.history[0], at=1e9 + nth) for nth in range(20))
    write_seed_study(path, replace(study, history=past), table.seed, table.columns["hash"])
    site.settle(site.hall, UrlState.GONE, Outcome.GONE)
    history = site.choose().history
    assert [change.at for change in history] == [*(1e9 + nth for nth in range(1, 20)), site.now]


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
    assert (study.row.tolist(), study.share) == ([], 1.0)
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
    assert [seed["pages"] for seed in status["seeds"]] == [8]
    assert (status["dropped"], status["given"], status["given_value"]) == ([], 1, 4.0)
    assert status["history"][0]["added"] == 1
    hall = status["seeds"][0]["url"]
    said = command("status", root).out
    assert "1 chosen beside 1 given; together they cover 100.0% of the value within 1 link; last change " in said
    assert "1 new, 0 dropped, 33.3% to 100.0%" in said
    story = command("explain", root, hall, "--json").json()
    assert (story["depth"], story["near_depth"]) == (1, 0)
    assert "1 link from a seed, 0 from a chosen one" in command("explain", root, hall).out
    assert (story["seed"]["place"], story["seed"]["pages"]) == (1, 8)
    assert story["found_how"] == f"on {GIVEN}"
    assert "chosen    by the crawl to start from: seed 1 of 1: adds 8 pages" in command("explain", root, hall).out
    assert command("explain", root, GIVEN, "--json").json()["seed"] is None
    assert command("explain", root, GIVEN, "--json").json()["found_how"] == "given by a person"
    off = root / "bowerbird.toml"
    off.write_text(off.read_text().replace("[seeds]", "[seeds]\nstudy_every_s = 0", 1))
    assert command("status", root, "--json").json()["seeds"] is None
    assert "none chosen: turned off: seeds.study_every_s = 0" in command("status", root).out
    assert "seed" not in str(command("explain", root, hall).out.split("chosen")[1:])


def test_depth_zero_does_not_make_a_sitemap_one_that_people_gave(site: Site) -> None:
    row, _ = site.repository.add_urls(["http://seed.example/sitemap.xml"], at=1.0, kind=UrlKind.SITEMAP, depth=1)
    site.visit(site.hall, site.now - 1.0, still=(int(row[0]), *site.far))
    study = site.choose()
    assert study.depth[row[0]] == 1
    view = CrawlView(site.folder.root)
    view.repository.table.near_depth[row[0]] = 0  # whatever a choice comes to
    assert view.found_how("http://seed.example/sitemap.xml") == "looked for at a well-known place"
    view.close()


def test_the_command_chooses_and_shows_them(site: Site, command: Command) -> None:
    site.repository.commit()
    root = site.folder.root
    ran = command("study", root, "--policy", "seeds")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("seeds: 1 chosen beside 1 given, 1 new, 0 dropped; together they cover 100.0% of the")
    assert "(new)" in ran.out
    assert "value 12 of 12 (pages and links to URLs not fetched yet), 4 by those that were given; 12 pages" in ran.out
    assert "no choice of 1 beside the given covers more than 100.0%" in ran.out
    assert "a crawl itself chooses none before 200 pages are fetched" in ran.err
    site.settle(site.hall, UrlState.GONE, Outcome.GONE)
    site.repository.commit()
    assert f"dropped              {site.repository.url(site.hall)}" in command("study", root, "--policy", "seeds").out
    data = command("study", root, "--policy", "seeds", "--json").json()
    assert (data["method"], len(data["seeds"]), data["added"]) == ("seeds", 1, [])
    both = command("study", root, "--policy", "pagerank+seeds", "--json").json()
    assert [one["method"] for one in both] == ["pagerank", "seeds"]
    assert "|seeds" in command("study", root).err
    off = root / "bowerbird.toml"
    off.write_text(off.read_text().replace("[seeds]", "[seeds]\nstudy_every_s = 0", 1))
    assert "no crawl goes by it: seeds.study_every_s = 0" in command("study", root, "--policy", "seeds").err


def test_echo_takes_a_chosen_seed_for_a_hub(site: Site) -> None:
    assert site.hall not in site.study().hubs.row
    site.choose()
    study = site.study()
    kinds = dict(zip(study.hubs.row.tolist(), study.hubs.kind.tolist(), strict=True))
    assert kinds[site.hall] == HubKind.SEED
    assert kinds[site.given] == HubKind.MAIN_PAGE
    site.settings = site.settings.with_overrides("seeds", study_every_s=0.0)
    assert site.hall not in site.study().hubs.row  # a choice that is in the folder is not gone by


def test_a_listing_that_is_chosen_stays_one(site: Site) -> None:
    day_s = 86400.0
    old = site.add("http://seed.example/list", site.now - 90 * day_s)
    site.visit(old, site.now - 90 * day_s, urls("listed", 20))
    site.visit(site.given, site.now - 5.0, still=(old, *site.near))
    for row in site.repository.links(old).targets.tolist():  # type: ignore[union-attr]  # they were recorded above
        site.visit(row, site.now - 4.0)
    assert site.choose().row.tolist() == [old]
    study = site.study()
    assert dict(zip(study.hubs.row.tolist(), study.hubs.kind.tolist(), strict=True))[old] == HubKind.LISTING


def test_a_choice_made_while_urls_are_read_is_not_taken_for_another_crawls(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = site.choose()
    path, table = site.folder.study("seeds"), site.repository.table

    def open_late(*arguments: object, **options: object) -> Repository:
        made = Repository(*arguments, **options)  # type: ignore[arg-type]  # as they came
        site.add(f"http://a.example/late-{len(table)}", site.now)
        depth = np.append(first.depth, np.full(len(table) - first.count, 255, np.uint8))
        later = replace(first, count=len(table), depth=depth)
        write_seed_study(path, later, table.seed, table.columns["hash"])
        return made

    for module in (seed_study, hub_study):
        monkeypatch.setattr(module, "Repository", open_late)
    study = site.choose()
    assert study.before.tolist() == [site.hall]
    hubs = site.study().hubs
    assert dict(zip(hubs.row.tolist(), hubs.kind.tolist(), strict=True))[site.hall] == HubKind.SEED


def test_a_damaged_file_is_noted_and_the_next_begins_anew(site: Site, command: Command) -> None:
    site.choose()
    site.folder.study("seeds").write_bytes(b"damaged")
    studying = Studying(site.repository, "seeds", site.settings)
    studying.take_up()
    assert "is damaged and ignored" in studying.said
    assert site.repository.seed_study is None
    view = CrawlView(site.folder.root)
    assert view.seeds() is None
    assert "is damaged" in view.seed_note
    assert view.status()["seed_note"] == view.seed_note
    view.close()
    assert "none chosen: " in command("status", site.folder.root).out
    assert "is damaged" in command("status", site.folder.root).out
    assert site.choose().before.tolist() == []


# -- when it is made


def test_none_is_begun_with_few_pages_or_before_its_time(site: Site) -> None:
    studying = Studying(site.repository, "seeds", site.settings)
    studying._due_at = 0.0
    studying.keep_up()
    assert not studying.is_busy  # 12 pages are no 200
    site.choose()
    studying.take_up()
    assert studying._due_at > time.monotonic() + 3000.0  # an hour after the last, also after a restart


def test_there_is_enough_to_look_at_from_two_hundred_pages_on(site: Site) -> None:
    feed = site.add("http://a.example/feed", site.now, kind=UrlKind.FEED)
    site.visit(feed, site.now)
    ripe = kind_of("seeds").is_ripe
    for row in site.visit(site.near[1], site.now, urls("more", 199 - 12)):
        site.visit(row, site.now)
    site.add("http://a.example/waiting", site.now)
    site.repository.commit()
    assert not ripe(site.repository)  # 199 pages, a feed, and one that waits
    site.visit(site.add("http://a.example/last", site.now), site.now)
    site.repository.commit()
    assert ripe(site.repository)


def test_only_a_change_is_told(site: Site) -> None:
    studies = Studies(site.repository, ("seeds",), site.settings)
    studies.take_up()
    studies.keep_up()
    assert studies.seeds_said == ""
    site.choose()
    studies.keep_up()
    assert studies.seeds_said.startswith("seeds: 1 chosen beside 1 given, 1 new, 0 dropped")
    assert studies.tell() == ("", 0.0)  # bids do not rest on it
    again = Studies(site.repository, ("seeds",), site.settings)
    again.take_up()
    again.keep_up()
    assert again.seeds_said == ""  # that was told when it was new
    assert site.repository.table.near_depth[site.hall] == 0


def test_a_change_made_between_runs_is_told_by_the_next(site: Site) -> None:
    site.choose()
    site.choose()  # the second kept what the first chose
    studies = Studies(site.repository, ("seeds",), site.settings)
    studies.take_up()
    studies.keep_up()
    assert "1 new, 0 dropped; together they cover 100.0% of the value within 1 link, 33.3% before" in studies.seeds_said
    again = Studies(site.repository, ("seeds",), site.settings)
    again.take_up()
    again.keep_up()
    assert again.seeds_said == ""
