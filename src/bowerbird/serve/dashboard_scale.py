"""Scales of charts: round ticks for numbers and times, and the words they are written in."""

from __future__ import annotations

import math
from datetime import UTC, datetime

#: steps between ticks of time that people count in, in seconds
_STEPS_S = (
    *(1, 2, 5, 10, 15, 30),
    *(60, 120, 300, 600, 900, 1800),
    *(3600, 7200, 3 * 3600, 6 * 3600, 12 * 3600),
    *(86400, 2 * 86400, 7 * 86400, 14 * 86400, 30 * 86400, 91 * 86400, 182 * 86400),
)
YEAR_S = 365 * 86400
_LAST_S = 253_402_300_799.0  # the last second that has a date
_HUGE = 1e300
_SCALES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def clean(value: float | None) -> float | None:
    """A number that can be drawn, or None; the absurdly large are bounded, so that differences stay finite."""
    if value is None:
        return None
    number = float(value)
    return min(max(number, -_HUGE), _HUGE) if math.isfinite(number) else None


def nice_step(span: float, count: int) -> float:
    """1, 2 or 5 times a power of ten that divides `span` into about `count` parts.

    >>> nice_step(10, 4), nice_step(0.9, 4), nice_step(7300, 4)
    (2.0, 0.2, 2000.0)
    """
    rough = span / max(count, 1)
    power = 10.0 ** math.floor(math.log10(rough))
    return min((factor * power for factor in (1.0, 2.0, 5.0, 10.0)), key=lambda step: abs(step - rough))


def nice_ticks(low: float, high: float, count: int = 4) -> list[float]:
    """Round values from `low` to `high`.

    >>> nice_ticks(0, 10)
    [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    >>> nice_ticks(3, 3)
    [3.0]
    """
    span = high - low
    if not math.isfinite(span) or span <= 0 or span < 1e-300 or span < 1e-12 * max(abs(low), abs(high)):
        return [float(low)]
    step = nice_step(span, count)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [nth * step for nth in range(first, last + 1)]


def upper_bound(top: float, count: int = 4) -> float:
    """The first tick at or above the largest value, so that nothing is drawn outside.

    >>> upper_bound(7.3), upper_bound(0)
    (8.0, 1.0)
    """
    if top <= 0 or top < 1e-290:
        return 1.0
    step = nice_step(top, count)
    return math.ceil(top / step - 1e-9) * step


def _moment(at: float) -> datetime:
    return datetime.fromtimestamp(min(max(at, 0.0), _LAST_S), UTC)


def time_ticks(start: float, end: float, count: int) -> list[tuple[float, str]]:
    """Round times between two (UTC), each with a label as long as it has to be."""
    start, end = min(max(start, 0.0), _LAST_S), min(max(end, 0.0), _LAST_S)
    span = end - start
    if span < 1:
        return [(start, _moment(start).strftime("%H:%M:%S"))]
    rough = span / max(count, 1)
    step = next((step for step in _STEPS_S if step >= rough), None)
    if step is None:
        step = math.ceil(rough / YEAR_S) * YEAR_S
    pattern = "%H:%M:%S" if step < 60 else "%H:%M" if step < 86400 else "%-d %b" if step < 182 * 86400 else "%b %Y"
    first = math.ceil(start / step)
    return [(nth * step, _moment(nth * step).strftime(pattern)) for nth in range(first, int(end // step) + 1)]


def age_ticks(start: float, end: float, count: int) -> list[tuple[float, str]]:
    """Round lengths of time between two, each with its label.

    >>> age_ticks(0, 14 * 86400, 4)
    [(0, '0 s'), (604800, '7.0 d'), (1209600, '14 d')]
    """
    rough = max(end - start, 1.0) / max(count, 1)
    step = next((step for step in _STEPS_S if step >= rough), _STEPS_S[-1])
    return [(nth * step, span_text(nth * step)) for nth in range(math.ceil(start / step), int(end // step) + 1)]


def time_text(at: float) -> str:
    """A time in full: `2024-05-01 12:30:00`."""
    return _moment(at).strftime("%Y-%m-%d %H:%M:%S")


def day_text(at: float) -> str:
    """A day and a time: `1 May 12:30`."""
    return _moment(at).strftime("%-d %b %H:%M")


def number_text(value: float) -> str:
    """Three figures and a scale.

    >>> [number_text(value) for value in (0, 0.25, 12.345, 1234, 2_000_000, 1e30)]
    ['0', '0.25', '12.3', '1.23k', '2M', '1e+30']
    """
    size = abs(value)
    if size >= 1e15 or 0 < size < 1e-4:
        return f"{value:.3g}"
    for scale, letter in _SCALES:
        if size >= scale:
            return f"{_figures(value / scale)}{letter}"
    return _figures(value)


def _figures(value: float) -> str:
    if abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}"


def count_text(value: float) -> str:
    """A whole number with its thousands apart, short when it is long.

    >>> count_text(12345), count_text(12_345_678)
    ('12,345', '12.3M')
    """
    return f"{value:,.0f}" if abs(value) < 100_000 else number_text(value)


def percent_text(value: float) -> str:
    """A share: `83.4%`.

    >>> percent_text(0.834), percent_text(1), percent_text(0.0004)
    ('83.4%', '100%', '0.04%')
    """
    percent = value * 100
    return f"{percent:.3g}%" if abs(percent) < 99.95 else f"{percent:.0f}%"


def span_text(seconds: float) -> str:
    """A length of time in one unit.

    >>> [span_text(s) for s in (0.004, 0.4, 42, 300, 7200, 200_000)]
    ['4 ms', '0.4 s', '42 s', '5 min', '2 h', '2.3 d']
    """
    size = abs(seconds)
    if 0 < size < 0.1:
        return f"{seconds * 1000:.0f} ms"
    if size < 1:
        return f"{seconds:.1f} s" if size else "0 s"
    for limit, unit_s, unit in ((90, 1, "s"), (5400, 60, "min"), (172_800, 3600, "h")):
        if size < limit:
            return f"{seconds / unit_s:.0f} {unit}"
    days = seconds / 86400
    return f"{days:.1f} d" if abs(days) < 10 else f"{days:,.0f} d"
