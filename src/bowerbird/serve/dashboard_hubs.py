"""The panel of hubs where they are studied: which of them announce new pages, and how long interest in those lasts."""

from __future__ import annotations

import math
from typing import Any

from markupsafe import Markup

from bowerbird.crawl.hub_report import cover_text
from bowerbird.serve import charts
from bowerbird.serve.charts import Series
from bowerbird.serve.dashboard_data import Glance
from bowerbird.serve.dashboard_scale import number_text, span_text
from bowerbird.serve.pages import render

FIT_POINTS = 40


def studied_hubs_panel(glance: Glance, report: dict[str, Any]) -> str:
    """The hubs by a report of `crawl.hub_report`."""
    most = max((row["rate_per_day"] for row in report["table"]), default=0.0) or 1.0
    rows = [(row, Markup(charts.share_bar(row["rate_per_day"] / most, key="hub"))) for row in report["table"]]
    interest = report["interest"]
    times, lines = interest_curve(report)
    table = [
        (span_text(age), number_text(clicks))
        for age, clicks in zip(interest["age_s"], interest["mean_clicks"], strict=True)
    ]
    return render(
        "dashboard_hubs_studied.html",
        glance=glance,
        report=report,
        rows=rows,
        cover=cover_text(report["cover"]),
        chart=Markup(
            charts.line_chart(
                times, lines, label="Interest in a new page by its age", height=150, ages=True, text_of=number_text
            )
        ),
        legend=Markup(charts.legend(lines)),
        numbers=Markup(charts.data_table("Clicks of a new page", ("by the age of", "clicks"), table)) if table else "",
    )


def interest_curve(report: dict[str, Any]) -> tuple[list[float], list[Series]]:
    """Clicks that the mean new page has got by each age, and the fit; without clicks the share of its interest."""
    interest = report["interest"]
    decay = math.log(2.0) / max(interest["half_life_s"], 1e-9)
    if report["by_clicks"]:
        times = [0.0, *interest["age_s"]]
        profit = interest["clicks_per_new_page"]
        seen = Series("clicks seen", "click", [0.0, *interest["mean_clicks"]])
        return times, [seen, Series("fit", "hub", [-profit * math.expm1(-decay * at) for at in times])]
    times = [nth * 4.0 * interest["half_life_s"] / FIT_POINTS for nth in range(FIT_POINTS + 1)]
    return times, [Series("assumed interest left", "hub", [math.exp(-decay * at) for at in times])]
