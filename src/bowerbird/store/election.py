"""Who writes to a crawl in PostgreSQL: the session that holds the crawl's lock, and nobody else.

The lock belongs to the session by which everything is written. So whoever loses the lock cannot write any more, and a
process that dies lets go of it at once; a machine that is gone is noticed by the server within seconds, and a process
that hangs by its pulse (`store/pulse.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from bowerbird.model.errors import FolderError, StoreError
from bowerbird.store import pulse
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.postgres import THIS_SCHEMA, WRITING, PostgresConnection, plain_url
from bowerbird.store.postgres_schema import open_postgres


class SharedClaim:
    """A session of one who writes, or stands by to."""

    keep_fds: tuple[int, ...] = ()  # nobody inherits a session

    def __init__(self, folder: CrawlFolder, stuck: Callable[[str], None] | None = None) -> None:
        url = folder.store_url
        if url is None:
            raise StoreError(f"{folder.root}: its database is in the folder; only one in PostgreSQL has candidates.")
        self.url = url
        self.connection: PostgresConnection = open_postgres(url, write=True)
        self.term = 0  # of office: every one who wrote had another
        self._stuck = stuck  # what is done when it hangs; else the process ends
        self._pulse: pulse.Pulse | None = None

    @classmethod
    def wait(cls, folder: CrawlFolder, wait_s: float = 3.0) -> SharedClaim:
        """Claim it, as one who does not stand by."""
        claim = cls(folder)
        deadline = time.monotonic() + wait_s
        while not claim.win():
            if time.monotonic() > deadline:
                claim.release()
                raise FolderError(
                    f"{plain_url(claim.url)}: another process is writing to this crawl. "
                    "Stop it first; a crawl has one writer."
                )
            time.sleep(0.05)
        return claim

    def win(self) -> bool:
        """Try to become the one who writes."""
        (won,) = self.connection.execute(f"SELECT pg_try_advisory_lock({WRITING}, {THIS_SCHEMA})").fetchone()
        if won:
            # the server's own bounds, where nobody stands by who could look after this one
            for setting in ("idle_session_timeout", "idle_in_transaction_session_timeout", "statement_timeout"):
                with suppress(StoreError):  # servers before version 14 do not know the first
                    self.connection.execute(f"SET {setting} = '{pulse.STUCK_S + pulse.SILENT_S:.0f}s'")
            (self.term,) = self.connection.execute("SELECT nextval('terms_of_office')").fetchone()
            self._pulse = pulse.Pulse(self.connection, self.term, self._stuck)
            pulse.begin_pulse(self.connection, self.term)
        return bool(won)

    def end_silent(self) -> str:
        """As one who stands by: end the session of one who writes and is stopped; who that was, or nothing."""
        return pulse.end_silent(self.connection)

    def release(self) -> None:
        """End the session, and with it the claim."""
        if self._pulse is not None:
            self._pulse.close()
        self.connection.close()


def is_claimed(url: str) -> bool:
    """Is some process writing now?"""
    connection = open_postgres(url, write=False)
    try:
        # shared: two who ask at once do not see each other
        (free,) = connection.execute(f"SELECT pg_try_advisory_lock_shared({WRITING}, {THIS_SCHEMA})").fetchone()
        if free:  # now, and not when the server has noticed that we are gone
            connection.execute(f"SELECT pg_advisory_unlock_shared({WRITING}, {THIS_SCHEMA})")
        return not free
    finally:
        connection.close()
