"""Where calls become changes: what they ask is done at once, many are committed together, and only then answered.

All of it happens in the event loop's own thread. A thread beside it would fight with it over the interpreter: every row
that goes to the database is a place where the two change over, which costs more than a commit does.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from bowerbird.integrations.urlfrontier.crawls import Crawls
from bowerbird.model.errors import BowerbirdError, DiskFullError
from bowerbird.store.disk_trouble import explain_trouble

log = logging.getLogger(__name__)

T = TypeVar("T")
COMMIT_EVERY_S = 0.03  # while it is busy; a call that comes alone is answered at once
UPKEEP_EVERY_S = 0.5
RETRY_EVERY_S = 1.0  # a commit that failed
AFTER_TROUBLE_S = 10.0


class NotKeptError(BowerbirdError):
    """Nothing can be made durable for now, so nothing is taken in or handed out."""

    def __init__(self, trouble: Exception) -> None:
        super().__init__(f"nothing can be written, so nothing is changed until that is over: {_in_words(trouble)}")
        known = explain_trouble(trouble) if isinstance(trouble, sqlite3.Error | OSError) else trouble
        self.is_disk_full = isinstance(known, DiskFullError)


@dataclass(slots=True)
class _Job:
    work: Callable[[Crawls], Any]
    undo: Callable[[Any], None] | None
    future: asyncio.Future[Any]


class Desk:
    """Does jobs in the order in which they come; a job that was answered is durable.

    Jobs that come soon after a commit wait for the next one: the busier it is, the less a sync costs each. Callers
    bound how much they have waiting here. After a commit that failed no job is begun until one succeeds: what waits in
    memory stays as it is, however long that takes.
    """

    def __init__(self, crawls: Crawls) -> None:
        self.crawls = crawls
        self._jobs: list[_Job] = []
        self._timer: asyncio.TimerHandle | None = None
        self._committed_at = 0.0
        self._trouble: Exception | None = None
        self._tried_at = 0.0
        self._is_closed = False

    async def do(self, work: Callable[[Crawls], T], undo: Callable[[T], None] | None = None) -> T:
        """Have `work` done and committed; `undo` takes back what it returned where that could not be."""
        if self._is_closed:
            raise BowerbirdError("the service is ending")
        loop = asyncio.get_running_loop()
        job = _Job(work, undo, loop.create_future())
        self._jobs.append(job)
        if self._timer is None:
            wait_s = self._committed_at + COMMIT_EVERY_S - time.monotonic()
            self._timer = loop.call_later(max(wait_s, 0.0), self._work)
        answer: T = await job.future
        return answer

    async def look(self, work: Callable[[Crawls], T]) -> T:
        """Have something looked at that nothing comes of; also while nothing can be written."""
        if self._is_closed:
            raise BowerbirdError("the service is ending")
        await asyncio.sleep(0)  # others get their turn between
        return work(self.crawls)

    async def keep_up(self) -> None:
        """Look after the crawls, for ever."""
        while True:
            await asyncio.sleep(UPKEEP_EVERY_S)
            if not self._recover():
                continue
            try:
                self.crawls.keep_up()
            except Exception as error:  # whatever it is: it must not end here
                if self._commit():  # else that was it
                    log.error("upkeep failed, and is tried again: %s", error, exc_info=_unexpected(error))
                    await asyncio.sleep(AFTER_TROUBLE_S)

    def close(self) -> None:
        """Commit, and let go of the folders."""
        self._is_closed = True
        self.crawls.close()

    def _recover(self) -> bool:
        """Can anything be written? After trouble that is tried now and then."""
        if self._trouble is None:
            return True
        if time.monotonic() - self._tried_at < RETRY_EVERY_S:
            return False
        return self._commit()

    def _commit(self) -> bool:
        before = self._trouble
        try:
            self.crawls.commit()
            self._trouble = None
        except Exception as error:
            self._trouble = error
            if before is None:
                log.error("nothing can be written, and nothing is changed until that is over: %s", _in_words(error))
        self._tried_at = time.monotonic()
        if before is not None and self._trouble is None:
            log.warning("it can be written again: all goes on")
        return self._trouble is None

    def _work(self) -> None:
        jobs = [job for job in self._jobs if not job.future.cancelled()]  # of the others nobody waits
        self._jobs, self._timer = [], None
        done: list[tuple[_Job, Any, Exception | None]] = [(job, None, None) for job in jobs]
        if self._recover():
            done = [(job, *_attempt(job.work, self.crawls)) for job in jobs]
            if not self._commit():
                for job, result, failed in reversed(done):  # the last is taken back first
                    if failed is None and job.undo is not None:
                        job.undo(result)
        for job, result, failed in done:
            if failed is not None:
                job.future.set_exception(failed)
            elif self._trouble is not None:
                job.future.set_exception(NotKeptError(self._trouble))
            else:
                job.future.set_result(result)
        self._committed_at = time.monotonic()


def _attempt(work: Callable[[Crawls], Any], crawls: Crawls) -> tuple[Any, Exception | None]:
    try:
        return work(crawls), None
    except Exception as error:
        return None, error


def _in_words(error: Exception) -> str:
    """What went wrong, without the advice to start again: the service goes on by itself."""
    return str(error).replace(" and start again", "")


def _unexpected(error: Exception) -> Exception | None:
    return None if isinstance(error, BowerbirdError | sqlite3.Error | OSError) else error
