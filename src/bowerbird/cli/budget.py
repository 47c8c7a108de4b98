"""What the one budget of a crawl is spent on, as lines of `status`."""

from __future__ import annotations

from typing import Any

from bowerbird.cli.values import count_text, time_text


def price_text(status: dict[str, Any]) -> str:
    """What a fetch must bid, in clicks where bids are."""
    one = status["one_budget"]
    if one is None or one["price_clicks"] is None:
        return f"{status['price']:.3g}"
    return f"{one['price_clicks']:.3g} clicks"


def budget_rows(one: dict[str, Any]) -> list[tuple[str, str]]:
    """Names and texts: what bids are in, what was fetched of late, what was expected and what came of it."""
    if one["unit_clicks"] is None:
        waits = ", ".join(one["waits_for"])
        return [("bids", f"not in clicks yet: there is no study by {waits}; until then intervals and links decide")]
    rows = [
        (
            "bids",
            f"clicks gained (1 is {one['unit_clicks']:.3g} clicks); scales rest on {one['rests_on']}; "
            f"new pages count for {time_text(one['horizon_days'] * 86400)}",
        ),
        (
            "lately",
            ", ".join(f"{kind} {number:,.0f}" for kind, number in one["fetches"].items())
            + f" in {time_text(one['span_s'])}",
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
        f"{figure_text(kind['realised'])} found, ratio {kind['ratio']:.2f} "
        f"(95%: {kind['low']:.2f} … {kind['high']:.2f})"
    )
    if kind["drifts"]:
        said += "; drifts"
    return f"{said}; gains are multiplied by {factor:.3g}" if factor != 1.0 else said


def figure_text(value: float) -> str:
    """Three figures, and all of those before the point.

    >>> figure_text(0.12345), figure_text(7690.4)
    ('0.123', '7,690')
    """
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
