"""The `bowerbird` command. Errors that a person can mend are printed without a traceback, with a non-zero exit."""

from __future__ import annotations

import importlib
import os
import sqlite3
import sys

import click

import bowerbird
from bowerbird.model.errors import BowerbirdError
from bowerbird.store.disk_trouble import explain_trouble

#: command -> the module that holds it; imported only when it is asked for, so that --help is quick
COMMANDS = {
    "init": "steer",
    "crawl": "steer",
    "work": "steer",
    "add": "steer",
    "forget": "steer",
    "status": "look",
    "next": "look",
    "explain": "look",
    "search": "look",
    "serve": "serve",
    "frontier-service": "frontier",
    "queries": "queries",
    "quality": "quality",
    "study": "study",
    "hubs": "hubs",
    "rank": "rank",
    "seeds": "seeds",
    "sketches": "sketches",
    "lab": "lab",
    "export": "transfer",
    "world": "worlds",
    "demo": "demo",
}


class LazyGroup(click.Group):
    """A group whose commands are imported on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All command names, in the order people meet them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command's module and take the command."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"bowerbird.cli.{COMMANDS[cmd_name]}")
        name = cmd_name.replace("-", "_")
        kind = "command" if hasattr(module, f"{name}_command") else "group"
        command: click.Command = getattr(module, f"{name}_{kind}")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """A mistyped name is answered with the one that was meant."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            from bowerbird.appraise.policy import did_you_mean

            ctx.fail(f"No such command {name!r}{did_you_mean(name, COMMANDS) or '.'}")
        return super().resolve_command(ctx, args)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(bowerbird.__version__, prog_name="bowerbird")
def cli() -> None:
    """Bowerbird: a web crawler for search engines. Every fetch is spent where it gains searchers most."""


def main() -> None:
    """Entry point."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # nothing here gains by its threads, which wait by spinning
    try:
        cli.main(prog_name="bowerbird", standalone_mode=False)
    except BowerbirdError as error:
        click.echo(f"bowerbird: {error}", err=True)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(0)
    except (sqlite3.Error, OSError) as error:
        known = explain_trouble(error)
        if known is None:
            raise
        click.echo(f"bowerbird: {known}", err=True)
        sys.exit(known.exit_code)
    except click.exceptions.Abort:
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
