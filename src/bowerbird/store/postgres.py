"""PostgreSQL as a crawl's database: the statements of the store, as PostgreSQL has them.

A session is known by what it is for. One that reads sees nothing half done and changes nothing, so where it was lost
another takes its place. The one that writes is the coordinator's, and holds the lock by which it is elected
(`store/election.py`): with it goes all that it was about to do. What it has committed is on the disk.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from typing import Any

from bowerbird.model.errors import BowerbirdError, DiskFullError, StoreError, StoreLostError
from bowerbird.store.connection import SCAN_ROWS, Rows

try:
    import psycopg
    from psycopg.adapt import Buffer, Loader
    from psycopg.pq import TransactionStatus
    from psycopg.types.numeric import Int8Dumper
    from psycopg.types.string import StrBinaryDumper, StrDumper
except ImportError as missing:
    raise StoreError(
        f"a crawl in PostgreSQL needs psycopg, which is not there ({missing}): pip install 'bowerbird[postgres]'"
    ) from missing

log = logging.getLogger(__name__)

#: milliseconds without an answer from the other machine, whether or not anything was sent to it: after the first the
#: server has noticed that ours is gone, and lets another be elected; after the second we that the server's is. That one
#: is longer: a server whose disk is slow takes nothing in meanwhile
SERVER_WAITS_MS, WE_WAIT_MS = 6_000, 20_000
ALIVE = {"keepalives": 1, "keepalives_idle": 3, "keepalives_interval": 1, "keepalives_count": 3}
SERVER_ALIVE = (
    "-c tcp_keepalives_idle=3 -c tcp_keepalives_interval=1 -c tcp_keepalives_count=3"
    f" -c tcp_user_timeout={SERVER_WAITS_MS}"
)
CONNECT_S = 10
#: of a session that writes: what is committed is on the disk (a server may be set to less, or to more); and the server
#: looks whether we are still there also while it works or waits for us, where its system can tell
_WRITING = (
    "SELECT set_config('synchronous_commit', 'on', false)"
    " WHERE current_setting('synchronous_commit') NOT IN ('on', 'remote_apply')",
    "SET client_connection_check_interval = '2s'",
)
#: first numbers of the advisory locks; the second is the schema's
MIGRATING, WRITING, POSTING = 0x626F7701, 0x626F7702, 0x626F7703
THIS_SCHEMA = "hashtext(current_schema())"
_COPIED = re.compile(r"INSERT INTO (\w+)(?: \(([^()]*)\))? VALUES \([?,]+\)")
_JSON_ROWS = (
    "(SELECT one::bigint AS value, nth - 1 AS key FROM json_array_elements_text(%s::json)"
    " WITH ORDINALITY AS each_one(one, nth))"
)
_BEGIN = {"BEGIN": "BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN IMMEDIATE": "BEGIN"}
#: the session could not be had, or was ended: by a limit of it, by an administrator, by a crash
_LOST = ("08", "57P", "57014", "25P03", "53300", "28")
#: of one who may not in: what to do. The driver tells no state where it could not connect, but what the server said
_REFUSED = {
    "3D000": (
        r'database ".*" does not exist',
        "The server runs: make the database (createdb NAME), or correct its name.",
    ),
    "28P01": (
        "password authentication failed|no password supplied",
        "The server runs: correct the password, in the URL or in ~/.pgpass.",
    ),
    "28000": (
        r'role ".*" does not exist|no pg_hba.conf entry|authentication failed|is not permitted to log in',
        "The server runs: correct the user in the URL, or have the server let it in (createuser NAME, pg_hba.conf).",
    ),
}
_FULL = ("53100", "58030")  # no room on the disk; it could not be read or written


def plain_url(url: str) -> str:
    """The URL as it may be shown: without its password, wherever that stands; the driver knows where.

    >>> plain_url("postgresql://me:secret@db.example:5433/crawl?password=more&connect_timeout=9")
    'postgresql://me@db.example:5433/crawl'
    >>> plain_url("postgresql://me:se@c?ret@[::1/crawl")
    'postgresql://…'
    """
    try:
        parts = psycopg.conninfo.conninfo_to_dict(url)
    except psycopg.Error:
        return "postgresql://…"
    user = f"{parts['user']}@" if parts.get("user") else ""
    port = f":{parts['port']}" if parts.get("port") else ""
    return f"postgresql://{user}{parts.get('host') or ''}{port}/{parts.get('dbname') or ''}"


@lru_cache(maxsize=512)
def translate(sql: str) -> str:
    """A statement of the store as PostgreSQL and its driver have it.

    >>> translate("SELECT offset FROM fetches INDEXED BY fetches_of_url WHERE url = ?")
    'SELECT "offset" FROM fetches WHERE url = %s'
    """
    if sql in _BEGIN:
        return _BEGIN[sql]
    sql = re.sub(r" (?:NOT INDEXED|INDEXED BY \w+)", "", sql)
    sql = re.sub(r"\boffset\b", '"offset"', sql)  # PostgreSQL keeps the word for itself
    sql = sql.replace("instr(", "0 < strpos(")  # whether one text is in another
    return sql.replace("%", "%%").replace("json_each(?)", _JSON_ROWS).replace("?", "%s")


def _plain(text: str) -> bytes:
    """A page may hold what PostgreSQL does not take as text: such characters are replaced."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace")


