"""A crowd of simulated searchers at a search service: real requests over HTTP, at a steady rate."""

from __future__ import annotations

import http.client
import threading
import time
from collections import Counter
from urllib.parse import quote

import orjson

from bowerbird.lab.searchers import Searchers
from bowerbird.model.clock import Clock

TIMEOUT_S = 10.0


class Crowd:
    """Asks a service that speaks `/api/search` and `/api/click`, until it is stopped."""

    def __init__(self, searchers: Searchers, host: str, port: int, clock: Clock, rate_per_s: float = 5.0) -> None:
        self.searchers = searchers
        self.host, self.port = host, port
        self.clock = clock
        self.rate_per_s = rate_per_s
        self.counts: Counter[str] = Counter()
        self.clicked: list[tuple[float, int]] = []  # by search its time and its clicks
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="searchers", daemon=True)

    def start(self) -> Crowd:
        """Begin to search."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """End after the search under way."""
        self._stop.set()
        self._thread.join(2 * TIMEOUT_S)

    def search_once(self, connection: http.client.HTTPConnection) -> list[int]:
        """One searcher: ask, look, click. The ranks that were clicked."""
        now = self.clock.now()
        query = self.searchers.ask(now)
        connection.request("GET", f"/api/search?q={quote(query)}")
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            self.counts["refused"] += 1
            return []
        results = orjson.loads(body)["results"]
        self.counts["searches"] += 1
        self.counts["without results"] += not results
        clicked = self.searchers.look(query, [result["url"] for result in results], now)
        self.clicked.append((time.time(), len(clicked)))
        for rank in clicked:
            token = orjson.dumps({"click": results[rank - 1]["click"]})
            connection.request("POST", "/api/click", token, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            self.counts["clicks" if answer.status == 204 else "refused"] += 1
        return clicked

    def _run(self) -> None:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=TIMEOUT_S)
        following = time.monotonic()
        while not self._stop.wait(max(0.0, following - time.monotonic())):
            following = max(following + 1.0 / self.rate_per_s, time.monotonic() - 1.0)
            try:
                self.search_once(connection)
            except (OSError, http.client.HTTPException):
                self.counts["failed"] += 1
                connection.close()  # it opens again by itself
        connection.close()
