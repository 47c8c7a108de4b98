"""The loop that serves a world, and the addresses it listens on (loopback only)."""

from __future__ import annotations

import asyncio
import random
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

import orjson

from bowerbird.lab.world.spec import WorldSpec
from bowerbird.lab.world.wire import Access, Connection, Faults, HostState
from bowerbird.lab.world.world import ADDRESSES, World, loopback
from bowerbird.model.clock import Clock
from bowerbird.model.errors import ConfigError

_TRIES = 20
_BACKLOG = 512


def _listen(address: str, port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((address, port))
        sock.listen(_BACKLOG)
        sock.setblocking(False)
    except OSError:
        sock.close()
        raise
    return sock


def _listen_all(wanted: Sequence[tuple[str, int]]) -> list[socket.socket]:
    """A socket for every address, or none at all."""
    sockets: list[socket.socket] = []
    try:
        for address, port in wanted:
            sockets.append(_listen(address, port))
    except OSError:
        for sock in sockets:
            sock.close()
        raise
    return sockets


def _has_many_addresses() -> bool:
    """Is all of 127/8 this machine, as on Linux?"""
    try:
        _listen(loopback(0)[0], 0).close()
    except OSError:
        return False
    return True


def open_sockets(hosts: int, base_port: int, addresses: str) -> list[socket.socket]:
    """One listening loopback socket for each host.

    "many": addresses of their own on one port (more than 250 hosts: on the next ports too).
    "ports": ports of 127.0.0.1. A base port of 0 means any that are free.
    """
    if addresses not in ("many", "ports"):
        raise ConfigError(f'world: addresses is "{addresses}", but it can be "many" or "ports"')
    if addresses == "ports" or not _has_many_addresses():
        try:
            return _listen_all([("127.0.0.1", base_port + host if base_port else 0) for host in range(hosts)])
        except OSError as error:
            raise ConfigError(f"world: ports from {base_port} cannot be bound: {error.strerror}") from error
    problem = ""
    for _ in range(1 if base_port else _TRIES):
        probe = None if base_port else _listen(loopback(0)[0], 0)
        port = probe.getsockname()[1] if probe else base_port
        if probe:
            probe.close()
        if port + (hosts - 1) // ADDRESSES > 65_535:
            problem = "there are not enough ports above it"
            continue
        try:
            return _listen_all([loopback(host, port) for host in range(hosts)])
        except OSError as error:
            problem = error.strerror or str(error)
    raise ConfigError(f"world: port {base_port} cannot be bound on 127.0.1.*: {problem}; choose another one")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to serve and how; it can be sent to another process."""

    spec: WorldSpec
    clock: Clock
    base_port: int = 0
    addresses: str = "many"
    faults: Faults = field(default_factory=Faults)
    log_path: Path | None = None


class AccessLog:
    """The requests of all hosts, a line of JSON each."""

    def __init__(self, path: Path) -> None:
        self._file: TextIO = path.open("a", encoding="utf-8")

    def write(self, access: Access) -> None:
        """Add a request."""
        self._file.write(orjson.dumps(access).decode() + "\n")

    def flush(self) -> None:
        """Put what was written where others can read it."""
        self._file.flush()

    def close(self) -> None:
        """End it."""
        self._file.close()


def read_log(path: Path) -> list[Access]:
    """All requests in a log."""
    with path.open("rb") as file:
        return [Access(**orjson.loads(line)) for line in file]


class Loop:
    """An event loop that serves one plan until it is told to stop."""

    def __init__(self, plan: Plan, world: World | None = None) -> None:
        self._plan = plan
        self._sockets = open_sockets(plan.spec.hosts, plan.base_port, plan.addresses)
        self.hosts = ["{}:{}".format(*sock.getsockname()) for sock in self._sockets]
        self._world = world.at(self.hosts) if world else World(plan.spec, self.hosts)
        self._log = AccessLog(plan.log_path) if plan.log_path else None
        self._loop = asyncio.new_event_loop()
        self._stopped = asyncio.Event()
        self._connections: set[Connection] = set()

    def run(self, ready: Callable[[list[str]], None]) -> None:
        """Serve; `ready` is called with the hosts' addresses once connections are accepted."""
        try:
            self._loop.run_until_complete(self._serve(ready))
        finally:
            self._loop.close()
            if self._log:
                self._log.close()

    async def _serve(self, ready: Callable[[list[str]], None]) -> None:
        chance = random.Random(self._plan.faults.seed)
        servers = []
        for number, sock in enumerate(self._sockets):
            state = HostState(number, self.hosts[number])
            factory = self._factory(state, chance)
            servers.append(await self._loop.create_server(factory, sock=sock, backlog=_BACKLOG))
        ready(self.hosts)
        await self._stopped.wait()
        for server in servers:
            server.close()
        for connection in list(self._connections):
            connection.abort()
        await asyncio.sleep(0.01)  # for the connections to be told

    def _factory(self, state: HostState, chance: random.Random) -> Callable[[], Connection]:
        plan, record = self._plan, self._log.write if self._log else None
        return lambda: Connection(self._world, plan.clock, state, plan.faults, chance, record, self._connections)

    def flush(self) -> None:
        """From another thread: put the log on disk and wait for it."""
        done = threading.Event()

        def flush() -> None:
            if self._log:
                self._log.flush()
            done.set()

        self._loop.call_soon_threadsafe(flush)
        done.wait(10)

    def stop(self) -> None:
        """From another thread: end."""
        self._loop.call_soon_threadsafe(self._stopped.set)
