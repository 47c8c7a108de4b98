"""Requests that people leave for the one who writes: URLs to add or to forget."""

from __future__ import annotations

from collections.abc import Iterable

from bowerbird.store.connection import Connection


def post_requests(connection: Connection, verb: str, urls: Iterable[str], at: float) -> None:
    """Leave requests: `add` or `forget`.

    The writer takes out all numbers up to the last that it applied: so none may be seen before a smaller one.
    """
    with connection.in_turn():
        connection.executemany("INSERT INTO inbox (verb, url, at) VALUES (?,?,?)", ((verb, url, at) for url in urls))
