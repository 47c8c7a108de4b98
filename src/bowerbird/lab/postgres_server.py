"""A PostgreSQL of one's own on loopback, for tests and benchmarks: in a temporary folder, gone when it is closed."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType

from bowerbird.model.errors import StoreError

START_S = 60.0
USER = "postgres"
MISSING = "PostgreSQL is not installed: `make postgres` installs it (as root, e.g. sudo apt-get install postgresql)"
#: of a server that a test throws away; what is tested does not need a disk that survives a power cut
UNSAFE = ("fsync=off", "full_page_writes=off", "synchronous_commit=off")
MODEST = ("shared_buffers=64MB", "max_connections=60", "max_wal_size=1GB", "autovacuum_naptime=5s")


def find_programs() -> Path | None:
    """The folder of initdb and postgres; Debian keeps them out of the path."""
    for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        if (folder / "initdb").exists():
            return folder
    found = shutil.which("initdb")
    return Path(found).resolve().parent if found else None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class PostgresServer:
    """A server process; `url()` names databases in it. Runs as the user `postgres` where we are root."""

    def __init__(self, *, port: int = 0, safe: bool = False, settings: tuple[str, ...] = ()) -> None:
        programs = find_programs()
        if programs is None:
            raise StoreError(MISSING)
        self.port = port or _free_port()
        self._programs = programs
        self._user = USER if os.geteuid() == 0 else None
        self._root = Path(tempfile.mkdtemp(prefix="bowerbird-postgres-"))
        self._settings = (*MODEST, *(() if safe else UNSAFE), *settings)
        self._process: subprocess.Popen[bytes] | None = None
        self._log = self._root / "log"
        try:
            if self._user is not None:
                shutil.chown(self._root, self._user)
            self._run("initdb", "-D", "data", "-U", "bowerbird", "--auth=trust", "-E", "UTF8", "--locale=C", "-N")
            self.start()
        except BaseException:
            self.close()
            raise

    def url(self, database: str = "postgres", schema: str = "") -> str:
        """The URL of a database, or of a schema in it."""
        within = f"?options=-csearch_path%3D{schema}" if schema else ""
        return f"postgresql://bowerbird@127.0.0.1:{self.port}/{database}{within}"

    def _command(self, program: str, *arguments: str) -> list[str]:
        return [str(self._programs / program), *arguments]

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(
            self._command(program, *arguments), cwd=self._root, user=self._user, capture_output=True, check=False
        )
        if done.returncode:
            raise StoreError(f"{program} failed: {done.stderr.decode('utf-8', 'replace').strip()}")

    def start(self) -> None:
        """Start it, also again after `stop`; returns when it answers."""
        options = [part for setting in self._settings for part in ("-c", setting)]
        with self._log.open("ab") as log:
            if self._user is not None:
                shutil.chown(self._log, self._user)
            self._process = subprocess.Popen(
                self._command(
                    "postgres", "-D", "data", "-p", str(self.port), "-h", "127.0.0.1", "-k", str(self._root), *options
                ),
                cwd=self._root,
                user=self._user,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        give_up = time.monotonic() + START_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > give_up:
                raise StoreError(f"PostgreSQL did not start: {self._log.read_text(errors='replace')[-800:]}")
            time.sleep(0.05)

    def _answers(self) -> bool:
        asked = subprocess.run(
            self._command("pg_isready", "-q", "-h", "127.0.0.1", "-p", str(self.port)), capture_output=True, check=False
        )
        return asked.returncode == 0

    @property
    def pid(self) -> int:
        """The server's process."""
        return 0 if self._process is None else self._process.pid

    def stop(self, *, at_once: bool = False) -> None:
        """End it: sessions are ended; `at_once` as a crash does, so that the next start recovers."""
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            process.send_signal(3 if at_once else 2)  # SIGQUIT, SIGINT
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def close(self) -> None:
        """End it and remove all it had."""
        self.stop(at_once=True)
        shutil.rmtree(self._root, ignore_errors=True)

    def __enter__(self) -> PostgresServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
