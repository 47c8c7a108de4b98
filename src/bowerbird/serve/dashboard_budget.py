"""The panel that shows where the budget goes: by kind, host and topic, in clicks, at which price, and what if."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from bowerbird.appraise.budget.decisions import Group
from bowerbird.model.outcome import DECISIONS_WITHOUT_FETCH
from bowerbird.model.url_state import FetchKind
from bowerbird.model.worth import count_in
from bowerbird.serve import charts
from bowerbird.serve.charts import Bar, Series
from bowerbird.serve.dashboard_data import Glance
from bowerbird.serve.dashboard_scale import number_text, percent_text, time_text
from bowerbird.serve.dashboard_spending import (
    Gained,
    Key,
    NearPrice,
    Spent,
    Told,
    add_up,
    largest,
    tell_gains,
)
from bowerbird.serve.pages import render

HOUR_S = 3600.0
LAYERS = 10
KIND_TEXT = {
    "new": "new pages",
    "refresh": "refreshes",
    "hub": "hubs",
    "probe": "probes",
}
WATCH_TEXT = {**KIND_TEXT, "hub": "hub visits", "announced": "announced new pages"}
TIMES_TEXT = {0.25: "¼ of it", 0.5: "½ of it", 1.0: "as now", 2.0: "twice", 4.0: "4 times"}


def speed_text(value: float) -> str:
    """Fetches a second."""
    return f"{number_text(value)}/s"


def budget_series(glance: Glance) -> tuple[list[float], list[Series]]:
    """Fetches a second by kind."""
    times = [interval.start + interval.length_s / 2 for interval in glance.intervals]
    layers = []
    for kind in FetchKind:
        rates = [interval.fetches(kind) / interval.length_s for interval in glance.intervals]
        if any(rates) or kind is not FetchKind.PROBE:
            layers.append(Series(KIND_TEXT.get(kind.label, kind.label), kind.label, rates))
    return times, layers


def total_by_kind(glance: Glance) -> dict[FetchKind, int]:
    """Fetches of the whole crawl."""
    sums = dict.fromkeys(FetchKind, 0)
    for (kind, outcome), number in glance.totals.items():
        if outcome not in DECISIONS_WITHOUT_FETCH:
            sums[FetchKind(kind)] += number
    return sums


def budget_panel(glance: Glance) -> str:
    """Where the budget goes: over the window by kind, host and topic; where bids are in clicks, what it gains."""
    times, layers = budget_series(glance)
    totals = total_by_kind(glance)
    whole = sum(totals.values())
    shares = [
        (
            KIND_TEXT.get(kind.label, kind.label),
            number,
            number / whole if whole else 0.0,
            Markup(charts.share_bar(number / whole if whole else 0.0, key=kind.label)),
        )
        for kind, number in totals.items()
        if number or kind is not FetchKind.PROBE
    ]
    spent = glance.spent
    one = glance.survey.status.get("one_budget") if glance.survey else None
    watched = one.get("watch") if one else None
    told = tell_gains(spent, one["unit_clicks"] if one and not one["by_clicks"] else None)
    return render(
        "dashboard_budget.html",
        glance=glance,
        kinds=_area(times, layers, "Fetches a second, by what they were for"),
        hosts=_area(_times(spent), host_layers(glance), "Fetches a second, by host"),
        topics=_area(_times(spent), topic_layers(spent), "Fetches a second, by topic"),
        shares=shares,
        whole=whole,
        sampled=any(interval.sampled for interval in glance.intervals),
        one=one,
        told=told,
        gains=_area(
            _times(spent),
            gain_layers(spent, told.parts),
            f"Expected {told.noun} an hour, by kind of fetch",
            number_text,
        ),
        price=_price(_times(spent), told),
        price_now=_price_now(one, told),
        marginal=marginal_rows(told.parts, one),
        watch=watched["kinds"] if watched else (),
        appraisers=watched["appraisers"] if watched else (),
        factors=watched["factors"] if watched else {},
        outlook=_outlook(glance),
        watch_text=WATCH_TEXT,
    )


def _times(spent: Sequence[Spent]) -> list[float]:
    return [part.start + part.length_s / 2 for part in spent]


def host_layers(glance: Glance) -> list[Series]:
    """Fetches a second of the hosts with the most, and of the others."""
    names = {host: origin.partition("://")[2] or origin for host, origin in glance.origins.items()}
    return _layers(glance.spent, [part.hosts for part in glance.spent], lambda host: names.get(host, "?"))


def topic_layers(spent: Sequence[Spent]) -> list[Series]:
    """Fetches a second of the topics with the most, and of the others."""
    return _layers(spent, [part.topics for part in spent], str)


def _layers(spent: Sequence[Spent], parts: Sequence[dict[Key, float]], name: Callable[[Key], str]) -> list[Series]:
    sums = add_up(parts)
    first = largest(parts, LAYERS)
    layers = [
        Series(
            name(key),
            f"rank-{place}",
            [part.get(key, 0.0) / of.length_s for part, of in zip(parts, spent, strict=True)],
        )
        for place, key in enumerate(first)
    ]
    if len(sums) > len(first):
        rest = [sum(part.values()) - sum(part.get(key, 0.0) for key in first) for part in parts]
        layers.append(
            Series(
                f"{len(sums) - len(first):,} others",
                "rank-rest",
                [max(value, 0.0) / of.length_s for value, of in zip(rest, spent, strict=True)],
            )
        )
    return layers


def gain_layers(spent: Sequence[Spent], gains: Sequence[Gained]) -> list[Series]:
    """Expected clicks or units an hour by kind."""
    return [
        Series(
            KIND_TEXT[kind.label],
            kind.label,
            [one.clicks.get(kind.label, 0.0) / part.length_s * HOUR_S for part, one in zip(spent, gains, strict=True)],
        )
        for kind in (FetchKind.NEW, FetchKind.REFRESH, FetchKind.HUB)
    ]


@dataclass(frozen=True, slots=True)
class Marginal:
    """What the fetches of a kind that were taken last bid, and what such bids turned out to be worth."""

    kind: str
    many: float
    prices: float  # each, in prices of the time
    margin: dict[str, Any] | None  # what came of fetches near the price, as the watch has it; None where it cannot tell

    @property
    def worth(self) -> tuple[float, float, float] | None:
        """In prices, what each turned out to gain, with its 95% interval; None where that is not known yet."""
        if self.margin is None:
            return None
        ratio, low, high = (self.prices * float(self.margin[name]) for name in ("ratio", "low", "high"))
        return ratio, low, high


def marginal_rows(gains: Sequence[Gained], one: dict[str, Any] | None = None) -> list[Marginal]:
    """By kind, where there are any."""
    watch = one.get("watch") if one else None
    margins = {margin["name"]: margin for margin in (watch or {}).get("margins", ()) if not margin["cannot_tell"]}
    rows = []
    for group in Group:
        whole = NearPrice()
        for part in gains:
            whole = whole.joined(part.near_price.get(group.label, NearPrice()))
        if whole.many > 0:
            prices, margin = whole.prices / whole.many, margins.get(group.label)
            rows.append(Marginal(WATCH_TEXT[group.label], whole.many, prices, margin))
    return rows


def _area(
    times: list[float], layers: list[Series], label: str, text_of: Callable[[float], str] = speed_text
) -> dict[str, Markup]:
    rows = [(time_text(at), *(text_of(layer.values[nth] or 0.0) for layer in layers)) for nth, at in enumerate(times)]
    return {
        "chart": Markup(charts.area_chart(times, layers, label=label, text_of=text_of)),
        "legend": Markup(charts.legend(layers)),
        "numbers": Markup(charts.data_table(label, ("time (UTC)", *(layer.label for layer in layers)), rows[::-1])),
    }


def _price(times: list[float], told: Told) -> dict[str, Markup]:
    prices = [part.price for part in told.parts]
    label = f"Price of a fetch in {told.noun}"
    rows = [
        (time_text(at), "" if price is None else number_text(price)) for at, price in zip(times, prices, strict=True)
    ]
    return {
        "chart": Markup(charts.line_chart(times, [Series("price", "query", prices)], label=label)),
        "numbers": Markup(charts.data_table(label, ("time (UTC)", told.noun), rows[::-1])),
    }


def _price_now(one: dict[str, Any] | None, told: Told) -> tuple[float | None, str]:
    """What it is, and in what: of the crawl that runs, else of its last fetches."""
    if not one or one.get("price_clicks") is None:
        return told.price, told.noun
    times, noun = count_in(one["unit_clicks"], one["by_clicks"])
    return one["price_clicks"] / one["unit_clicks"] * times, noun


def _outlook(glance: Glance) -> dict[str, Any] | None:
    found = glance.survey.what_if if glance.survey else None
    if not found:
        return None
    now = next((row["clicks_per_hour"] for row in found["rows"] if row["times"] == 1.0), 0.0)
    times, noun = count_in(found["unit_clicks"], found["by_clicks"])
    times /= found["unit_clicks"]
    bars = [
        Bar(TIMES_TEXT.get(row["times"], f"{row['times']:g} times"), row["clicks_per_hour"] * times, "quality")
        for row in found["rows"]
    ]
    kept = [
        Bar(bar.label, 1.0 - row["stale_quality"], "quality")
        for bar, row in zip(bars, found["rows"], strict=True)
        if row["stale_quality"] is not None
    ]
    quality = charts.bar_chart(
        kept,
        label="Search quality by budget, as far as changes of fetched pages decide it",
        text_of=percent_text,
        top=1.0,
        width=400,
    )
    return {
        "quality": Markup(quality) if kept else "",
        "budget_per_s": found["budget_per_s"],
        "asked_per_s": found["asked_per_s"],
        "by_setting": found["by_setting"],
        "noun": noun,
        "chart": Markup(
            charts.bar_chart(
                bars, label=f"{noun.capitalize()} an hour that other budgets would gain", text_of=number_text, width=400
            )
        ),
        "rows": [
            {
                **row,
                "name": TIMES_TEXT.get(row["times"], ""),
                "price": row["price_clicks"] * times,
                "per_hour": row["clicks_per_hour"] * times,
                "share": row["clicks_per_hour"] / now if now > 0 else None,
            }
            for row in found["rows"]
        ],
    }
