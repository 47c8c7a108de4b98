"""Plots of the refresh experiment: loss by budget, loss by signals, and the scatter of gains."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bowerbird.lab.experiment import Summary
from bowerbird.lab.plots import COLOURS, LINE, Plot, draw_lines, make_figure, make_plot, plot_style
from bowerbird.lab.refresh_halves import compare_halves
from bowerbird.lab.refresh_measures import LOSS, SIGNAL_BUDGETS, UNITS, signals_measure
from bowerbird.lab.refresh_scenes import RefreshScenes

#: below this, losses are drawn as if they were so
LEAST_BP = 0.01


def draw_refresh(data: RefreshScenes, summaries: Sequence[Summary]) -> list[Plot]:
    """By workload and scoring: quality by budget in sample and online, by signals, and Figure 3."""
    plots, scatters = [], []
    with plot_style():
        for place, scene in enumerate(data.combinations):
            rows = [row for row in summaries if row.measure == f"{LOSS} {scene.name}" and row.n]
            for kind, chosen in (
                ("in sample", [row for row in rows if not row.policy.endswith("-online")]),
                ("online", [row for row in rows if row.policy.endswith("-online") or row.policy == "uniform"]),
            ):
                if len({row.at for row in chosen}) > 1 and _any_loss(chosen):
                    title = f"Loss of quality by budget, {kind}: {data.name}, {scene.name}"
                    plots.append(_draw_losses(f"{LOSS}-{kind} {scene.name}", title, chosen, UNITS["at"], log=True))
            for share in SIGNAL_BUDGETS:
                measure = signals_measure(share, scene.name)
                chosen = [row for row in summaries if row.measure == measure and row.n]
                if _any_loss(chosen):
                    title = f"Loss by what signals are worth, {share:.0%} of pages a week: {data.name}, {scene.name}"
                    plots.append(_draw_losses(measure, title, chosen, "recall of the signals", log=False))
            if (halves := _draw_halves(data, place)) is not None:
                scatters.append(halves)
    return plots + scatters


def _any_loss(rows: Sequence[Summary]) -> bool:
    """Whether there is anything to see, and a place for it on a logarithmic axis."""
    return any(row.mean > LEAST_BP for row in rows)


def _draw_losses(measure: str, title: str, rows: Sequence[Summary], across: str, *, log: bool) -> Plot:
    figure = draw_lines(rows, across)
    axes = figure.axes[0]
    axes.set_ylabel("loss of quality, bp: 10,000 · (1 - Q)")
    if log:
        axes.set_yscale("log")
        axes.set_ylim(bottom=max(min(row.mean for row in rows), LEAST_BP) * 0.8)
    else:
        axes.set_ylim(bottom=0.0)
    return make_plot(measure, title, figure)


def _draw_halves(data: RefreshScenes, place: int) -> Plot | None:
    """None where no page gained in both halves."""
    scene = data.combinations[place]
    halves = compare_halves(data.data, scene.curve_gains)
    shown = halves.positive
    if not len(shown.page):
        return None
    figure, axes = make_figure(7.0, 5.4)
    colour = COLOURS[place % len(COLOURS)]
    # thousands of points: drawn as one picture, also where the rest is lines
    axes.scatter(shown.first, shown.second, s=9, alpha=0.35, linewidths=0, color=colour, rasterized=True)
    axes.set_xscale("log")
    axes.set_yscale("log")
    ends = [
        min(shown.first.min(), shown.second.min()),
        max(shown.first.max(), shown.second.max()),
    ]
    axes.plot(ends, ends, "--", color=LINE, linewidth=1)
    axes.set_xlabel("mean gain of an update in the first half of the weeks, share of Q")
    axes.set_ylabel("in the second half")
    title = f"Gains in both halves: {data.name}, {scene.name}, {len(shown.page):,} of {len(halves.page):,} pages"
    relation = "" if math.isnan(shown.correlation) else f" (ρ {shown.correlation:.2f})"
    return make_plot(f"gains {scene.name}", f"{title}{relation}", figure)
