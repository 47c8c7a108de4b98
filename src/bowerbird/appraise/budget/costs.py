"""What a fetch costs beside another: its turn at the host, bytes and time, a third each."""

from __future__ import annotations

from dataclasses import dataclass

FEWEST = 20.0  # fetches that a cost of 1 weighs as much as


@dataclass(frozen=True, slots=True)
class Fetches:
    """Some fetches: how many, and what each took on average."""

    count: int
    bytes: float
    seconds: float


def relative_cost(some: Fetches, usual: Fetches) -> float:
    """[BEYOND] (1 + b/b0 + t/t0)/3: what fetches cost in usual ones; near 1 while few are known.

    A fetch takes its turn at its host whatever comes back.

    >>> round(relative_cost(Fetches(10**6, 10.0, 0.5), Fetches(10**6, 100.0, 1.0)), 4)  # (1 + 0.1 + 0.5)/3
    0.5333
    """
    if not (some.count and usual.count):
        return 1.0
    parts = (1.0, some.bytes / max(usual.bytes, 1.0), some.seconds / max(usual.seconds, 1e-6))
    known = min(some.count, usual.count)
    return (known * sum(parts) / 3.0 + FEWEST) / (known + FEWEST)
