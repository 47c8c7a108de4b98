"""Plots of the seeds experiment: coverage by seeds and by hops."""

from __future__ import annotations

from collections.abc import Sequence

from bowerbird.lab.experiment import Summary
from bowerbird.lab.plots import Plot, draw_lines, make_plot, plot_style
from bowerbird.lab.seeds_measures import COVERAGES, HOP_PAGES, HOP_VALUE, PAGES, SCOPES, UNITS, VALUE, name_measure

TITLES = {
    PAGES: "Pages covered by seeds",
    VALUE: "Value covered by seeds",
    HOP_PAGES: "Pages covered by hops",
    HOP_VALUE: "Value covered by hops",
}


def draw_seeds(summaries: Sequence[Summary], on: str) -> list[Plot]:
    """One for each kind of coverage and scope; what is above Random is told in tables only."""
    plots = []
    with plot_style():
        for scope in SCOPES:
            for kind in COVERAGES:
                measure = name_measure(kind, scope)
                rows = [row for row in summaries if row.measure == measure and row.n]
                if not rows:
                    continue
                figure = draw_lines(rows, UNITS[f"at {kind}"])
                axes = figure.axes[0]
                places = sorted({row.at for row in rows if row.at is not None})
                axes.set_xscale("linear")
                axes.set_xticks(places, [f"{place:g}" for place in places])
                axes.set_ylabel(UNITS[kind].removesuffix(", by hops"))
                axes.set_ylim(bottom=0.0)
                plots.append(make_plot(measure, f"{TITLES[kind]}: {on}, {scope}", figure))
    return plots
