"""A world over real HTTP: in a process of its own, or in a thread of this one."""

from __future__ import annotations

import pickle
import subprocess
import sys
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO

import orjson

from bowerbird.lab.world.serving import Loop, Plan, read_log
from bowerbird.lab.world.wire import Access, Faults
from bowerbird.lab.world.world import World
from bowerbird.model.clock import Clock, ScaledClock
from bowerbird.model.errors import BowerbirdError, ConfigError

_START_S = 120.0
_STOP_S = 10.0


class WorldServer:
    """Serves a world on loopback; `world` is that world at the addresses in use.

    In a process, the clock is copied: use one that runs by itself (WallClock, ScaledClock). In a thread
    it is shared, so that a ManualClock can be moved by a test.
    """

    def __init__(
        self,
        world: World,
        clock: Clock | None = None,
        base_port: int = 0,
        addresses: str = "many",
        *,
        thread: bool = False,
        faults: Faults | None = None,
        log_path: Path | None = None,
        keep_log: bool = True,
    ) -> None:
        self.world = world
        self.clock = clock or ScaledClock(1.0, world.spec.start_s)
        self._base_port = base_port
        self._addresses = addresses
        self._in_thread = thread
        self._faults = faults or Faults()
        self._log_path = log_path
        self._keep_log = keep_log
        self._stack = ExitStack()
        self._loop: Loop | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> WorldServer:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> WorldServer:
        """Listen; returns when connections are accepted."""
        if self._loop or self._process:
            raise BowerbirdError("world: the server is running already")
        if self._keep_log and self._log_path is None:
            folder = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="world-"))
            self._log_path = Path(folder) / "access.jsonl"
        plan = Plan(
            spec=self.world.spec,
            clock=self.clock,
            base_port=self._base_port,
            addresses=self._addresses,
            faults=self._faults,
            log_path=self._log_path if self._keep_log else None,
        )
        try:
            hosts = self._start_thread(plan) if self._in_thread else self._start_process(plan)
        except KeyboardInterrupt:
            if self._process:
                self._process.kill()  # it may be at work on a large world, and serves nobody yet
            self.stop()
            raise
        self.world = self.world.at(hosts)
        return self

    def _start_thread(self, plan: Plan) -> list[str]:
        loop = self._loop = Loop(plan, self.world)
        ready = threading.Event()
        thread = threading.Thread(target=loop.run, args=(lambda _: ready.set(),), name="world", daemon=True)
        thread.start()
        self._stack.callback(thread.join, _STOP_S)
        if not ready.wait(_START_S):
            raise BowerbirdError("world: the server did not start; see the error above")
        return loop.hosts

    def _start_process(self, plan: Plan) -> list[str]:
        command = [sys.executable, "-m", "bowerbird.lab.world.child"]
        # in a session of its own: Ctrl-C is for us, and we end it
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        stdin, stdout = self._pipes()
        # the pipe is private to us and our child, so pickle is safe here
        pickle.dump(plan, stdin)
        stdin.flush()
        line = stdout.readline()
        if not line:
            self.stop()
            raise BowerbirdError("world: the server did not start; its error is above")
        said = orjson.loads(line)
        if "error" in said:
            self.stop()
            raise ConfigError(said["error"])
        hosts: list[str] = said["hosts"]
        return hosts

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        assert self._process and self._process.stdin and self._process.stdout
        return self._process.stdin, self._process.stdout

    @property
    def pid(self) -> int | None:
        """The serving process, if it is another one."""
        return self._process.pid if self._process else None

    def log(self) -> list[Access]:
        """All requests answered until now, in the order of their answers."""
        if not self._keep_log or self._log_path is None:
            raise BowerbirdError("world: there is no log; start the server with keep_log=True")
        if self._loop:
            self._loop.flush()
        elif self._process:
            stdin, stdout = self._pipes()
            stdin.write(b"flush\n")
            stdin.flush()
            stdout.readline()
        return read_log(self._log_path) if self._log_path.exists() else []

    def stop(self) -> None:
        """Close all connections and end; a temporary log goes with it."""
        if self._loop:
            self._loop.stop()
            self._loop = None
        if self._process:
            stdin, stdout = self._pipes()
            try:
                # said as well as closed: a fork of this process may hold the pipe open
                stdin.write(b"stop\n")
                stdin.close()
            except BrokenPipeError:
                pass  # it has ended already
            try:
                self._process.wait(_STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            stdout.close()
            self._process = None
        self._stack.close()
