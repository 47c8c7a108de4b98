"""The command that serves the search page, the dashboard and the JSON API."""

from __future__ import annotations

import errno
import logging
import socket
from pathlib import Path

import click

from bowerbird.cli.values import FOLDER
from bowerbird.model.errors import ConfigError, FolderError
from bowerbird.store.folder import CrawlFolder

MAX_CONNECTIONS = 500
GRACE_S = 3
BACKLOG = 2048


@click.command("serve")
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; loopback is this machine.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8080, show_default=True, help="Port; 0 takes any free one."
)
@click.option(
    "--rate",
    type=click.FloatRange(min=0),
    default=20.0,
    show_default=True,
    help="Requests a second from one address; 0 = no limit.",
)
@click.option(
    "--allow-host",
    "names",
    multiple=True,
    metavar="NAME",
    help="A name requests may address besides loopback's, such as that of a proxy in front. Repeatable.",
)
def serve_command(folder: Path, host: str, port: int, rate: float, names: tuple[str, ...]) -> None:
    """Search page, dashboard and JSON API of a crawl, while it runs or not. Ctrl-C ends it."""
    import uvicorn

    from bowerbird.crawl.heap import settle_heap
    from bowerbird.crawl.settings import load_settings
    from bowerbird.serve.app import create_app
    from bowerbird.serve.measuring import Measuring
    from bowerbird.serve.security import is_loopback

    settle_heap()
    local = is_loopback(host)
    app = create_app(folder, rate_per_s=rate, hosts=(*names, host), addresses=not local)
    listener = listen(host, port)
    logging.basicConfig(format="bowerbird: %(message)s", level=logging.WARNING)
    with listener:
        shown = f"[{host}]" if ":" in host else host
        address = f"http://{shown}:{listener.getsockname()[1]}/"
        click.echo(f"Search     {address}\nDashboard  {address}dashboard\nCtrl-C ends it.")
        if not local:
            click.echo(
                f"bowerbird: warning: {host} can be reached from other machines: whoever reaches it can search, "
                "and see the dashboard. Put a proxy with TLS and a login in front where that matters.",
                err=True,
            )
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,  # it would keep queries beside addresses
            server_header=False,
            proxy_headers=False,
            ws="none",
            lifespan="on",
            limit_concurrency=MAX_CONNECTIONS,
            timeout_graceful_shutdown=GRACE_S,
        )
        server = uvicorn.Server(config)
        measuring = Measuring(folder, load_settings(CrawlFolder(folder).config).quality.every_s)
        measuring.start()
        try:
            server.run(sockets=[listener])
        except KeyboardInterrupt:
            pass  # Ctrl-C, after everything was closed
        finally:
            measuring.close()
        if not server.started:
            raise FolderError(f"{folder}: the service did not start; the lines above say why.")


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens; what goes wrong is said in words."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError as error:
        raise ConfigError(f"--host {host}: no such address ({error.strerror or error}).") from error
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        if error.errno == errno.EADDRINUSE:
            raise ConfigError(
                f"port {port} of {host} is taken by another program. Choose another with --port; 0 takes any free one."
            ) from error
        if error.errno == errno.EACCES:
            raise ConfigError(f"port {port} needs more rights than this user has. Choose one above 1023.") from error
        raise ConfigError(f"--host {host} --port {port}: cannot listen there ({error.strerror}).") from error
    return listener
