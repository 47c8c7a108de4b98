"""Plots of a run: lines with bands where a measure has places, bars elsewhere. Drawn without any global state."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bowerbird.lab.experiment import Family, Summary
from bowerbird.lab.tables import decimals_for, number_text, place_texts, place_unit, split_measure, unit_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: the colours of data on the dashboard
COLOURS = ("#2f5bd0", "#c98a12", "#2f8f6b", "#b4472f", "#7a4bb0", "#5c7380")
STROKES = ("-", "--", ":")
MARKS = ("o", "s", "^", "D", "v", "P", "X", "*")
INK, INK_SOFT, LINE = "#1b1d22", "#5a606b", "#dcdfe0"
#: an axis whose places reach so many times further than they begin is logarithmic
LOG_REACH = 10.0
_SETTINGS: dict[Any, Any] = {
    "svg.hashsalt": "bowerbird",  # the same numbers give the same file
    "font.size": 10.0,
    "text.color": INK,
    "axes.edgecolor": LINE,
    "axes.labelcolor": INK_SOFT,
    "xtick.color": INK_SOFT,
    "ytick.color": INK_SOFT,
}


@dataclass(frozen=True, slots=True)
class Plot:
    """One picture in both formats."""

    measure: str
    title: str
    svg: bytes
    png: bytes

    @property
    def stem(self) -> str:
        """What its files are called."""
        return "plot-" + re.sub(r"[^\w.-]+", "-", self.measure)


def measure_titles(family: Family, summaries: Sequence[Summary]) -> dict[str, str]:
    """What people call each measure: the beginning of what the family says of it; all of that where two begin alike."""
    units = {row.measure: unit_of(family, row.measure) or row.measure for row in summaries}
    kinds = dict.fromkeys(split_measure(measure)[0] for measure in units)
    units |= {kind: family.units[kind] for kind in kinds if kind and family.units.get(kind)}
    short = {measure: re.split("[,;]", unit)[0].strip() for measure, unit in units.items()}
    begun = list(short.values())
    return {measure: title if begun.count(title) == 1 else units[measure] for measure, title in short.items()}


def draw_plots(family: Family, summaries: Sequence[Summary], on: str) -> list[Plot]:
    """One for each measure, the headline first. Raises ImportError where matplotlib is not installed."""
    measures = sorted({row.measure: None for row in summaries if row.n}, key=lambda name: name != family.headline)
    plots, titles = [], measure_titles(family, summaries)
    for measure in measures:
        rows = [row for row in summaries if row.measure == measure and row.n]
        with plot_style():
            placed = len({row.at for row in rows}) > 1 and all(row.at is not None for row in rows)
            figure = draw_lines(rows, place_unit(family, measure) or "at") if placed else _draw_bars(rows)
            unit = unit_of(family, measure) or measure
            if placed:
                figure.axes[0].set_ylabel(unit)
            else:
                figure.axes[0].set_xlabel(unit)
            plots.append(make_plot(measure, f"{titles[measure]}: {on}", figure))
    return plots


@contextmanager
def plot_style() -> Iterator[None]:
    """Colours and letters of all plots, within the block."""
    import matplotlib as mpl

    with mpl.rc_context(_SETTINGS):
        yield


def make_plot(measure: str, title: str, figure: Figure) -> Plot:
    """A figure under its title, as files."""
    figure.axes[0].set_title(title, loc="left", fontsize=11, fontweight="bold")
    return Plot(measure, title, _save(figure, "svg"), _save(figure, "png"))


def draw_lines(rows: Sequence[Summary], across: str) -> Figure:
    """A line for each policy over the places at which it was measured, with a band of one standard error."""
    figure, axes = make_figure(8.0, 4.6)
    places = sorted({row.at for row in rows if row.at is not None})
    for nth, policy in enumerate(dict.fromkeys(row.policy for row in rows)):
        line = sorted((row.at or 0.0, row.mean, row.se) for row in rows if row.policy == policy)
        at, mean = [one[0] for one in line], [one[1] for one in line]
        low, high = [one[1] - one[2] for one in line], [one[1] + one[2] for one in line]
        colour = COLOURS[nth % len(COLOURS)]
        axes.fill_between(at, low, high, color=colour, alpha=0.16, linewidth=0)
        stroke = STROKES[nth // len(COLOURS) % len(STROKES)]
        axes.plot(at, mean, stroke, color=colour, marker=MARKS[nth % len(MARKS)], markersize=4, label=policy)
    if places[0] > 0 and places[-1] / places[0] >= LOG_REACH:
        axes.set_xscale("log")
    axes.set_xticks(places, place_texts(places))
    axes.minorticks_off()
    axes.set_xlabel(across)
    axes.grid(True, axis="y", color=LINE, linewidth=0.8)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    return figure


def _draw_bars(rows: Sequence[Summary]) -> Figure:
    figure, axes = make_figure(8.0, 1.3 + 0.34 * len(rows))
    names = [row.policy if row.at is None else f"{row.policy} at {row.at:g}" for row in rows]
    means, errors = [row.mean for row in rows], [row.se for row in rows]
    colours = [COLOURS[nth % len(COLOURS)] for nth in range(len(rows))]
    bars = axes.barh(
        range(len(rows)), means, xerr=errors if any(errors) else None, color=colours, alpha=0.85, height=0.66
    )
    digits = decimals_for(means)
    axes.bar_label(bars, [number_text(mean, digits) for mean in means], padding=5, fontsize=9)
    axes.set_yticks(range(len(rows)), names)
    axes.invert_yaxis()
    axes.margins(x=0.12)
    axes.grid(True, axis="x", color=LINE, linewidth=0.8)
    return figure


def make_figure(width: float, height: float) -> tuple[Figure, Any]:
    """An empty figure with its axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)
    return figure, axes


def _save(figure: Figure, form: str) -> bytes:
    out = io.BytesIO()
    figure.savefig(out, format=form, dpi=130, metadata={"Date": None} if form == "svg" else None)
    return out.getvalue()