class _TextDumper(StrDumper):
    def dump(self, obj: str) -> Buffer | None:
        return _plain(obj)


class _CopiedTextDumper(StrBinaryDumper):
    def dump(self, obj: str) -> Buffer | None:
        return _plain(obj)


class _NumberLoader(Loader):
    """Sums of whole numbers are whole."""

    def load(self, data: Buffer) -> int | float:
        """An int where it is one."""
        text = bytes(data)
        return int(text) if text.lstrip(b"-").isdigit() else float(text)


def explain(error: psycopg.Error, url: str) -> BowerbirdError:
    """What PostgreSQL refused, for people."""
    said = " ".join(str(error).split()) or type(error).__name__
    state = error.sqlstate or ""
    where = plain_url(url)
    if state in _FULL:
        return DiskFullError(
            f"{where}: the disk took no more ({said}). Free some space and start again: "
            "everything acknowledged before is safe."
        )
    if isinstance(error, psycopg.ProgrammingError) and not state:  # the driver's own words quote the URL
        return StoreError(f"{where}: not the URL of a database. It reads postgresql://user@host:port/database.")
    lost = state.startswith(_LOST) or (not state and isinstance(error, psycopg.OperationalError))
    for refused, (words, remedy) in _REFUSED.items():
        if state == refused or (not state and lost and re.search(words, said)):
            return StoreLostError(f"{where}: the database cannot be opened ({said}). {remedy}")
    if lost:
        return StoreLostError(f"{where}: the database cannot be reached or ended the session ({said}). Is it running?")
    return StoreError(f"{where}: the database refused ({said}). Check that it is of this crawl and this Bowerbird.")


