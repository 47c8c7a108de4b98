"""Whoever writes to a crawl in PostgreSQL says that it lives, by a session beside the one that it writes by.

So three things are told apart. Who is busy, with an index or a long statement, goes on saying so. A process that is
stopped, or whose machine pauses, falls silent, and another ends its session. And who had no answer of the database for
so long that it must hang, in a statement that never returns or outside of any, ends itself: nothing else would make it
let go of the index.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
import time
from collections.abc import Callable

from bowerbird.model.errors import BowerbirdError
from bowerbird.store.postgres import THIS_SCHEMA, WRITING, PostgresConnection, plain_url

EVERY_S = 2.0
SILENT_S = 30.0  # after the last pulse: it is stopped
STUCK_S = 900.0  # after the last answer: it hangs
GIVEN_UP = 4  # the exit code of one who ended itself


def begin_pulse(connection: PostgresConnection, term: int) -> None:
    """Be the one whose pulse counts; by the session that writes."""
    with connection.locked(WRITING):
        connection.execute("DELETE FROM pulse")
        connection.execute(
            "INSERT INTO pulse VALUES (?, pg_backend_pid(), ?, ?, clock_timestamp())",
            (term, socket.gethostname(), os.getpid()),
        )


def end_silent(connection: PostgresConnection) -> str:
    """End the session of one who holds the lock and has fallen silent; who that was, empty where nobody has."""
    found = connection.execute(
        "WITH silent AS MATERIALIZED (SELECT machine, process, backend FROM pulse JOIN pg_locks"
        f" ON pg_locks.pid = pulse.backend WHERE locktype = 'advisory' AND granted AND classid = {WRITING}"
        f" AND objid::bigint = ({THIS_SCHEMA}::bigint & 4294967295)"
        " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        f" AND at < clock_timestamp() - interval '{SILENT_S} seconds')"
        " SELECT machine, process, pg_terminate_backend(backend) FROM silent"
    ).fetchone()
    return "" if found is None else f"process {found[1]} on {found[0]}"


class Pulse:
    """Beats in a thread of its own, as long as `connection` gets answers.

    Its session is had at once or not at all: one for whom the server has none left would be taken for silent.
    """

    def __init__(self, connection: PostgresConnection, term: int, stuck: Callable[[str], None] | None = None) -> None:
        self._writing = connection
        self._term = term
        self._stuck = stuck or _end_process
        self._stop = threading.Event()
        session = _open_session(connection.url)
        self._thread = threading.Thread(target=self._run, args=(session,), name="pulse", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """No more."""
        self._stop.set()

    def _run(self, session: PostgresConnection | None) -> None:
        """The time in which this thread did not run is not counted: nobody could have had an answer."""
        answered_at, waited_s, looked_at = self._writing.answered_at, 0.0, time.monotonic()
        while not (self._stop.wait(EVERY_S) or self._writing.is_over):
            now = time.monotonic()
            waited_s += min(now - looked_at, 2 * EVERY_S)
            looked_at = now
            if self._writing.answered_at != answered_at:
                answered_at, waited_s = self._writing.answered_at, 0.0
            if waited_s > STUCK_S:
                self._stuck(
                    f"{plain_url(self._writing.url)}: no answer was taken from the database for {waited_s:.0f} s"
                )
                break
            try:
                session = session or _open_session(self._writing.url)
                session.execute("UPDATE pulse SET at = clock_timestamp() WHERE term = ?", (self._term,))
            except BowerbirdError:  # another session next time; what is wrong is said by the one that writes
                if session is not None:
                    session.close()
                session = None
        if session is not None:
            session.close()


def _open_session(url: str) -> PostgresConnection:
    """One that does not wait for the server's disk: a pulse need not survive a crash, and a slow disk is no silence."""
    session = PostgresConnection(url, write=True)
    session.execute("SET synchronous_commit = off")
    return session


def _end_process(why: str) -> None:
    print(
        f"bowerbird: {why}: this process hangs. It ends, so that another can coordinate.", file=sys.stderr, flush=True
    )
    os._exit(GIVEN_UP)
