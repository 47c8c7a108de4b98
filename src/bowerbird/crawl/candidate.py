"""A candidate for a crawl in PostgreSQL: it feeds its own workers, stands by, and coordinates when it is elected."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from bowerbird.crawl.coordinator import RunLimits
from bowerbird.crawl.crew import Crew
from bowerbird.crawl.fleet import Elected, Fleet
from bowerbird.crawl.reading import load_kernels
from bowerbird.crawl.session import CrawlSession, open_folder
from bowerbird.crawl.settings import load_settings
from bowerbird.crawl.statistics import Progress, Tally
from bowerbird.model.clock import ShiftedClock
from bowerbird.model.errors import StoreLostError
from bowerbird.store.election import SharedClaim
from bowerbird.store.exchange import read_clock

STAND_EVERY_S = 0.25
TRY_AGAIN_S = 1.0


class Candidate:
    """Stands for election until it has led a crawl to its end, or is told to stop."""

    def __init__(
        self,
        root: Path,
        *,
        policy: str | None = None,
        rate_per_s: float | None = None,
        workers: int | None = None,
        say: Callable[[str], None] = lambda text: None,
        began: Callable[[CrawlSession], None] = lambda session: None,
    ) -> None:
        self.folder = open_folder(root)
        self.policy = policy
        self.rate_per_s = rate_per_s
        self.worker_count = load_settings(self.folder.config).worker_count if workers is None else workers
        self._say = say
        self._began = began  # when it is elected
        self._stop = threading.Event()
        self._session: CrawlSession | None = None

    def stop(self) -> None:
        """End soon; safe to call from a signal handler."""
        self._stop.set()
        if self._session is not None:
            self._session.stop()

    def run(self, limits: RunLimits, show: Callable[[Progress], None] | None = None) -> tuple[Tally, Progress] | None:
        """Stand, lead, and stand again when the database was lost. None where it was stopped before it led."""
        SharedClaim(self.folder).release()  # what is wrong with the database is said at once
        crew = Crew(self.folder.root, self.worker_count)
        load_kernels()  # now, and not when everybody waits
        try:
            while not self._stop.is_set():
                try:
                    claim = self._stand(crew)
                    if claim is not None:
                        return self._lead(claim, crew, limits, show)
                except StoreLostError as error:
                    self._say(f"{error} Standing for election again.")
                    self._rest(crew, TRY_AGAIN_S)
            return None
        finally:
            crew.close()

    def _rest(self, crew: Crew, seconds: float) -> None:
        self._stop.wait(seconds)
        crew.keep_up()

    def _stand(self, crew: Crew) -> SharedClaim | None:
        claim = SharedClaim(self.folder)
        try:
            said = False
            while not self._stop.is_set():
                if claim.win():
                    return claim
                if not said:
                    self._say("standing by: another process coordinates this crawl")
                    said = True
                self._rest(crew, STAND_EVERY_S)
        except BaseException:
            claim.release()
            raise
        claim.release()
        return None

    def _lead(
        self, claim: SharedClaim, crew: Crew, limits: RunLimits, show: Callable[[Progress], None] | None
    ) -> tuple[Tally, Progress]:
        session = CrawlSession(
            self.folder.root,
            policy=self.policy,
            rate_per_s=self.rate_per_s,
            clock=ShiftedClock(read_clock(claim.connection) - time.time()),
            say=self._say,
            elected=Elected(claim, Fleet(claim.connection, crew.keep_up)),
        )
        self._session = session
        try:
            self._began(session)
            if self._stop.is_set():
                session.stop()
            tally = session.run(limits, show)
            return tally, session.coordinator.progress()
        except BaseException:
            session.abandon()
            raise
        finally:
            self._session = None
            session.close()
