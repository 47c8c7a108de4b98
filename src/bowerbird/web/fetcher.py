"""Many fetches at once on one thread: libcurl speaks HTTP, an epoll of ours says who is ready.

A request waits in a queue until a connection may be opened, is given a pooled curl handle, and ends
as exactly one FetchResult, whatever the server does. Redirects are results, not followed.
"""

from __future__ import annotations

import select
import time
from collections import deque
from typing import Any

import pycurl

from bowerbird.model.clock import Clock, WallClock
from bowerbird.model.errors import ConfigError
from bowerbird.model.outcome import Outcome
from bowerbird.web.address import AddressPolicy
from bowerbird.web.decoding import ACCEPT_ENCODING
from bowerbird.web.limits import FetchLimits
from bowerbird.web.response import FetchResult
from bowerbird.web.transfer import FetchRequest, Transfer, find_ca_bundle

__all__ = ["FetchLimits", "FetchRequest", "FetchResult", "Fetcher"]

ACCEPT = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"

_DEFAULT_LIMITS = FetchLimits()
_MAX_EVENTS = 512
_MAX_MESSAGES = 512
_EPOLL_OF_CURL = {
    pycurl.POLL_IN: select.EPOLLIN,
    pycurl.POLL_OUT: select.EPOLLOUT,
    pycurl.POLL_INOUT: select.EPOLLIN | select.EPOLLOUT,
}


