"""Who writes to a crawl in PostgreSQL: the session that holds the crawl's lock, and nobody else.

The lock belongs to the session by which everything is written. So whoever loses the lock cannot write any more, and a
process that dies lets go of it at once; a machine that is gone is noticed by the server within seconds, and a process
that hangs when its session was idle for too long.
"""

from __future__ import annotations

import time
from contextlib import suppress

from bowerbird.model.errors import FolderError, StoreError
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.postgres import THIS_SCHEMA, WRITING, PostgresConnection, plain_url
from bowerbird.store.postgres_schema import open_postgres

HANGS_AFTER_S = 60  # a coordinator asks something every second


class SharedClaim:
    """A session of one who writes, or stands by to."""

    keep_fds: tuple[int, ...] = ()  # nobody inherits a session

    def __init__(self, folder: CrawlFolder) -> None:
        url = folder.store_url
        if url is None:
            raise StoreError(f"{folder.root}: its database is in the folder; only one in PostgreSQL has candidates.")
        self.url = url
        self.connection: PostgresConnection = open_postgres(url, write=True)
        self.term = 0  # of office: every one who wrote had another

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
            for setting in ("idle_session_timeout", "idle_in_transaction_session_timeout"):
                with suppress(StoreError):  # servers before version 14 do not know the first
                    self.connection.execute(f"SET {setting} = '{HANGS_AFTER_S}s'")
            (self.term,) = self.connection.execute("SELECT nextval('terms_of_office')").fetchone()
        return bool(won)

    def release(self) -> None:
        """End the session, and with it the claim."""
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
