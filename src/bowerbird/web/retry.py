"""How long to leave a host or a page alone after errors. Pure arithmetic; the caller holds the clock."""

from __future__ import annotations

_MAX_DOUBLINGS = 64
LONGEST_S = 86_400.0


def backoff_s(
    consecutive_errors: int,
    base_s: float = 30.0,
    cap_s: float = LONGEST_S,
    retry_after_s: float | None = None,
) -> float:
    """Seconds to wait after so many errors in a row: doubling from `base_s`, never above `cap_s`.

    What the server asked for (`Retry-After`) counts when it is longer than our own wait.

    >>> [backoff_s(n) for n in (0, 1, 2, 3)]
    [0.0, 30.0, 60.0, 120.0]
    >>> backoff_s(1, retry_after_s=90)
    90.0
    >>> backoff_s(5000)
    86400.0
    """
    wait_s = 0.0
    if consecutive_errors > 0:
        wait_s = base_s * 2.0 ** min(consecutive_errors - 1, _MAX_DOUBLINGS)
    if retry_after_s is not None:
        wait_s = max(wait_s, retry_after_s)
    return float(min(wait_s, cap_s))
