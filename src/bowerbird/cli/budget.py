"""What the one budget of a crawl is spent on, as lines of `status`."""

from __future__ import annotations

from typing import Any

from bowerbird.cli.values import count_text, time_text
from bowerbird.model.worth import worth_text

DAY_S = 86400.0
NO_CLICK = "(no click is known yet)"
SHORT = 0.25  # of the horizon: clicks of so little time are told to be


def price_text(status: dict[str, Any]) -> str:
    """What a fetch must bid, in clicks where bids are."""
    one = status["one_budget"]
    if one is None or one["price_clicks"] is None:
        return f"{status['price']:.3g}"
    price = worth_text(one["price_clicks"] / one["unit_clicks"], one["unit_clicks"], one["by_clicks"])
    return f"{price} within {_horizon_text(one)}{_heard_text(one)}" if one["by_clicks"] else f"{price} {NO_CLICK}"


def _horizon_text(one: dict[str, Any]) -> str:
    days = float(one["horizon_days"])
    return f"{days:.0f} days" if days >= 2 and days.is_integer() else time_text(days * DAY_S)


def _heard_text(one: dict[str, Any]) -> str:
    """Where clicks have been heard for a short time only, they may be a burst."""
    heard_s = one["heard_s"]
    if heard_s is None or heard_s >= SHORT * one["horizon_days"] * DAY_S:
        return ""
    return f" (by the clicks of the last {time_text(heard_s)})"


def budget_rows(one: dict[str, Any]) -> list[tuple[str, str]]:
    """Names and texts: what bids are in, what was fetched of late, what was expected and what came of it."""
    if one["unit_clicks"] is None:
        waits = ", ".join(one["waits_for"])
        return [("bids", f"not in clicks yet: there is no study by {waits}; until then intervals and links decide")]
    ahead = _horizon_text(one)
    bids = f"in units; scales rest on {one['rests_on']}"
    if one["by_clicks"]:
        bids = f"clicks gained within {ahead} (1 is {one['unit_clicks']:.3g} clicks); scales rest on {one['rests_on']}"
    rows = [
        ("bids", f"{bids}; new pages count for {ahead}"),
        (
            "lately",
            ", ".join(f"{kind} {number:,.0f}" for kind, number in one["fetches"].items())
            + f" in {time_text(one['span_s'])}{', told from a sample' if one['sampled'] else ''}",
        ),
    ]
    watch = one["watch"]
    if watch is None:
        return [*rows, ("expected", "not compared yet with what came of it")]
    for kind in watch["kinds"]:
        rows.append((kind["name"], watch_text(kind, watch["factors"][kind["name"]])))
    return rows


def watch_text(kind: dict[str, Any], factor: float) -> str:
    """What was expected of one kind of fetches, what came of them, and what follows."""
    if not kind["fetches"] or kind["expected"] <= 0:
        return "nothing to compare yet with what was expected"
    said = (
        f"{count_text(kind['fetches'], 'fetch')}: {figure_text(kind['expected'])} {kind['unit']} expected, "
        f"{figure_text(kind['realised'])} found, "
    )
    if kind["too_little"]:
        said += "too little to compare"
    else:
        said += f"ratio (shrunk) {kind['ratio']:.2f} (95%: {kind['low']:.2f} … {kind['high']:.2f})"
        said += "; drifts" if kind["drifts"] else ""
    which = "those near the price" if kind["by_near"] else "the newer half of all, for few bid near the price"
    return f"{said}; gains are multiplied by {factor:.3g}, by {which}" if factor != 1.0 else said


def figure_text(value: float) -> str:
    """Three figures, and all of those before the point.

    >>> figure_text(0.12345), figure_text(7690.4)
    ('0.123', '7,690')
    """
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
