"""`python -m bowerbird.lab.world`: serve a world until Ctrl-C."""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path

import click

from bowerbird.lab.world.server import WorldServer
from bowerbird.lab.world.spec import WorldSpec
from bowerbird.lab.world.wire import Faults
from bowerbird.lab.world.world import DEFAULT_PORT, World
from bowerbird.model.clock import ScaledClock
from bowerbird.model.errors import BowerbirdError


@click.command()
@click.option("--hosts", default=20, show_default=True, help="Number of hosts.")
@click.option("--pages", default=2_000, show_default=True, help="Number of pages at the start.")
@click.option("--seed", default=1, show_default=True, help="Equal seeds give equal worlds.")
@click.option("--links", default=20, show_default=True, help="Mean number of links on a page.")
@click.option("--articles", default=100.0, show_default=True, help="New pages in a day.")
@click.option(
    "--speed",
    type=click.FloatRange(min=0.0, min_open=True, max=1e6),
    default=1.0,
    show_default=True,
    help="Seconds that pass in a second.",
)
@click.option("--frozen", is_flag=True, help="Nothing changes.")
@click.option("--traps/--no-traps", default=True, show_default=True, help="Are there links that never end?")
@click.option("--port", default=DEFAULT_PORT, show_default=True, help="Port; 0 is any that is free.")
@click.option(
    "--addresses",
    type=click.Choice(["many", "ports"]),
    default="many",
    show_default=True,
    help="Hosts are loopback addresses, or ports of one.",
)
@click.option("--latency-ms", default=0.0, show_default=True, help="Wait this long before every answer.")
@click.option("--errors", default=0.0, show_default=True, help="Share of requests answered with 503.")
@click.option("--drops", default=0.0, show_default=True, help="Share of connections that are reset.")
@click.option("--log", type=click.Path(path_type=Path), help="Write all requests to this file.")
def main(
    hosts: int,
    pages: int,
    seed: int,
    links: int,
    articles: float,
    speed: float,
    frozen: bool,
    traps: bool,
    port: int,
    addresses: str,
    latency_ms: float,
    errors: float,
    drops: float,
    log: Path | None,
) -> None:
    """Serve a small made-up web on loopback addresses, and print the URLs to start from."""
    # a shell that starts it in the background has it ignore Ctrl-C; whoever asks it to end means it
    signal.signal(signal.SIGINT, signal.default_int_handler)
    serving = False
    try:
        spec = WorldSpec(
            seed=seed, hosts=hosts, pages=pages, mean_links=links, articles_per_day=articles, frozen=frozen
        )
        if not traps:
            spec = replace(spec, trap_share=0.0)
        faults = Faults(latency_ms=latency_ms, error_share=errors, drop_share=drops, seed=seed)
        clock = ScaledClock(speed, spec.start_s)
        server = WorldServer(World(spec), clock, port, addresses, faults=faults, log_path=log, keep_log=log is not None)
        with server:
            for url in server.world.seeds():
                click.echo(url)
            serving = True
            click.echo(
                f"{pages} pages on {hosts} hosts; Ctrl-C ends it, in the background `kill {os.getpid()}`", err=True
            )
            while True:
                time.sleep(3600)
    except KeyboardInterrupt:
        if not serving:
            sys.exit(130)
    except BowerbirdError as error:
        click.echo(str(error), err=True)
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
