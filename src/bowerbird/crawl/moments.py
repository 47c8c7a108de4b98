"""Times as people and machines read them."""

from __future__ import annotations

from datetime import UTC, datetime

LAST_S = 253_402_300_800.0  # the year 10000: no calendar goes further


def clock_text(at: float | None) -> str | None:
    """A time as people and machines read it."""
    if not at or at >= LAST_S:
        return None
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
