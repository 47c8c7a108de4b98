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
from tests.crawl.seed_past import Site

from bowerbird.crawl import studying
from bowerbird.crawl.studying import UPKEEP, Studying


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
