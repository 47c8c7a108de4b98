"""Plots of the echo experiment: one for each measure with places, of the policies that it tells apart."""

from __future__ import annotations

from collections.abc import Sequence

from bowerbird.lab.echo_measures import (
    COVER,
    DISCOVERED,
    DISCOVERY_DELAY,
    DYNAMIC,
    FETCHED,
    HISTORY,
    INTEREST,
    PROFIT,
    PUSHES,
    UNITS,
)
from bowerbird.lab.experiment import Summary
from bowerbird.lab.plots import Plot, draw_lines, make_plot, plot_style

TITLES = {
    PROFIT: "Profit by budget",
    FETCHED: "New pages fetched by budget",
    DYNAMIC: "Profit as time goes on",
    PUSHES: "Profit by how often clicks are told",
    HISTORY: "Profit by the history of visits",
    DISCOVERED: "New pages seen by visits",
    DISCOVERY_DELAY: "How soon new pages are seen",
    COVER: "New pages that few hubs link to",
    INTEREST: "Interest by age",
}
#: more places than this are too many to be named on an axis
MOST_TICKS = 12


def draw_echo(summaries: Sequence[Summary], on: str) -> list[Plot]:
    """In the order of the titles; measures without places, or with one, have none."""
    plots = []
    with plot_style():
        for measure, title in _measures(summaries):
            rows = [row for row in summaries if row.measure == measure and row.n and row.at is not None]
            places = sorted({row.at for row in rows if row.at is not None})
            if len(places) < 2:
                continue
            kind = measure.split(" ")[0]
            figure = draw_lines(rows, UNITS.get(f"at {kind}", UNITS["at"]))
            axes = figure.axes[0]
            axes.set_ylabel(UNITS[kind].split(",")[0].split(":")[0])
            axes.set_ylim(bottom=0.0)
            if kind == DYNAMIC:
                axes.set_xscale("linear")  # days are alike
            if len(places) > MOST_TICKS or kind == DYNAMIC:
                kept = places[:: -(-len(places) // MOST_TICKS)]
                axes.set_xticks(kept, [f"{place:g}" for place in kept])
            plots.append(make_plot(measure, f"{title}: {on}", figure))
    return plots


def _measures(summaries: Sequence[Summary]) -> list[tuple[str, str]]:
    """Measures and their titles; that of the dynamic profit names the budget."""
    found: list[tuple[str, str]] = []
    for measure, title in TITLES.items():
        if measure == DYNAMIC:
            names = dict.fromkeys(row.measure for row in summaries if row.measure.startswith(f"{DYNAMIC} "))
            found.extend((name, f"{title}, {name.removeprefix(DYNAMIC).strip()}") for name in names)
        else:
            found.append((measure, title))
    return found
