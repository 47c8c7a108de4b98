"""Where calls become changes: what they ask is done at once, many are committed together, and only then answered.

All of it happens in the event loop's own thread. A thread beside it would fight with it over the interpreter: every row
that goes to the database is a place where the two change over, which costs more than a commit does.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from bowerbird.integrations.urlfrontier.crawls import Crawls
from bowerbird.model.errors import BowerbirdError

log = logging.getLogger(__name__)

T = TypeVar("T")
COMMIT_EVERY_S = 0.03  # while it is busy; a call that comes alone is answered at once
UPKEEP_EVERY_S = 0.5
AFTER_TROUBLE_S = 10.0


@dataclass(slots=True)
class _Job:
    work: Callable[[Crawls], Any]
    after: Callable[[Any], Any] | None
    future: asyncio.Future[Any]


class Desk:
    """Does jobs in the order in which they come; a job that was answered is durable.

    Jobs that come soon after a commit wait for the next one: the busier it is, the less a sync costs each. Callers
    bound how much they have waiting here.
    """

    def __init__(self, crawls: Crawls) -> None:
        self.crawls = crawls
        self._jobs: list[_Job] = []
        self._timer: asyncio.TimerHandle | None = None
        self._committed_at = 0.0
        self._is_closed = False

    async def do(self, work: Callable[[Crawls], T], after: Callable[[T], Any] | None = None) -> Any:
        """Have `work` done and committed; `after` makes the answer of what it returned, from what is committed."""
        if self._is_closed:
            raise BowerbirdError("the service is ending")
        loop = asyncio.get_running_loop()
        job = _Job(work, after, loop.create_future())
        self._jobs.append(job)
        if self._timer is None:
            wait_s = self._committed_at + COMMIT_EVERY_S - time.monotonic()
            self._timer = loop.call_later(max(wait_s, 0.0), self._work)
        return await job.future

    async def keep_up(self) -> None:
        """Look after the crawls, for ever."""
        while True:
            await asyncio.sleep(UPKEEP_EVERY_S)
            try:
                self.crawls.keep_up()
            except BowerbirdError as error:  # a full disk: it may have room again
                log.error("upkeep failed, and is tried again: %s", error)
                await asyncio.sleep(AFTER_TROUBLE_S)
            except Exception:  # whatever it is: it must not end here
                log.exception("upkeep failed, and is tried again")
                await asyncio.sleep(AFTER_TROUBLE_S)

    def close(self) -> None:
        """Commit, and let go of the folders."""
        self._is_closed = True
        self.crawls.close()

    def _work(self) -> None:
        jobs, self._jobs, self._timer = self._jobs, [], None
        results: list[tuple[_Job, Any, Exception | None]] = [(job, *_attempt(job.work, self.crawls)) for job in jobs]
        try:
            self.crawls.commit()
        except Exception as error:
            log.error("nothing could be made durable: %s", error)
            results = [(job, None, before or error) for job, _, before in results]
        for job, result, failed in results:
            answer, trouble = result, failed
            if trouble is None and job.after is not None:
                answer, trouble = _attempt(job.after, result)
            if job.future.cancelled():
                continue
            if trouble is None:
                job.future.set_result(answer)
            else:
                job.future.set_exception(trouble)
        self._committed_at = time.monotonic()


def _attempt(work: Callable[[Any], Any], of: Any) -> tuple[Any, Exception | None]:
    try:
        return work(of), None
    except Exception as error:
        return None, error
