"""A candidate for a crawl in PostgreSQL: it feeds its own workers, stands by, and coordinates when it is elected."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from bowerbird.crawl.coordinator import RunLimits
from bowerbird.crawl.crew import Crew
from bowerbird.crawl.fleet import Elected, Fleet
from bowerbird.crawl.reading import load_kernels
from bowerbird.crawl.session import CrawlSession, open_folder
from bowerbird.crawl.settings import load_settings
from bowerbird.crawl.statistics import Progress, Tally
from bowerbird.model.clock import FollowingClock
from bowerbird.model.errors import StoreError, StoreLostError
from bowerbird.store.election import SharedClaim

STAND_EVERY_S = 0.25
LISTEN_EVERY_S = 2.0  # for the pulse of the one who coordinates
TRY_AGAIN_S = 1.0
TRY_AGAIN_MOST_S = 15.0

OpenSession = Callable[[FollowingClock, Elected], CrawlSession]


@dataclass(slots=True)
class Led:
    """What came of all the times a candidate coordinated."""

    tally: Tally
    elapsed_s: float = 0.0
    frontier: int = 0

    def add(self, session: CrawlSession) -> None:
        """Another time is over."""
        coordinator = session.coordinator
        self.tally.add_all(coordinator.committed)
        self.elapsed_s += session.clock.now() - coordinator.tally.started_at
        self.frontier = coordinator.frontier


class Candidate:
    """Stands for election until it has led a crawl to its end, or its time is over, or it is told to stop."""

    def __init__(
        self,
        root: Path,
        open_session: OpenSession,
        *,
        workers: int | None = None,
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.folder = open_folder(root)
        self.worker_count = load_settings(self.folder.config).worker_count if workers is None else workers
        self._open_session = open_session  # when it is elected
        self._say = say
        self._stop = threading.Event()
        self._session: CrawlSession | None = None
        self._led: Led | None = None
        self._lost = 0  # times in a row that the database was not there
        self._pages_left: int | None = None

    def stop(self) -> None:
        """End soon; safe to call from a signal handler."""
        self._stop.set()
        if self._session is not None:
            self._session.stop()

    def run(self, limits: RunLimits, show: Callable[[Progress], None] | None = None) -> Led | None:
        """Stand, lead, and stand again when the database was lost. None where it never led.

        Limits are of all this together: time counts from here on, also while another coordinates, and pages are those
        that it took in whenever it did.
        """
        SharedClaim(self.folder).release()  # what is wrong with the database is said at once
        over_at = None if limits.seconds is None else time.monotonic() + limits.seconds
        self._pages_left = limits.pages
        crew = Crew(self.folder.root, self.worker_count)
        load_kernels()  # now, and not when everybody waits
        try:
            while not self._is_over(over_at):
                try:
                    claim = self._stand(crew, over_at)
                    if claim is not None:
                        left_s = None if over_at is None else max(over_at - time.monotonic(), 0.0)
                        self._lead(claim, crew, replace(limits, seconds=left_s, pages=self._pages_left), show)
                    break
                except StoreLostError as error:
                    if not self._lost:
                        self._say(f"{error} Standing for election again as soon as it is there.")
                    self._rest(crew, min(TRY_AGAIN_S * 2.0**self._lost, TRY_AGAIN_MOST_S))
                    self._lost += 1
            return self._led
        finally:
            crew.close()

    def _is_over(self, over_at: float | None) -> bool:
        late = over_at is not None and time.monotonic() >= over_at
        return late or self._stop.is_set() or (self._pages_left is not None and self._pages_left <= 0)

    def _rest(self, crew: Crew, seconds: float) -> None:
        self._stop.wait(seconds)
        crew.keep_up()

    def _stand(self, crew: Crew, over_at: float | None) -> SharedClaim | None:
        claim = SharedClaim(self.folder)
        try:
            said = ""
            listened_at = time.monotonic()
            while not self._is_over(over_at):
                won = claim.win()
                self._lost = 0
                if won:
                    return claim
                if not said:
                    said = "standing by: another process coordinates this crawl"
                    self._say(said)
                if time.monotonic() - listened_at >= LISTEN_EVERY_S:
                    listened_at, heard = time.monotonic(), self._listen(claim)
                    if heard and heard != said:
                        said = heard
                        self._say(said)
                self._rest(crew, STAND_EVERY_S)
        except BaseException:
            claim.release()
            raise
        claim.release()
        return None

    def _listen(self, claim: SharedClaim) -> str:
        """One who coordinates and has fallen silent loses its office."""
        try:
            silent = claim.end_silent()
        except StoreLostError:
            raise
        except StoreError as error:
            return f"the process that coordinates is silent, and its session cannot be ended: {error}"
        return f"{silent} coordinated and has fallen silent: its session was ended" if silent else ""

    def _lead(self, claim: SharedClaim, crew: Crew, limits: RunLimits, show: Callable[[Progress], None] | None) -> None:
        clock = FollowingClock(claim.connection.now)
        session = self._open_session(clock, Elected(claim, Fleet(claim.connection, clock, crew.keep_up)))
        self._session = session
        try:
            if self._stop.is_set():
                session.stop()
            session.run(limits, show)
        except BaseException:
            session.abandon()
            raise
        finally:
            self._session = None
            self._led = self._led or Led(Tally(session.coordinator.tally.started_at))
            self._led.add(session)
            self._pages_left = session.coordinator.pages_left
            session.close()
