"""Plots of the holistic experiment: Q over time, clicks gained by split of the budget, fetches by kind over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bowerbird.lab.experiment import Summary
from bowerbird.lab.holistic_measures import CURVE, GAIN, SPENT, UNITS, over_time
from bowerbird.lab.holistic_policies import AUTO, BOUND, BREADTH_FIRST, CLAIRVOYANT, NUTCH, UNWATCHED, quota_names
from bowerbird.lab.plots import COLOURS, INK_SOFT, LINE, Plot, draw_lines, make_figure, make_plot, plot_style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_TICKS = 10


def draw_holistic(summaries: Sequence[Summary], on: str, budgets: Sequence[float]) -> list[Plot]:
    """By budget, from the tightest."""
    plots = []
    with plot_style():
        for budget in budgets:
            figure = _draw_splits(summaries, budget)
            if figure is not None:
                plots.append(
                    make_plot(f"{GAIN} {budget:g}", f"Clicks gained by split, budget {budget:g}%: {on}", figure)
                )
        for measure, title in ((CURVE, "Quality over time"), (SPENT, "Where auto's fetches go")):
            for budget in budgets:
                name = over_time(measure, budget)
                rows = [row for row in summaries if row.measure == name and row.n]
                if len({row.at for row in rows}) > 1:
                    figure = _draw_days(rows, UNITS[measure])
                    plots.append(make_plot(name, f"{title}, budget {budget:g}%: {on}", figure))
    return plots


def _draw_days(rows: Sequence[Summary], unit: str) -> Figure:
    figure = draw_lines(rows, "day")
    axes = figure.axes[0]
    axes.set_xscale("linear")
    axes.set_ylim(0.0, 100.0)
    axes.set_ylabel(unit.split(":", maxsplit=1)[0])
    days = sorted({row.at for row in rows if row.at is not None})
    kept = days[:: -(-len(days) // MOST_TICKS)]
    axes.set_xticks(kept, [f"{day:g}" for day in kept])
    return figure


def _draw_splits(summaries: Sequence[Summary], budget: float) -> Figure | None:
    """Bars of all splits, the best first; lines for the others."""
    rows = [row for row in summaries if row.measure == GAIN and row.at == budget and row.n]
    splits = sorted((row for row in rows if row.policy in quota_names()), key=lambda row: -row.mean)
    if not splits:
        return None
    figure, axes = make_figure(8.0, 5.2)
    axes.barh(range(len(splits)), [row.mean for row in splits], xerr=[row.se for row in splits], color=LINE, height=0.7)
    axes.set_yticks(range(len(splits)), [row.policy.removeprefix("quota-") for row in splits], fontsize=8)
    axes.invert_yaxis()
    axes.set_ylabel("new - refresh - hub, %")
    others = (AUTO, UNWATCHED, BREADTH_FIRST, NUTCH, CLAIRVOYANT, BOUND)
    for nth, policy in enumerate(others):
        row = next((row for row in rows if row.policy == policy), None)
        if row is not None:
            axes.axvline(row.mean, color=COLOURS[nth], label=policy, linewidth=2.0 if policy == AUTO else 1.2)
    axes.set_xlabel(UNITS[GAIN].split(",")[0], color=INK_SOFT)
    axes.legend(loc="lower right", frameon=False)
    return figure
