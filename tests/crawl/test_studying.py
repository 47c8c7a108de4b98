"""Studies beside a crawl: none of what goes wrong with them is worth the crawl."""

from __future__ import annotations

import errno
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.crawl.hub_past import Past, urls
from tests.crawl.seed_past import Site

from bowerbird.crawl import studying
from bowerbird.crawl.demand_log import open_demand
from bowerbird.crawl.study_troubles import Trouble, read_troubles, write_trouble
from bowerbird.crawl.studying import LONGEST_S, UPKEEP, Studying
from bowerbird.crawl.view import CrawlView
from bowerbird.demand.events import ResultClicked


class Ended:
    """A process that is no more."""

    def __init__(self, code: int) -> None:
        self.returncode = code


@pytest.fixture
def seeds(tmp_path: Path) -> Iterator[Studying]:
    site = Site(tmp_path / "crawl")
    site.repository.commit()
    made = Studying(site.repository, "seeds", site.settings)
    yield made
    made.close()
    site.repository.close()


def reap(seeds: Studying, code: int) -> float:
    """Seconds until the next study, after one that ended so."""
    seeds._begun_at = time.monotonic()
    seeds._process = Ended(code)  # type: ignore[assignment]  # all that is looked at
    seeds._reap(seeds._process)  # type: ignore[arg-type]  # the same
    return seeds._due_at - seeds._begun_at


def test_after_a_study_that_was_killed_the_next_waits_twice_as_long_each_time(seeds: Studying) -> None:
    every_s = seeds.every_s
    waits = [reap(seeds, code) for code in (0, -signal.SIGKILL, -signal.SIGKILL, 1, -signal.SIGKILL, 0)]
    assert waits == pytest.approx([every_s, 2 * every_s, 4 * every_s, every_s, 2 * every_s, every_s], abs=UPKEEP)
    reap(seeds, -signal.SIGKILL)
    assert "was killed, perhaps because memory is short; the next is in 7200 s" in seeds.said
    assert seeds._soonest_at == seeds._due_at  # nor sooner while the crawl doubles
    for _ in range(1200):
        assert reap(seeds, -signal.SIGKILL) < float("inf")


