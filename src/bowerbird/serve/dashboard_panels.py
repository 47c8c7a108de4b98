"""The dashboard's panels: each a piece of HTML made from a glance, with its charts, to be shown or sent alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from markupsafe import Markup

from bowerbird.crawl.measurements import CAUSES
from bowerbird.crawl.seed_report import summary_text
from bowerbird.model.outcome import DECISIONS_WITHOUT_FETCH, NO_ERRORS, Outcome
from bowerbird.serve import charts
from bowerbird.serve.charts import Bar, Series
from bowerbird.serve.dashboard_budget import budget_panel, budget_series, total_by_kind
from bowerbird.serve.dashboard_data import Glance, thin
from bowerbird.serve.dashboard_hubs import studied_hubs_panel
from bowerbird.serve.dashboard_journal import ERRORS
from bowerbird.serve.dashboard_scale import number_text, percent_text, time_text
from bowerbird.serve.dashboard_text import reason_text
from bowerbird.serve.pages import render

CAUSE_TEXT = {
    "rose": "worth more by now (rose)",
    "fell": "worth less by now (fell)",
    "unfetched": "not fetched yet (unfetched)",
    "gone": "gone, still shown (gone)",
}
SEEDS = 12  # that are shown
CAUSE_LABEL_SHARE = 0.47  # of the chart's width: room for the longest of them
NO_ERROR_TEXT = {
    Outcome.GONE: "not found",
    Outcome.ROBOTS: "excluded by robots.txt",
    Outcome.OUT_OF_SCOPE: "out of scope",
}
#: wide for a desk, narrow for a phone: the letters stay readable on both
HERO_WIDTHS = (("wide", 760.0, 240.0), ("narrow", 400.0, 210.0))


def _hero(draw: Callable[[float, float], str]) -> Markup:
    parts = (f'<div class="{name}">{draw(width, height)}</div>' for name, width, height in HERO_WIDTHS)
    return Markup("".join(parts))


def status_panel(glance: Glance) -> str:
    """The head: does it run, how fast, how good, how much."""
    survey = glance.survey.status if glance.survey else {}
    live = glance.live
    times, layers = budget_series(glance)
    speeds = [sum(layer.values[nth] or 0.0 for layer in layers) for nth in range(len(times))]
    latest = glance.quality[-1] if glance.quality else None
    return render(
        "dashboard_status.html",
        glance=glance,
        live=live,
        survey=survey,
        fetches=sum(total_by_kind(glance).values()),
        known=live.get("known", survey.get("known")),
        frontier=live.get("frontier", survey.get("frontier")),
        speed=live.get("pages_per_s", 0.0 if not glance.running else survey.get("pages_per_s", 0.0)),
        latest=latest,
        quality_spark=Markup(
            charts.sparkline([one.quality for one in thin(glance.quality, 60)], label="Search quality", key="quality")
        ),
        speed_spark=Markup(charts.sparkline(speeds, label="Fetches a second", key="new")),
        query_spark=Markup(charts.sparkline(glance.demand.asked, label="Queries", key="query")),
    )


def quality_panel(glance: Glance) -> str:
    """Search quality over time, and where it is lost."""
    points = thin(glance.quality)
    times = [one.at for one in points]

    def draw(width: float, height: float) -> str:
        return charts.line_chart(
            times,
            [Series("quality", "quality", [one.quality for one in points])],
            low=[one.low for one in points],
            high=[one.high for one in points],
            label="Search quality over time with its 95% interval",
            bounds=(0.0, 1.0),
            text_of=percent_text,
            width=width,
            height=height,
        )

    latest = points[-1] if points else None
    causes = latest.causes if latest else {}
    bars = [Bar(CAUSE_TEXT.get(name, name), causes.get(name, 0.0), f"cause-{name}") for name in CAUSES]
    rows = [
        (time_text(p.at), percent_text(p.quality), percent_text(p.low), percent_text(p.high), p.probes) for p in points
    ]
    return render(
        "dashboard_quality.html",
        glance=glance,
        latest=latest,
        lost=sum(causes.values()),
        chart=_hero(draw) if points else "",
        causes=Markup(
            charts.bar_chart(
                bars,
                label="Quality lost, by cause",
                text_of=percent_text,
                top=_at_least(bars, 0.02),
                width=400,
                label_share=CAUSE_LABEL_SHARE,
            )
        ),
        numbers=Markup(
            charts.data_table("Search quality", ("time (UTC)", "quality", "from", "to", "probes"), rows[::-1][:60])
        ),
    )


def _at_least(bars: Sequence[Bar], least: float) -> float:
    return max(least, *(bar.value for bar in bars))


def errors_panel(glance: Glance) -> str:
    """Errors by kind, in the window and in all, their share of the fetches over time; apart, what was not to be had."""
    counted = (*ERRORS, *NO_ERRORS)
    here = {outcome: sum(one.of_outcome(outcome) for one in glance.intervals) for outcome in counted}
    ever = dict.fromkeys(counted, 0)
    for (_, outcome), number in glance.totals.items():
        if outcome in ever:
            ever[Outcome(outcome)] += number
    # a sample may tell one too many
    here = {outcome: min(number, ever[outcome]) for outcome, number in here.items()}
    most = max([*(here[outcome] for outcome in ERRORS), 1.0])
    rows = [
        (outcome.label, here[outcome], ever[outcome], Markup(charts.share_bar(here[outcome] / most, key="error")))
        for outcome in sorted(ERRORS, key=lambda one: (-here[one], -ever[one], one))
        if ever[outcome] or here[outcome]
    ]
    apart = [(NO_ERROR_TEXT[outcome], here[outcome], ever[outcome]) for outcome in NO_ERRORS if ever[outcome]]
    times = [interval.start + interval.length_s / 2 for interval in glance.intervals]
    shares = []
    for interval in glance.intervals:
        asked = sum(n for (_, outcome), n in interval.counts.items() if outcome not in DECISIONS_WITHOUT_FETCH)
        bad = sum(interval.of_outcome(outcome) for outcome in ERRORS if outcome not in DECISIONS_WITHOUT_FETCH)
        shares.append(bad / asked if asked else None)
    return render(
        "dashboard_errors.html",
        glance=glance,
        rows=rows,
        apart=apart,
        chart=Markup(
            charts.line_chart(
                times,
                [Series("failed", "error", shares)],
                label="Share of fetches that failed",
                text_of=percent_text,
                height=130,
            )
        ),
        numbers=Markup(
            charts.data_table(
                "Share of fetches that failed",
                ("time (UTC)", "share"),
                [
                    (time_text(at), "" if share is None else percent_text(share))
                    for at, share in zip(times, shares, strict=True)
                ][::-1],
            )
        ),
    )


def hosts_panel(glance: Glance) -> str:
    """Hosts: busiest, with the longest lines, in trouble."""
    busy = glance.sources.busy
    most = max((host.fetches for host in busy), default=1)
    survey = glance.survey
    lines = survey.lines if survey else []
    longest = max((host.waiting for host in lines), default=1)
    return render(
        "dashboard_hosts.html",
        glance=glance,
        survey=survey,
        busy=[(host, Markup(charts.share_bar(host.fetches / most, key="new"))) for host in busy],
        lines=[(host, Markup(charts.share_bar(host.waiting / longest, key="hub"))) for host in lines],
        troubled=[
            (host, glance.sources.last_errors.get(host.origin, "")) for host in (survey.troubled if survey else [])
        ],
    )


def hubs_panel(glance: Glance) -> str:
    """Feeds, sitemaps and pages that announce new pages: by the last study of them, or as the newest URLs tell."""
    report = glance.survey.hubs if glance.survey else None
    if report is not None:
        return studied_hubs_panel(glance, report)
    most = max((hub.found for hub in glance.sources.hubs), default=1)
    hubs = [(hub, Markup(charts.share_bar(hub.found / most, key="hub"))) for hub in glance.sources.hubs]
    return render("dashboard_hubs.html", glance=glance, hubs=hubs)


def seeds_panel(glance: Glance) -> str:
    """The pages that the crawl chose to start from, what each adds, and the last change."""
    seeds = glance.survey.status.get("seeds") if glance.survey else None
    listed = seeds["seeds"][:SEEDS] if seeds else []
    added = seeds["added"] if seeds else []
    most = max((seed["value"] for seed in listed), default=0.0) or 1.0
    rows = [
        (seed, Markup(charts.share_bar(max(seed["value"], 0.0) / most, key="hub")), seed["url"] in added)
        for seed in listed
    ]
    summary = summary_text(seeds) if seeds else ""
    return render("dashboard_seeds.html", glance=glance, survey=glance.survey, seeds=seeds, rows=rows, summary=summary)


def needs_panel(glance: Glance) -> str:
    """The queries that the crawl serves worst."""
    most = max((query.need for query in glance.demand.neediest), default=0.0) or 1.0
    rows = [(query, Markup(charts.share_bar(query.need / most, key="need"))) for query in glance.demand.neediest]
    return render("dashboard_needs.html", glance=glance, demand=glance.demand, rows=rows)


def demand_panel(glance: Glance) -> str:
    """Queries and clicks over time."""
    demand = glance.demand
    layers = [Series("queries", "query", demand.asked), Series("clicks", "click", demand.clicked)]
    rows = [
        (time_text(at), number_text(asked), number_text(clicked))
        for at, asked, clicked in zip(demand.times, demand.asked, demand.clicked, strict=True)
    ]
    return render(
        "dashboard_demand.html",
        glance=glance,
        demand=demand,
        chart=Markup(charts.line_chart(demand.times, layers, label="Queries and clicks over time")),
        legend=Markup(charts.legend(layers)),
        numbers=Markup(charts.data_table("Queries and clicks", ("time (UTC)", "queries", "clicks"), rows[::-1])),
    )


def next_panel(glance: Glance) -> str:
    """What is fetched next, and why."""
    survey = glance.survey
    coming = survey.coming if survey else []
    most = max((float(row["bid"]) for row in coming), default=0.0) or 1.0
    rows = [
        (row, reason_text(row["terms"]), Markup(charts.share_bar(float(row["bid"]) / most, key=str(row["kind"]))))
        for row in coming
    ]
    return render("dashboard_next.html", glance=glance, survey=survey, rows=rows)


PANELS: dict[str, Callable[[Glance], str]] = {
    "status": status_panel,
    "quality": quality_panel,
    "budget": budget_panel,
    "errors": errors_panel,
    "demand": demand_panel,
    "next": next_panel,
    "needs": needs_panel,
    "hubs": hubs_panel,
    "seeds": seeds_panel,
    "hosts": hosts_panel,
}


def draw_panels(glance: Glance) -> dict[str, str]:
    """All panels of a glance by name. One that has no data says so; with a problem there is the head alone."""
    if glance.problem:
        return {"status": status_panel(glance)}
    return {name: draw(glance) for name, draw in PANELS.items()}
