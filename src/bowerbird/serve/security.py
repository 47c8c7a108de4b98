"""What every request passes through: the right host, a fair rate, a small body; and headers every answer carries."""

from __future__ import annotations

import asyncio
import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable

import orjson
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

MAX_BODY_BYTES = 64 << 10
BODY_WAIT_S = 10.0
MAX_CLIENTS = 10_000
#: seconds of the rate that a client may use at once: a page opens with several requests
BURST_S = 2.0
LOOPBACK_NAMES = frozenset({"localhost"})

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",  # a result's site must not learn what was asked
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


class RateLimiter:
    """A token bucket for each client address, in memory only; the least recent client is forgotten first."""

    def __init__(
        self,
        rate_per_s: float,
        *,
        burst: float | None = None,
        clock: Callable[[], float] = time.monotonic,
        max_clients: int = MAX_CLIENTS,
    ) -> None:
        self.rate_per_s = rate_per_s
        self.burst = max(1.0, rate_per_s * BURST_S if burst is None else burst)
        self._clock = clock
        self._max_clients = max_clients
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_s(self, client: str) -> float:
        """Take one request from the client's bucket: 0, or how long until there is one again."""
        if self.rate_per_s <= 0:
            return 0.0
        now = self._clock()
        key = client_key(client)
        left, at = self._buckets.pop(key, (self.burst, now))
        left = min(self.burst, left + max(0.0, now - at) * self.rate_per_s)
        wait = 0.0 if left >= 1 else (1 - left) / self.rate_per_s
        self._buckets[key] = (left if wait else left - 1, now)
        if len(self._buckets) > self._max_clients:
            self._buckets.popitem(last=False)
        return wait

    def __len__(self) -> int:
        return len(self._buckets)


def client_key(address: str) -> str:
    """Who shares a bucket: one IPv4 address, or one IPv6 network of 64 bits (a household has them all)."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return str(parsed)


def is_loopback(host: str) -> bool:
    """Is this a name or an address of this machine only?"""
    name = host.strip("[]").rstrip(".").lower()
    if name in LOOPBACK_NAMES:
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def is_address(name: str) -> bool:
    """Is this an IP address, not a name?"""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def host_name(header: str) -> str:
    """The name in a Host header, without its port."""
    if header.startswith("["):
        return header.partition("]")[0].strip("[").lower()
    return header.partition(":")[0].rstrip(".").lower()


class Guard:
    """The outermost layer. `hosts` None: any Host header will do; else loopback names and those given.

    With `addresses` any IP address will do too: whoever addresses one was not led here by a name that somebody else
    rules over, so it is no DNS rebinding.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        limiter: RateLimiter,
        hosts: Iterable[str] | None,
        addresses: bool = False,
        max_body_bytes: int = MAX_BODY_BYTES,
        on_limited: Callable[[], None] = lambda: None,
    ) -> None:
        self.app = app
        self.limiter = limiter
        self.hosts = None if hosts is None else frozenset(host.rstrip(".").lower() for host in hosts)
        self.addresses = addresses
        self.max_body_bytes = max_body_bytes
        self.on_limited = on_limited

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or pass on with headers added."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        async def refuse(status: int, detail: str, fields: dict[str, str] | None = None) -> None:
            await _refuse(send_guarded, scope, status, detail, fields or {})

        headers = Headers(scope=scope)
        if not self._knows(headers.get("host", "")):
            await refuse(400, "This service does not answer to that host name. --allow-host NAME lets it.")
            return
        if not str(scope["path"]).startswith("/static/"):
            client = scope.get("client")
            wait = self.limiter.wait_s(client[0] if client else "")
            if wait:
                self.on_limited()
                again = {"retry-after": str(math.ceil(wait))}
                await refuse(429, f"Too many requests: try again in {math.ceil(wait)} s.", again)
                return
        if "content-length" in headers or "transfer-encoding" in headers:
            try:
                body = await asyncio.wait_for(self._read(headers, receive), BODY_WAIT_S)
            except TimeoutError:
                await refuse(408, "The request's body did not arrive in time.")
                return
            if body is None:
                await refuse(413, f"The request's body is larger than {self.max_body_bytes:,} bytes.")
                return
            receive = _replay(body, receive)
        await self.app(scope, receive, send_guarded)

    def _knows(self, header: str) -> bool:
        if self.hosts is None:
            return True
        name = host_name(header)
        return is_loopback(name) or name in self.hosts or (self.addresses and is_address(name))

    async def _read(self, headers: Headers, receive: Receive) -> bytes | None:
        """The whole body; None where it is too large."""
        said = headers.get("content-length", "0")
        if not said.isdigit() or int(said) > self.max_body_bytes:
            return None
        body = bytearray()
        while True:
            message = await receive()
            body += message.get("body", b"")
            if len(body) > self.max_body_bytes:
                return None
            if message["type"] != "http.request" or not message.get("more_body"):
                return bytes(body)


def _replay(body: bytes, receive: Receive) -> Receive:
    sent = False

    async def replay() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


async def _refuse(send: Send, scope: Scope, status: int, detail: str, fields: dict[str, str]) -> None:
    """Answer before the application has seen the request: JSON to programs, a line of text to people."""
    for_program = str(scope["path"]).startswith("/api/")
    body = orjson.dumps({"detail": detail}) if for_program else f"{detail}\n".encode()
    kind = "application/json" if for_program else "text/plain; charset=utf-8"
    headers = {"content-type": kind, "content-length": str(len(body)), **fields}
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
