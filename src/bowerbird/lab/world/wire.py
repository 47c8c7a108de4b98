"""HTTP/1.1 as far as a crawler needs it: requests in, answers out, one connection at a time."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import time
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import formatdate, parsedate_to_datetime
from functools import lru_cache
from http import HTTPStatus

from bowerbird.lab.world.pages import Answer
from bowerbird.lab.world.world import World
from bowerbird.model.clock import Clock

_MAX_HEAD_BYTES = 65_536
_REASONS = {int(status): status.phrase for status in HTTPStatus}
_GZIP_MIN_BYTES = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """What goes wrong on purpose, and how slowly a host answers."""

    latency_ms: float = 0.0
    error_share: float = 0.0  # of requests: 503 with Retry-After
    retry_after_s: float = 1.0
    drop_share: float = 0.0  # of requests: the connection is reset
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Access:
    """One request as the server saw it; `connections` and `in_flight` are its host's and include it."""

    began_s: float  # real time
    ended_s: float
    host: str
    method: str
    path: str
    status: int  # 0: the connection was reset
    connections: int
    in_flight: int


class HostState:
    """What is going on at one host."""

    __slots__ = ("connections", "in_flight", "name", "number")

    def __init__(self, number: int, name: str) -> None:
        self.number = number
        self.name = name
        self.connections = 0
        self.in_flight = 0


@lru_cache(maxsize=4096)
def http_date(at_s: int) -> str:
    """A time as HTTP headers write it."""
    return formatdate(at_s, usegmt=True)


def parse_head(head: str) -> tuple[str, str, dict[str, str]] | None:
    """(method, target, headers by lower-case name) of a request's head; None if it is not one."""
    lines = head.split("\r\n")
    parts = lines[0].split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/1."):
        return None
    headers = {}
    for line in lines[1:]:
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    if parts[2] == "HTTP/1.0":
        headers.setdefault("connection", "close")
    return parts[0], parts[1], headers


def is_current(answer: Answer, headers: dict[str, str]) -> bool:
    """Does the client have this answer already? (RFC 9110, 13.2.2: the tag goes before the date.)"""
    tags = headers.get("if-none-match")
    if tags is not None:
        if answer.etag is None:
            return False
        own = answer.etag.removeprefix("W/")
        given = [tag.strip().removeprefix("W/") for tag in tags.split(",")]
        return own in given or "*" in given
    since = headers.get("if-modified-since")
    if since is None or answer.modified_s is None:
        return False
    try:
        return int(answer.modified_s) <= parsedate_to_datetime(since).timestamp()
    except ValueError:
        return False


def compose(answer: Answer, method: str, headers: dict[str, str], now_s: float) -> tuple[int, bytes]:
    """(status, bytes to send) for an answer."""
    status, body = answer.status, answer.body
    lines = [f"Date: {http_date(int(now_s))}", "Server: world"]
    if answer.etag is not None:
        lines.append(f"ETag: {answer.etag}")
    if answer.modified_s is not None:
        lines.append(f"Last-Modified: {http_date(int(answer.modified_s))}")
    if answer.gzip:
        lines.append("Vary: Accept-Encoding")
    if status == 200 and is_current(answer, headers):
        lines.insert(0, "HTTP/1.1 304 Not Modified")
        return 304, ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
    if answer.gzip and len(body) >= _GZIP_MIN_BYTES and "gzip" in headers.get("accept-encoding", ""):
        packer = zlib.compressobj(1, zlib.DEFLATED, 31)
        body = packer.compress(body) + packer.flush()
        lines.append("Content-Encoding: gzip")
    if answer.location is not None:
        lines.append(f"Location: {answer.location}")
    if answer.retry_after_s is not None:
        lines.append(f"Retry-After: {answer.retry_after_s:g}")
    if headers.get("connection", "").lower() == "close":
        lines.append("Connection: close")
    lines += [f"Content-Type: {answer.content_type}", f"Content-Length: {len(body)}"]
    lines.insert(0, f"HTTP/1.1 {status} {_REASONS.get(status, 'Unknown')}")
    head = ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
    return status, head if method == "HEAD" else head + body


def path_of(target: str) -> str:
    """The path and query of a request's target, which may be a whole URL."""
    if target.startswith("http://"):
        slash = target.find("/", 7)
        target = target[slash:] if slash >= 0 else "/"
    return target.partition("#")[0] or "/"


class Connection(asyncio.Protocol):
    """One client's connection to one host."""

    def __init__(
        self,
        world: World,
        clock: Clock,
        host: HostState,
        faults: Faults,
        chance: random.Random,
        record: Callable[[Access], None] | None,
        open_ones: set[Connection],
    ) -> None:
        self._world = world
        self._clock = clock
        self._host = host
        self._faults = faults
        self._chance = chance
        self._record = record
        self._open = open_ones
        self._transport: asyncio.Transport | None = None
        self._buffer = b""
        self._busy = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take note of a new connection."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._host.connections += 1
        self._open.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget a connection."""
        self._transport = None
        self._host.connections -= 1
        self._open.discard(self)

    def abort(self) -> None:
        """End the connection now."""
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Answer as soon as a whole request is there."""
        self._buffer += data
        if not self._busy:
            self._next()

    def _next(self) -> None:
        while self._transport is not None and not self._busy:
            head, mark, rest = self._buffer.partition(b"\r\n\r\n")
            if not mark:
                if len(self._buffer) > _MAX_HEAD_BYTES:
                    self._transport.close()
                return
            self._buffer = rest
            request = parse_head(head.decode("latin-1"))
            if request is None:
                self._transport.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
                self._transport.close()
                return
            self._busy = True
            self._host.in_flight += 1
            began_s = time.time()
            marks = (self._host.connections, self._host.in_flight)
            if self._faults.latency_ms > 0:
                loop = asyncio.get_running_loop()
                loop.call_later(self._faults.latency_ms / 1000, self._late, request, began_s, marks)
                return
            self._reply(*request, began_s, marks)

    def _late(self, request: tuple[str, str, dict[str, str]], began_s: float, marks: tuple[int, int]) -> None:
        self._reply(*request, began_s, marks)
        self._next()

    def _reply(self, method: str, target: str, headers: dict[str, str], began_s: float, marks: tuple[int, int]) -> None:
        self._busy = False
        self._host.in_flight -= 1
        path = path_of(target)
        status = 0
        if self._transport is not None:
            status, reply = self._answer(method, path, headers)
            if status == 0:
                self._reset(self._transport)
            else:
                self._transport.write(reply)
                if headers.get("connection", "").lower() == "close" or status == 405:
                    self._transport.close()
        if self._record is not None:
            self._record(Access(began_s, time.time(), self._host.name, method, path, status, *marks))

    def _answer(self, method: str, path: str, headers: dict[str, str]) -> tuple[int, bytes]:
        faults, now_s = self._faults, self._clock.now()
        if faults.drop_share and self._chance.random() < faults.drop_share:
            return 0, b""
        if method not in ("GET", "HEAD"):
            answer = Answer(405, b"only GET and HEAD\n", "text/plain")
        elif faults.error_share and self._chance.random() < faults.error_share:
            answer = Answer(503, b"busy\n", "text/plain", retry_after_s=faults.retry_after_s)
        else:
            answer = self._world.answer(self._host.number, path, now_s)
        return compose(answer, method, headers, now_s)

    @staticmethod
    def _reset(transport: asyncio.Transport) -> None:
        sock = transport.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        transport.abort()
