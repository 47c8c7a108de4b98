"""Times as people and machines read them."""

from __future__ import annotations

from datetime import UTC, datetime


def clock_text(at: float | None) -> str | None:
    """A time as people and machines read it."""
    if not at or at == float("inf"):
        return None
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