class Fetcher:
    """Fetches URLs within limits, from permitted addresses only.

    Not thread-safe: `submit` and `poll` belong to one thread.
    """

    def __init__(
        self,
        user_agent: str,
        limits: FetchLimits = _DEFAULT_LIMITS,
        addresses: AddressPolicy | None = None,
        clock: Clock | None = None,
        accept_language: str = "",
    ) -> None:
        self._limits = limits
        self._permits = (addresses or AddressPolicy()).permits
        self._clock = clock or WallClock()
        self._headers = _common_headers(user_agent, accept_language)
        self._ca_bundle = find_ca_bundle()
        self._queue: deque[FetchRequest] = deque()
        self._idle: list[Transfer] = []
        self._busy: dict[Any, Transfer] = {}
        self._finished: list[FetchResult] = []
        self._serial = 0
        # every transfer has the same time for its first byte, so start order is deadline order
        self._deadlines: deque[tuple[float, Transfer, int]] = deque()
        self._timer_at_s: float | None = None
        self._watched: set[int] = set()
        self._sockets: dict[int, int] = {}
        self._epoll = select.epoll()
        self._closed = False
        self._multi: Any = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)
        self._multi.setopt(pycurl.M_MAXCONNECTS, limits.max_connections)
        self._multi.setopt(pycurl.M_MAX_TOTAL_CONNECTIONS, limits.max_connections)

    def __repr__(self) -> str:
        return f"<Fetcher open={len(self._busy)} queued={len(self._queue)} of {self._limits.max_connections}>"

    def __enter__(self) -> Fetcher:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    @property
    def in_flight(self) -> int:
        """Requests submitted whose results were not yet returned."""
        return len(self._queue) + len(self._busy) + len(self._finished)

    def submit(self, request: FetchRequest) -> None:
        """Ask for a fetch. It starts at the next poll, or later when all connections are in use."""
        self._queue.append(request)

    def watch(self, fd: int) -> None:
        """Let `poll` return early whenever `fd` is readable."""
        self._watched.add(fd)
        self._epoll.register(fd, select.EPOLLIN)

    def poll(self, timeout_s: float) -> list[FetchResult]:
        """Move all transfers on and return those that ended; waits at most `timeout_s` for the first."""
        give_up_at_s = time.monotonic() + timeout_s
        while True:
            # requests go out before the caller turns to the results, and some end at once
            self._start_queued()
            self._run_timer(time.monotonic())
            self._collect()
            woken = self._wait(give_up_at_s)
            now_s = time.monotonic()
            self._run_timer(now_s)
            self._collect()
            self._expire(now_s)
            if self._finished or woken or now_s >= give_up_at_s:
                break
        if self._queue:
            self._start_queued()
            self._run_timer(now_s)
        results, self._finished = self._finished, []
        return results

    def close(self) -> None:
        """Abandon everything: no results come from what is still in flight."""
        if self._closed:
            return
        self._closed = True
        self._queue.clear()
        self._finished.clear()
        self._deadlines.clear()
        transfers = [*self._busy.values(), *self._idle]
        for curl in self._busy:
            self._multi.remove_handle(curl)
        self._busy.clear()
        self._idle.clear()
        self._multi.close()
        for transfer in transfers:
            transfer.curl.close()
        self._epoll.close()

    def _start_queued(self) -> None:
        while self._queue and len(self._busy) < self._limits.max_connections:
            request = self._queue.popleft()
            transfer = self._idle.pop() if self._idle else self._new_transfer()
            self._serial += 1
            now_s = time.monotonic()
            fault = transfer.start(request, self._serial, self._clock.now(), now_s)
            if fault:
                self._finished.append(transfer.fail(Outcome.PROTOCOL, fault))
                self._idle.append(transfer)
                continue
            self._busy[transfer.curl] = transfer
            self._deadlines.append((now_s + self._limits.first_byte_s, transfer, self._serial))
            self._multi.add_handle(transfer.curl)

    def _new_transfer(self) -> Transfer:
        return Transfer(self._limits, self._headers, self._permits, self._ca_bundle)

    def _wait(self, give_up_at_s: float) -> bool:
        """Sleep until something is ready, hand it to curl, and say whether a watched fd was readable."""
        until_s = give_up_at_s
        if self._finished:
            until_s = 0.0
        if self._timer_at_s is not None:
            until_s = min(until_s, self._timer_at_s)
        if self._deadlines:
            until_s = min(until_s, self._deadlines[0][0])
        events = self._epoll.poll(max(0.0, until_s - time.monotonic()), _MAX_EVENTS)
        woken = False
        socket_action = self._multi.socket_action
        for fd, event in events:
            if fd in self._watched:
                woken = True
                continue
            ready = 0
            if event & (select.EPOLLIN | select.EPOLLHUP):
                ready |= pycurl.CSELECT_IN
            if event & select.EPOLLOUT:
                ready |= pycurl.CSELECT_OUT
            if event & select.EPOLLERR:
                ready |= pycurl.CSELECT_ERR
            socket_action(fd, ready)
        return woken

    def _run_timer(self, now_s: float) -> None:
        if self._timer_at_s is not None and now_s >= self._timer_at_s:
            self._timer_at_s = None
            self._multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)

    def _collect(self) -> None:
        left = 1
        while left:
            left, succeeded, failed = self._multi.info_read(_MAX_MESSAGES)
            for curl in succeeded:
                self._release(curl, 0, "")
            for curl, code, message in failed:
                self._release(curl, code, message)

    def _release(self, curl: Any, code: int, message: str) -> None:
        transfer = self._busy.pop(curl)
        self._finished.append(transfer.finish(code, message, self._clock.now()))
        self._multi.remove_handle(curl)
        self._idle.append(transfer)

    def _expire(self, now_s: float) -> None:
        deadlines = self._deadlines
        while deadlines:
            deadline_s, transfer, serial = deadlines[0]
            if transfer.serial == serial and not transfer.received and transfer.curl in self._busy:
                if deadline_s > now_s:
                    return
                del self._busy[transfer.curl]
                self._finished.append(transfer.expire())
                self._multi.remove_handle(transfer.curl)
                self._idle.append(transfer)
            deadlines.popleft()

    def _on_socket(self, what: int, fd: int, multi: Any, assigned: Any) -> None:
        if self._closed:
            return
        wanted = _EPOLL_OF_CURL.get(what, 0)
        registered = self._sockets.get(fd)
        if wanted == 0:
            if registered is not None:
                del self._sockets[fd]
                try:
                    self._epoll.unregister(fd)
                except OSError:
                    pass  # closing a socket already took it out
            return
        self._sockets[fd] = wanted
        if registered is None:
            try:
                self._epoll.register(fd, wanted)
            except FileExistsError:
                self._epoll.modify(fd, wanted)
        elif registered != wanted:
            try:
                self._epoll.modify(fd, wanted)
            except FileNotFoundError:
                self._epoll.register(fd, wanted)

    def _on_timer(self, timeout_ms: int) -> None:
        # 0 means at once, without asking what time it is
        self._timer_at_s = None if timeout_ms < 0 else timeout_ms and time.monotonic() + timeout_ms / 1000


def _common_headers(user_agent: str, accept_language: str) -> list[str]:
    headers = [f"User-Agent: {user_agent}", f"Accept: {ACCEPT}", f"Accept-Encoding: {ACCEPT_ENCODING}"]
    if accept_language:
        headers.append(f"Accept-Language: {accept_language}")
    for line in headers:
        if not line.isascii() or not line.isprintable():
            raise ConfigError(f"{line!r} cannot be sent as a header: use printable ASCII")
    return headers
