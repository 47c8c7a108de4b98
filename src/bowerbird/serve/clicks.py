"""Clicks: a token that only this service can make names the result, and a thread writes down what happened.

A redirect goes where the token says and nowhere else, so nobody can use it to send people to a place of their own.
The token holds the query, the URL, the rank and the time; nothing about the person.
"""

from __future__ import annotations

import binascii
import hashlib
import hmac
import logging
import re
import secrets
import threading
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import orjson

from bowerbird.crawl.heap import Trimmer
from bowerbird.demand.events import Event

log = logging.getLogger(__name__)

MAX_TOKEN_CHARS = 16_384
CLICK_COUNTS_FOR_S = 86_400.0
_MAC_BYTES = 16
_TOKEN = re.compile(r"[A-Za-z0-9_-]+")
_REMEMBERED = 50_000
_NOTHING = -1  # which is no hash of anything in Python


@dataclass(frozen=True, slots=True)
class Shown:
    """A result as it was shown. No rank: it was folded under another."""

    query: str
    url: str
    rank: int | None
    at: float


class TokenSigner:
    """Makes and reads click tokens. The same secret makes the same tokens, so they outlive a restart."""

    def __init__(self, secret: bytes) -> None:
        self._key = hmac.digest(secret, b"bowerbird click token 1", hashlib.sha256)

    @classmethod
    def with_random_secret(cls) -> TokenSigner:
        """For a folder that cannot be written to."""
        return cls(secrets.token_bytes(32))

    def sign(self, shown: Shown) -> str:
        """A token for a result."""
        payload = orjson.dumps((shown.query, shown.url, shown.rank, round(shown.at, 3)))
        return urlsafe_b64encode(self._mac(payload) + payload).rstrip(b"=").decode()

    def read(self, token: str) -> Shown | None:
        """The result a token names; None for anything that was not signed here."""
        if len(token) > MAX_TOKEN_CHARS or not _TOKEN.fullmatch(token):
            return None
        try:
            data = urlsafe_b64decode(token + "=" * (-len(token) % 4))
        except (binascii.Error, ValueError):
            return None
        mac, payload = data[:_MAC_BYTES], data[_MAC_BYTES:]
        if not hmac.compare_digest(mac, self._mac(payload)):
            return None
        query, url, rank, at = orjson.loads(payload)
        return Shown(query, url, rank, at) if is_web_url(url) else None

    def _mac(self, payload: bytes) -> bytes:
        return hmac.digest(self._key, payload, hashlib.sha256)[:_MAC_BYTES]


def is_web_url(url: str) -> bool:
    """Only these schemes are ever linked to."""
    return url.startswith(("http://", "https://"))


class ClickOnce:
    """A result that was shown once can be clicked once: opening it again, or replaying its token, counts no more.

    Of each click eight bytes are kept, in room taken at the start: the hash of what was shown, by a key of this
    process. That two of them are the same by chance is a matter of one click in 10^14.
    """

    def __init__(self, capacity: int = _REMEMBERED) -> None:
        self._seen = np.full(capacity, _NOTHING, dtype=np.int64)
        self._next = 0
        self._lock = threading.Lock()

    def counts(self, shown: Shown, now: float) -> bool:
        """Is this the first click of that result, and is it recent?"""
        if not -60.0 < now - shown.at < CLICK_COUNTS_FOR_S:
            return False
        mark = hash(shown)
        with self._lock:
            if (self._seen == mark).any():
                return False
            self._seen[self._next] = mark
            self._next = (self._next + 1) % len(self._seen)
        return True


class EventLog(Protocol):
    """Where events go: the demand log."""

    def record(self, events: Sequence[Event]) -> object:
        """Write these in one transaction."""

    def close(self) -> None:
        """Let go of it."""


class Recorder:
    """Takes events at once, writes them once a second from a thread of its own; counts what it had to drop."""

    def __init__(
        self,
        open_log: Callable[[], EventLog],
        *,
        capacity: int = 20_000,
        every_s: float = 1.0,
        on_written: Callable[[int], None] = lambda count: None,
        on_dropped: Callable[[int], None] = lambda count: None,
    ) -> None:
        self._open_log = open_log
        self._capacity = capacity
        self._every_s = every_s
        self._on_written = on_written
        self._on_dropped = on_dropped
        self._waiting: list[Event] = []
        self._lock = threading.Lock()
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None
        self.written = 0
        self.dropped = 0

    def start(self) -> None:
        """Begin to write."""
        self._thread = threading.Thread(target=self._run, name="demand", daemon=True)
        self._thread.start()

    def put(self, events: Sequence[Event]) -> None:
        """Hand over events; never waits. What does not fit is dropped and counted."""
        with self._lock:
            room = max(0, self._capacity - len(self._waiting)) if not self._ending.is_set() else 0
            self._waiting.extend(events[:room])
        if room < len(events):
            self._drop(len(events) - room)

    @property
    def waiting(self) -> int:
        """Events not yet written."""
        return len(self._waiting)

    def close(self) -> None:
        """Write what waits, then end."""
        self._ending.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        event_log: EventLog | None = None
        trimmer = Trimmer()  # this thread is always there
        ended = False
        while not ended:
            ended = self._ending.wait(self._every_s)
            trimmer.trim()
            with self._lock:
                batch, self._waiting = self._waiting, []
            if not batch:
                continue
            try:
                event_log = event_log or self._open_log()
                event_log.record(batch)
            except Exception as error:  # a search must go on whatever befalls the log
                log.warning("%d events of searchers are lost: %s", len(batch), error)
                self._drop(len(batch))
                _close(event_log)
                event_log = None
                continue
            self.written += len(batch)
            self._on_written(len(batch))
        _close(event_log)

    def _drop(self, count: int) -> None:
        self.dropped += count
        self._on_dropped(count)


def _close(event_log: EventLog | None) -> None:
    if event_log is not None:
        try:
            event_log.close()
        except Exception as error:
            log.warning("the demand log did not close: %s", error)
