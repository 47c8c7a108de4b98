"""Shows what was expected of fetches, and what they gained."""

from __future__ import annotations

from typing import Any

import click


def show_watch(report: dict[str, Any]) -> None:
    """A table for people."""
    click.echo(f"{'':34}{'fetches':>9}{'expected':>12}{'realised':>12}{'ratio':>8}  95% interval")
    for title, rows in (("kind of fetch", report["kinds"]), ("by whom", report["appraisers"])):
        click.echo(f"{title}:")
        for row in rows:
            said = f"  {row['name'][:30]:32}{row['fetches']:>9,}"
            if row["fetches"] and row["expected"] > 0:
                said += f"{row['expected']:>12.4g}{row['realised']:>12.4g}{row['ratio']:>8.2f}"
                said += f"  {row['low']:.2f} … {row['high']:.2f} {row['unit']}{', drifts' if row['drifts'] else ''}"
            click.echo(said)
    factors = ", ".join(f"{name} {value:.3g}" for name, value in report["factors"].items() if name != "hub_cost")
    click.echo(f"Expected gains are multiplied by: {factors}.")
    click.echo(f"A visit to a feed or sitemap costs {report['factors']['hub_cost']:.3g} fetches of a new page.")
