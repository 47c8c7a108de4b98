"""Charts as SVG: data in, markup out. Colours come from classes, so that a page can be light or dark.

A chart says what it shows to those who cannot see it (`role="img"` with a label), tells its values where the pointer
rests (`<title>`), and tolerates what measurements are like: nothing yet, one point, gaps, huge numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import TypeVar

from bowerbird.serve.dashboard_scale import (
    age_ticks,
    clean,
    count_text,
    nice_ticks,
    number_text,
    span_text,
    time_text,
    time_ticks,
    upper_bound,
)

_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_GUTTER_LEFT, _GUTTER_RIGHT, _GUTTER_TOP, _GUTTER_BOTTOM = 44.0, 12.0, 12.0, 24.0
ROW_HEIGHT = 26
LABEL_SHARE = 0.34
DOTS = 40  # points of a line with so few are marked
T = TypeVar("T")


def markup_text(value: object) -> str:
    """Text that may stand in XML and in HTML: escaped, without characters that XML cannot hold."""
    return escape(_FORBIDDEN.sub("\ufffd", str(value)), quote=True)


@dataclass(frozen=True, slots=True)
class Series:
    """One line or layer: its name, the class that colours it, and a value for each time (None or NaN: unknown)."""

    label: str
    key: str
    values: Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Bar:
    """One horizontal bar."""

    label: str
    value: float
    key: str = "plain"
    note: str = ""


@dataclass(frozen=True, slots=True)
class _Frame:
    """The rectangle data is drawn in, and the way from values to places in it."""

    width: float
    height: float
    start: float
    end: float
    low: float
    high: float
    ages: bool = False  # times are ages

    def x(self, at: float) -> float:
        span = self.end - self.start
        share = (at - self.start) / span if span > 0 else 0.5
        return _GUTTER_LEFT + min(max(share, 0.0), 1.0) * (self.width - _GUTTER_LEFT - _GUTTER_RIGHT)

    def y(self, value: float) -> float:
        span = self.high - self.low
        share = (value - self.low) / span if span > 0 else 0.5
        return self.bottom - min(max(share, 0.0), 1.0) * (self.bottom - _GUTTER_TOP)

    @property
    def bottom(self) -> float:
        return self.height - _GUTTER_BOTTOM

    @property
    def right(self) -> float:
        return self.width - _GUTTER_RIGHT

    def axes(self, text_of: Callable[[float], str], ticks: int = 4) -> str:
        """Grid lines with their values at the left, times below."""
        parts = []
        for tick in nice_ticks(self.low, self.high, ticks):
            y = self.y(tick)
            parts.append(
                f'<line class="rule" x1="{_GUTTER_LEFT:g}" x2="{self.right:g}" y1="{y:.1f}" y2="{y:.1f}"/>'
                f'<text class="tick" x="{_GUTTER_LEFT - 6:g}" y="{y + 4:.1f}" text-anchor="end">'
                f"{markup_text(text_of(tick))}</text>"
            )
        room = max(int((self.width - _GUTTER_LEFT) / 90), 1)
        for at, label in (age_ticks if self.ages else time_ticks)(self.start, self.end, room):
            x = self.x(at)
            anchor = "end" if x > self.right - 18 else "middle"
            parts.append(
                f'<line class="mark" x1="{x:.1f}" x2="{x:.1f}" y1="{self.bottom:g}" y2="{self.bottom + 4:g}"/>'
                f'<text class="tick" x="{x:.1f}" y="{self.height - 6:g}" text-anchor="{anchor}">'
                f"{markup_text(label)}</text>"
            )
        parts.append(
            f'<line class="axis" x1="{_GUTTER_LEFT:g}" x2="{self.right:g}" y1="{self.bottom:g}" y2="{self.bottom:g}"/>'
        )
        return "".join(parts)


def _svg(width: float, height: float, label: str, body: str, kind: str) -> str:
    return (
        f'<svg class="chart {kind}" preserveAspectRatio="xMinYMid" viewBox="0 0 {width:g} {height:g}" '
        f'role="img" aria-label="{markup_text(label)}" '
        f'xmlns="http://www.w3.org/2000/svg">{body}</svg>'
    )


def _nothing(width: float, height: float, label: str, kind: str) -> str:
    body = f'<text class="none" x="{width / 2:g}" y="{height / 2:g}" text-anchor="middle">nothing yet</text>'
    return _svg(width, height, f"{label}: nothing yet", body, kind)


def _hits(frame: _Frame, times: Sequence[float], notes: Sequence[str]) -> str:
    """Invisible columns, one a point: the pointer finds the values without aiming."""
    xs = [frame.x(at) for at in times]
    edges = [_GUTTER_LEFT, *((a + b) / 2 for a, b in pairwise(xs)), frame.right]
    return "".join(
        f'<rect class="hit" x="{left:.1f}" y="{_GUTTER_TOP:g}" width="{max(right - left, 0.1):.1f}" '
        f'height="{frame.bottom - _GUTTER_TOP:g}"><title>{markup_text(note)}</title></rect>'
        for left, right, note in zip(edges, edges[1:], notes, strict=False)
    )


def _runs(points: Sequence[T | None]) -> list[list[T]]:
    """Unbroken stretches between gaps."""
    runs: list[list[T]] = [[]]
    for point in points:
        if point is None:
            runs.append([])
        else:
            runs[-1].append(point)
    return [run for run in runs if run]


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def line_chart(
    times: Sequence[float],
    lines: Sequence[Series],
    *,
    label: str,
    low: Sequence[float | None] | None = None,
    high: Sequence[float | None] | None = None,
    bounds: tuple[float, float] | None = None,
    text_of: Callable[[float], str] = number_text,
    width: float = 440,
    height: float = 190,
    ages: bool = False,
) -> str:
    """Lines over time (or ages), with a band around the first where `low` and `high` are given. Times ascend."""
    kept = [(place, at) for place, raw in enumerate(times) if (at := clean(raw)) is not None]
    moments = [at for _, at in kept]
    columns = [[clean(line.values[place]) for place, _ in kept] for line in lines]
    edges = [[clean(edge[place]) for place, _ in kept] if edge else [None] * len(kept) for edge in (low, high)]
    shown = [number for column in (*columns, *edges) for number in column if number is not None]
    if not shown:
        return _nothing(width, height, label, "lines")
    floor, top = bounds or (min(0.0, *shown), upper_bound(max(shown)))
    frame = _Frame(width, height, moments[0], moments[-1], floor, top, ages)
    body = [frame.axes(text_of)]
    band = [
        None if below is None or above is None else (frame.x(at), frame.y(above), frame.y(below))
        for at, below, above in zip(moments, *edges, strict=True)
    ]
    for run in _runs(band):
        # one point has a band too: as wide as its dot
        wide = run if len(run) > 1 else [(run[0][0] - 3, *run[0][1:]), (run[0][0] + 3, *run[0][1:])]
        outline = [(x, y) for x, y, _ in wide] + [(x, y) for x, _, y in reversed(wide)]
        body.append(f'<path class="band fill-{markup_text(lines[0].key)}" d="{_path(outline)}Z"/>')
    for line, column in zip(lines, columns, strict=True):
        places = [
            None if value is None else (frame.x(at), frame.y(value)) for at, value in zip(moments, column, strict=True)
        ]
        body.extend(_stroke(run, markup_text(line.key), dots=len(moments) <= DOTS) for run in _runs(places))
    notes = [
        f"{span_text(at) if ages else time_text(at)}: "
        + ", ".join(
            _value_note(line, column[nth], text_of, alone=len(lines) == 1)
            for line, column in zip(lines, columns, strict=True)
        )
        + _band_note(edges[0][nth], edges[1][nth], text_of)
        for nth, at in enumerate(moments)
    ]
    body.append(_hits(frame, moments, notes))
    return _svg(width, height, f"{label}. Latest: {notes[-1]}", "".join(body), "lines")


def _stroke(run: Sequence[tuple[float, float]], key: str, *, dots: bool) -> str:
    line = f'<path class="line stroke-{key}" d="{_path(run)}"/>' if len(run) > 1 else ""
    if len(run) > 1 and not dots:
        return line
    radius = 2.5 if len(run) > 1 else 3.5
    return line + "".join(f'<circle class="dot fill-{key}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}"/>' for x, y in run)


def _value_note(line: Series, value: float | None, text_of: Callable[[float], str], *, alone: bool) -> str:
    text = "unknown" if value is None else text_of(value)
    return text if alone else f"{line.label} {text}"


def _band_note(low: float | None, high: float | None, text_of: Callable[[float], str]) -> str:
    return "" if low is None or high is None else f" ({text_of(low)} to {text_of(high)})"


def area_chart(
    times: Sequence[float],
    layers: Sequence[Series],
    *,
    label: str,
    text_of: Callable[[float], str] = number_text,
    width: float = 440,
    height: float = 190,
) -> str:
    """Layers on top of each other over time; the height of all is their sum. Unknown and negative count as 0."""
    kept = [(place, at) for place, raw in enumerate(times) if (at := clean(raw)) is not None]
    stacks = [[max(clean(layer.values[place]) or 0.0, 0.0) for place, _ in kept] for layer in layers]
    if not kept or not any(value for stack in stacks for value in stack):
        return _nothing(width, height, label, "area")
    sums = [min(sum(column), 1e300) for column in zip(*stacks, strict=True)]
    moments = [at for _, at in kept]
    frame = _Frame(width, height, moments[0], moments[-1], 0.0, upper_bound(max(sums)))
    xs = [frame.x(at) for at in moments] if len(moments) > 1 else [_GUTTER_LEFT, frame.right]
    body = [frame.axes(text_of)]
    floor = [0.0] * len(moments)
    for layer, stack in zip(layers, stacks, strict=True):
        roof = [min(a + b, 1e300) for a, b in zip(floor, stack, strict=True)]
        if any(stack):
            upper, lower = [frame.y(value) for value in roof], [frame.y(value) for value in floor]
            if len(moments) == 1:
                upper, lower = upper * 2, lower * 2
            edge = list(zip(xs, upper, strict=True))
            outline = edge + list(zip(reversed(xs), reversed(lower), strict=True))
            name = markup_text(layer.key)
            body.append(f'<path class="layer fill-{name}" d="{_path(outline)}Z"/>')
            body.append(f'<path class="edge stroke-{name}" d="{_path(edge)}"/>')
        floor = roof
    notes = [
        f"{time_text(at)}: {text_of(total)}, "
        + ", ".join(f"{layer.label} {text_of(stack[nth])}" for layer, stack in zip(layers, stacks, strict=True))
        for nth, (at, total) in enumerate(zip(moments, sums, strict=True))
    ]
    body.append(_hits(frame, moments, notes))
    return _svg(width, height, f"{label}. Latest: {notes[-1]}", "".join(body), "area")


def bar_chart(
    bars: Sequence[Bar],
    *,
    label: str,
    text_of: Callable[[float], str] = count_text,
    top: float | None = None,
    width: float = 440,
    label_share: float = LABEL_SHARE,
) -> str:
    """Horizontal bars with their names at the left and their values at the end."""
    values = [max(clean(bar.value) or 0.0, 0.0) for bar in bars]
    if not bars:
        return _nothing(width, 2 * ROW_HEIGHT, label, "bars")
    scale = max(values) if top is None else (clean(top) or 0.0)
    left, room = width * label_share, width * (1 - label_share) - 64
    letters = int(left / 6.6)
    body = []
    for nth, (bar, value) in enumerate(zip(bars, values, strict=True)):
        y = nth * ROW_HEIGHT
        long = max(min(value / scale, 1.0) * room, 1.5) if scale > 0 and value > 0 else 0.0
        name = bar.label if len(bar.label) <= letters else bar.label[: letters - 1] + "…"
        note = f"{bar.label}: {text_of(value)}" + (f" ({bar.note})" if bar.note else "")
        body.append(
            f"<g><title>{markup_text(note)}</title>"
            f'<text class="name" x="{left - 8:.1f}" y="{y + 17}" text-anchor="end">{markup_text(name)}</text>'
            f'<rect class="rail" x="{left:.1f}" y="{y + 6}" width="{room:.1f}" height="14" rx="3"/>'
            f'<rect class="bar fill-{markup_text(bar.key)}" x="{left:.1f}" y="{y + 6}" width="{long:.1f}" '
            f'height="14" rx="3"/>'
            f'<text class="value" x="{left + room + 8:.1f}" y="{y + 17}">{markup_text(text_of(value))}</text></g>'
        )
    said = ", ".join(f"{bar.label} {text_of(value)}" for bar, value in zip(bars, values, strict=True))
    return _svg(width, len(bars) * ROW_HEIGHT, f"{label}: {said}", "".join(body), "bars")


def sparkline(
    values: Sequence[float | None], *, label: str, key: str = "plain", width: float = 120, height: float = 28
) -> str:
    """A small line without axes, from 0 to the largest value."""
    numbers = [clean(value) for value in values]
    known = [value for value in numbers if value is not None]
    if not known:
        return _svg(width, height, f"{label}: nothing yet", "", "spark")
    floor, top = min(0.0, *known), max(known)
    span = top - floor if top > floor else 1.0
    step = (width - 4) / max(len(numbers) - 1, 1)
    points = [
        None if value is None else (2 + nth * step, height - 3 - (value - floor) / span * (height - 6))
        for nth, value in enumerate(numbers)
    ]
    body = []
    name = markup_text(key)
    for run in _runs(points):
        outline = [(run[0][0], height - 3), *run, (run[-1][0], height - 3)]
        body.append(f'<path class="under fill-{name}" d="{_path(outline)}Z"/>')
        body.append(f'<path class="line stroke-{name}" d="{_path(run)}"/>')
    last = next(point for point in reversed(points) if point is not None)
    body.append(f'<circle class="dot fill-{name}" cx="{last[0]:.1f}" cy="{last[1]:.1f}" r="2.5"/>')
    said = f"{label}: from {number_text(known[0])} to {number_text(known[-1])}, at most {number_text(top)}"
    return _svg(width, height, said, f"<title>{markup_text(said)}</title>{''.join(body)}", "spark")


def share_bar(share: float, *, key: str = "plain") -> str:
    """A bar within a table cell; the number stands beside it, so it says nothing to a screen reader."""
    number = clean(share) or 0.0
    percent = min(max(number, 0.0), 1.0) * 100
    return (
        '<svg class="share" aria-hidden="true" xmlns="http://www.w3.org/2000/svg">'
        '<rect class="rail" width="100%" height="100%" rx="3"/>'
        f'<rect class="bar fill-{markup_text(key)}" width="{percent:.1f}%" height="100%" rx="3"/></svg>'
    )


def legend(series: Sequence[Series | Bar]) -> str:
    """What each colour stands for."""
    entries = "".join(
        f'<li><svg class="swatch" viewBox="0 0 10 10" aria-hidden="true" xmlns="http://www.w3.org/2000/svg">'
        f'<rect class="fill-{markup_text(one.key)}" width="10" height="10" rx="2"/></svg>{markup_text(one.label)}</li>'
        for one in series
    )
    return f'<ul class="legend">{entries}</ul>'


def data_table(caption: str, heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """The numbers behind a chart, folded away."""
    head = "".join(f'<th scope="col">{markup_text(one)}</th>' for one in heads)
    lines = "".join("<tr>" + "".join(f"<td>{markup_text(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    name = markup_text(caption)
    return (
        f'<details class="data" data-key="{name}"><summary>Numbers</summary><div class="scroll"><table>'
        f"<caption>{name}</caption><thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div></details>"
    )