class PostgresConnection:
    """A session with the database, asked as the embedded one is."""

    def __init__(self, url: str, *, write: bool) -> None:
        self.url = url
        self.write = write
        self.answered_at = 0.0  # by the steady clock: when it last had an answer
        self._types: dict[tuple[str, str], tuple[str, list[int]]] = {}
        self._scans = 0
        self._connect()

    def _connect(self) -> None:
        options = SERVER_ALIVE if self.write else f"{SERVER_ALIVE} -c default_transaction_read_only=on"
        try:
            given = psycopg.conninfo.conninfo_to_dict(self.url)
            self.raw = psycopg.connect(
                self.url,
                autocommit=True,
                connect_timeout=CONNECT_S,
                application_name="bowerbird",
                options=f"{given.get('options') or ''} {options}".strip(),
                tcp_user_timeout=WE_WAIT_MS,
                **ALIVE,  # type: ignore[arg-type]  # numbers, as the driver wants them
            )
        except psycopg.Error as error:
            raise explain(error, self.url) from error
        adapters = self.raw.adapters
        adapters.register_dumper(int, Int8Dumper)  # one type whatever the number: a statement is prepared once
        adapters.register_dumper(str, _CopiedTextDumper)
        adapters.register_dumper(str, _TextDumper)  # the last is the first choice: text, whatever a value is put into
        adapters.register_loader("numeric", _NumberLoader)
        for setting in _WRITING if self.write else ():
            try:
                self.raw.execute(setting)
            except psycopg.OperationalError as error:
                raise explain(error, self.url) from error
            except psycopg.Error as error:  # the server's system, or its version, cannot do that
                log.info("%s: %s", setting, error)
        self.answered_at = time.monotonic()

    @property
    def in_transaction(self) -> bool:
        """Is there a BEGIN without its COMMIT?"""
        return self.raw.info.transaction_status not in (TransactionStatus.IDLE, TransactionStatus.UNKNOWN)

    @property
    def is_over(self) -> bool:
        """Was the session closed, or found to be lost?"""
        return bool(self.raw.closed)

    def execute(self, sql: str, values: Sequence[Any] = (), /) -> Rows:
        """Ask or do one thing. One who reads asks again where the session was lost since, as by a restart."""
        may_repeat = not (self.write or self.in_transaction)
        try:
            return self._ask(sql, values)
        except StoreLostError:
            if not may_repeat:
                raise
        self.raw.close()
        self._connect()
        return self._ask(sql, values)

    def _ask(self, sql: str, values: Sequence[Any]) -> Rows:
        try:
            found = self.raw.execute(translate(sql), values)
        except psycopg.Error as error:
            raise explain(error, self.url) from error
        self.answered_at = time.monotonic()
        return found

    def now(self) -> float:
        """As `Connection.now`: all machines go by the database's clock."""
        (now,) = self.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()
        return float(now)

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> object:
        """Do one thing with each of many rows; rows that are only put in are copied in, which is much faster."""
        copied = _COPIED.fullmatch(sql)
        try:
            with self.raw.cursor() as cursor:
                if copied is None:
                    cursor.executemany(translate(sql), rows)
                else:
                    names, types = self._columns(copied[1], copied[2])
                    with cursor.copy(f"COPY {copied[1]} ({names}) FROM STDIN (FORMAT BINARY)") as copy:
                        copy.set_types(types)
                        for row in rows:
                            copy.write_row(row)
        except psycopg.Error as error:
            raise explain(error, self.url) from error
        self.answered_at = time.monotonic()
        return None

    def ask_of(self, select: str, numbers: Sequence[int], order: str = "") -> Iterator[Any]:
        """As `Connection.ask_of`, in one question."""
        if numbers:
            yield from self.execute(f"{select} = ANY(?::bigint[]){order}", (list(numbers),))

    def _columns(self, table: str, names: str | None) -> tuple[str, list[int]]:
        """Columns of a table and their types: all, or these."""
        key = (table, names or "")
        if key not in self._types:
            known: dict[str, int] = dict(
                self.raw.execute(
                    "SELECT attname, atttypid::bigint FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0"
                    " AND NOT attisdropped ORDER BY attnum",
                    (table,),
                ).fetchall()
            )
            wanted = names.split(", ") if names else list(known)
            self._types[key] = translate(", ".join(wanted)), [known[name] for name in wanted]
        return self._types[key]

    @contextmanager
    def locked(self, lock: int) -> Iterator[None]:
        """A transaction that no other with the same lock goes beside."""
        self.execute("BEGIN IMMEDIATE")
        try:
            self.execute(f"SELECT pg_advisory_xact_lock({lock}, {THIS_SCHEMA})")
            yield
            self.execute("COMMIT")
        except BaseException:
            if self.in_transaction:
                self.execute("ROLLBACK")
            raise

    def in_turn(self) -> AbstractContextManager[None]:
        """As `Connection.in_turn`."""
        return self.locked(POSTING)

    def run_script(self, sql: str) -> None:
        """Do several things without values, as they are written."""
        try:
            self.raw.execute(sql)
        except psycopg.Error as error:
            raise explain(error, self.url) from error

    def scan(self, sql: str, values: Sequence[Any] = (), rows: int = SCAN_ROWS) -> Iterator[list[Any]]:
        """As `Connection.scan`: a cursor at the server, within a transaction."""
        self._scans += 1
        own = not self.in_transaction
        try:
            if own:
                self.execute("BEGIN")
            with self.raw.cursor(name=f"scan_{self._scans}") as cursor:
                cursor.execute(translate(sql), values)
                while part := cursor.fetchmany(rows):
                    self.answered_at = time.monotonic()
                    yield part
        except psycopg.Error as error:
            raise explain(error, self.url) from error
        finally:
            if own and self.in_transaction:
                self.execute("ROLLBACK")

    def close(self) -> None:
        """End the session."""
        self.raw.close()