def test_a_study_without_room_for_what_it_says_is_begun_all_the_same(
    seeds: Studying, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    begun: list[object] = []

    def begin(command: list[str], **options: object) -> Ended:
        begun.append(options["stderr"])
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(studying.subprocess, "Popen", begin)
    seeds._begin()
    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    seeds._begin()
    assert begun[0] is not subprocess.DEVNULL
    assert begun[1] is subprocess.DEVNULL
    assert "could not be started" in seeds.said
    assert not seeds.is_busy
    assert seeds._errors is None


# -- what searchers do is news, too


@pytest.fixture
def past(tmp_path: Path) -> Iterator[Past]:
    made = Past(tmp_path / "crawl", {"crawl": {"policy": "auto"}})
    first = made.add("http://a.example/", made.now - 1000.0)
    for row in made.visit(first, made.now - 1000.0, urls("page", 30)):
        made.visit(row, made.now - 900.0)
    made.repository.commit()
    yield made
    made.repository.close()


class Begun:
    """What a study is begun by; it is done at once."""

    pid, returncode = -1, 0

    def __init__(self, command: list[str], **options: object) -> None:
        self.method = command[command.index("--policy") + 1]

    def poll(self) -> int:
        return 0


@pytest.mark.parametrize("method", ["informed", "user-centric", "echo", "watch"])
def test_clicks_are_news_for_a_crawl_that_fetches_nothing(
    past: Past, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    begun: list[str] = []
    monkeypatch.setattr(studying.subprocess, "Popen", lambda *given, **options: begun.append(method) or Begun(*given))
    monkeypatch.setattr(studying.os, "setpriority", lambda *given: None)
    moment = [time.monotonic() + 100.0]
    monkeypatch.setattr(studying.time, "monotonic", lambda: moment[0])
    looks: list[float] = []
    listen = Studying._listen
    monkeypatch.setattr(Studying, "_listen", lambda self: looks.append(moment[0]) or listen(self))
    made = Studying(past.repository, method, past.settings)

    def pass_time(seconds: int) -> int:
        for _ in range(seconds):
            moment[0] += 1.0
            made.keep_up()
        return len(begun)

    every = int(made.every_s)
    assert pass_time(5) == 1
    assert pass_time(3 * every) == 1  # nothing was fetched, nothing was heard
    assert len(looks) <= 5
    with open_demand(past.folder, past.settings.demand, write=True) as log:
        log.record([ResultClicked(None, "http://a.example/page-1", None, past.now, 3)])
    assert pass_time(2 * every) == 2
    assert pass_time(3 * every) == 2
    assert len(looks) <= 12
    (past.folder.root / "demand.db").write_bytes(b"no database at all")
    assert pass_time(2 * every) == 2  # what cannot be read is no news
    made.close()


# -- what took too long, or was killed


def end_late(made: Studying, took_s: float) -> None:
    """A study that was ended because it took so long."""
    made._begun_at, made._hangs = time.monotonic() - took_s, True
    made._process = Ended(-signal.SIGKILL)  # type: ignore[assignment]  # all that is looked at
    made._reap(made._process)  # type: ignore[arg-type]  # the same
    made._hangs = False


def test_a_study_that_takes_too_long_comes_seldom_and_may_take_longer_the_next_time(past: Past) -> None:
    made = Studying(past.repository, "informed", past.settings)
    assert made._longest_s() == LONGEST_S
    end_late(made, LONGEST_S)
    wait_s = made._due_at - time.monotonic()
    assert wait_s == pytest.approx((UPKEEP - 1) * LONGEST_S, abs=1.0)
    assert made._soonest_at == made._due_at
    assert made._longest_s() == 2 * LONGEST_S
    assert made.said == "the study was ended: it took more than 1800 s; the next is in 16200 s"
    again = Studying(past.repository, "informed", past.settings)  # after a restart
    assert again._due_at - time.monotonic() == pytest.approx(wait_s, abs=2.0)
    assert again._longest_s() == 2 * LONGEST_S
    again.keep_up()
    assert not again.is_busy
    other = Studying(past.repository, "echo", past.settings)
    assert other._due_at - time.monotonic() < 5.0
    end_late(again, 2 * LONGEST_S)
    assert again._longest_s() == 4 * LONGEST_S
    assert reap(again, 0) == pytest.approx(again.every_s, abs=UPKEEP)
    assert again._longest_s() == LONGEST_S
    assert read_troubles(past.repository) == {}


@pytest.mark.parametrize(
    ("code", "told"),
    [(-signal.SIGKILL, "perhaps because memory is short"), (3, "it ended with 3"), (None, "took more than 1800 s")],
)
def test_status_tells_what_became_of_the_last_study(past: Past, code: int | None, told: str) -> None:
    made = Studying(past.repository, "informed", past.settings)
    if code is None:
        end_late(made, LONGEST_S)
    else:
        reap(made, code)
    for over in (False, True):
        view = CrawlView(past.folder.root)
        try:
            notes = view.status()["study_notes"]
        finally:
            view.close()
        assert [note for note in notes if told in note and note.startswith("informed: ")] == ([] if over else notes)
        assert bool(notes) != over
        reap(made, 0)


def test_a_wait_that_was_written_by_a_clock_ahead_is_no_longer_than_it_was(past: Past) -> None:
    now = time.time()
    for ahead_s, left_s in ((-50.0, 250.0), (0.0, 300.0), (1e8, 300.0), (-1e8, 0.0)):
        at = now + ahead_s
        assert Trouble(at, at + 300.0, 1, 0, "").wait_s(now) == pytest.approx(left_s)
    write_trouble(past.repository, "echo", Trouble(now, now + 1e4, 0, 2, "killed"))
    write_trouble(past.repository, "informed", Trouble(now, now, 0, 0, "failed"))
    write_trouble(past.repository, "informed", None)
    assert set(read_troubles(past.repository)) == {"echo"}


def test_a_study_made_by_hand_ends_the_trouble(past: Past) -> None:
    now = time.time()
    write_trouble(past.repository, "echo", Trouble(now - 10.0, now + 1e4, 1, 0, "ended"))
    made = Studying(past.repository, "echo", past.settings)
    made.take_up()
    assert read_troubles(past.repository)
    past.now = now
    past.study()
    made.take_up()
    assert read_troubles(past.repository) == {}
    assert made._due_at - time.monotonic() <= made.every_s
    assert made._longest_s() == LONGEST_S


@pytest.mark.parametrize(
    ("length_s", "cpu_s", "pause_s"), [(2e3, 4e1, 4e3), (1e3, 5e2, 5e3), (1e3, 4e3, 4e4), (1e3, 1e5, 4e4)]
)
def test_a_study_comes_by_the_time_of_a_core_that_it_took(
    seeds: Studying, monkeypatch: pytest.MonkeyPatch, length_s: float, cpu_s: float, pause_s: float
) -> None:
    """On a busy machine most of its length is waiting; what all cores can have done counts, and twice its length."""
    moment, spent = [time.monotonic()], [7.0]
    monkeypatch.setattr(studying.time, "monotonic", lambda: moment[0])
    monkeypatch.setattr(studying, "spent_by_children_s", lambda: spent[0])
    monkeypatch.setattr(studying.os, "sched_getaffinity", lambda _: set(range(4)))
    seeds._begun_at, seeds._spent_before_s = moment[0], spent[0]
    moment[0], spent[0] = moment[0] + length_s, spent[0] + cpu_s
    seeds._process = Ended(0)  # type: ignore[assignment]  # all that is looked at
    seeds._reap(seeds._process)  # type: ignore[arg-type]  # the same
    assert seeds._due_at - seeds._begun_at == pytest.approx(max(pause_s, seeds.every_s))
