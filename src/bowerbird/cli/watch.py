"""Shows what was expected of fetches, and what they gained."""

from __future__ import annotations

from typing import Any

import click

from bowerbird.model.factors import COSTS


def show_watch(report: dict[str, Any]) -> None:
    """A table for people."""
    click.echo(f"{'':34}{'fetches':>9}{'expected':>12}{'realised':>12}{'ratio (shrunk)':>16}  95% interval")
    for title, rows in (
        ("kind of fetch", report["kinds"]),
        ("by whom", report["appraisers"]),
        ("near the price, as they bid", report["margins"]),
    ):
        if not rows:
            continue
        click.echo(f"{title}:")
        for row in rows:
            said = f"  {row['name'][:30]:32}{row['fetches']:>9,}"
            if row["fetches"] and row["expected"] > 0:
                said += f"{row['expected']:>12.4g}{row['realised']:>12.4g}"
                if row["too_little"]:
                    said += f"{'–':>16}  too little to compare, {row['unit']}"
                else:
                    said += f"{row['ratio']:>16.2f}  {row['low']:.2f} … {row['high']:.2f} {row['unit']}"
                said += ", drifts" if row["drifts"] else ""
            click.echo(said)
    factors = ", ".join(f"{name} {value:.3g}" for name, value in report["factors"].items() if name not in COSTS)
    click.echo(f"Expected gains are multiplied by: {factors}.")
    feed, sitemap = (report["factors"][name] for name in COSTS)
    click.echo(f"A visit costs, in fetches of new pages: {feed:.3g} of a feed, {sitemap:.3g} of a sitemap.")
