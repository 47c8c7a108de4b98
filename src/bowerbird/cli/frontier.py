"""The command that serves the frontier to other people's fetchers."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import click

from bowerbird.cli.values import NEW_FOLDER
from bowerbird.crawl.guest_owner import tell_holder
from bowerbird.model.errors import ConfigError
from bowerbird.store.folder import CrawlFolder


@click.command("frontier-service")
@click.argument("folder", metavar="DIR", type=NEW_FOLDER)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; loopback is this machine.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=7071, show_default=True, help="Port; 0 takes any free one."
)
@click.option("--policy", help="Order URLs by another policy than the crawls' settings name.")
@click.option("--verbose", is_flag=True, help="Log what is asked; SetLogLevel does so while it runs.")
def frontier_service_command(folder: Path, host: str, port: int, policy: str | None, verbose: bool) -> None:
    """Serve the URLFrontier 2.x interface (gRPC): crawls are folders below DIR. Ctrl-C ends it."""
    os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")  # studies are programs of their own: nothing forks into gRPC
    try:
        from bowerbird.integrations.urlfrontier.crawls import DEFAULT
        from bowerbird.integrations.urlfrontier.server import serve
    except ImportError as error:
        raise ConfigError(
            f"the frontier service needs gRPC ({error}). Install it: pip install 'bowerbird[grpc]'"
        ) from error
    from bowerbird.cli.serve import listen
    from bowerbird.serve.security import is_loopback

    try:
        listen(host, port).close()  # before a folder is made, and without what gRPC itself would say
    except ConfigError as error:
        raise tell_holder(CrawlFolder(folder / DEFAULT)) or error from None
    logging.basicConfig(format="bowerbird: %(message)s", level=logging.DEBUG if verbose else logging.WARNING)
    if not is_loopback(host):
        click.echo(
            f"bowerbird: warning: {host} can be reached from other machines, and the interface has no login: whoever "
            "reaches it can read and delete every crawl. Keep it inside a network you trust.",
            err=True,
        )

    def say(bound: int) -> None:
        click.echo(f"URLFrontier  {host}:{bound}\nCtrl-C ends it.")

    serve(folder, host, port, policy=policy, say=say)
