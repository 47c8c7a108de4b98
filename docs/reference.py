"""Write the reference pages from the program itself: docs/commands.md, docs/settings.md, the names in docs/python.md.

`--check` writes nothing and exits 1 when a page is out of date; a test runs it.
"""

from __future__ import annotations

import dataclasses
import sys
import typing
from pathlib import Path

import click
from public_names import HEADING, list_names

from bowerbird.cli.main import COMMANDS, cli
from bowerbird.crawl.settings import Settings
from bowerbird.crawl.template import COMMENTS, toml_value

FOLDER = Path(__file__).resolve().parent


def write_commands() -> str:
    """Every command with its help text."""
    parts = [
        "# Commands\n",
        "Made by `make docs` from the program; a test keeps it current.\n",
    ]
    context = click.Context(cli, info_name="bowerbird")
    for name in COMMANDS:
        command = cli.get_command(context, name)
        assert command is not None
        parts += _describe(command, name, context)
    return "\n".join(parts)


def _describe(command: click.Command, name: str, parent: click.Context) -> list[str]:
    """A command's help, and that of the commands in it."""
    context = click.Context(command, info_name=name, parent=parent, max_content_width=100, terminal_width=100)
    words = context.command_path.removeprefix("bowerbird ")
    parts = [f"{'##' if ' ' not in words else '###'} {words}\n\n```\n{command.get_help(context)}\n```\n"]
    if isinstance(command, click.Group):
        for inner in command.list_commands(context):
            found = command.get_command(context, inner)
            assert found is not None
            parts += _describe(found, inner, context)
    return parts


def write_settings() -> str:
    """Every setting of bowerbird.toml with its default."""
    parts = [
        "# Settings: bowerbird.toml\n",
        "Made by `make docs` from the program; a test keeps it current. `bowerbird init` writes a commented file\n"
        "with all of them; a key that is absent has its default. A mistake is reported with its line and key.\n",
    ]
    for section, kind in typing.get_type_hints(Settings).items():
        about, comments = COMMENTS[section]
        parts.append(f"## [{section}]\n\n{about[0].upper()}{about[1:]}.\n\n| key | default | meaning |\n|---|---|---|")
        defaults = kind()
        for field in dataclasses.fields(kind):
            value = toml_value(getattr(defaults, field.name))
            if len(value) > 60:
                value = value[:57] + "…"
            parts.append(f"| `{field.name}` | `{value}` | {comments[field.name]} |")
        parts.append("")
    return "\n".join(parts)


def write_python() -> str:
    """The page as people wrote it, with the list of names at its end."""
    written = (FOLDER / "python.md").read_text(encoding="utf-8")
    return written.partition(HEADING)[0] + list_names()


def main() -> int:
    """Write or check the pages."""
    pages = {"commands.md": write_commands(), "settings.md": write_settings(), "python.md": write_python()}
    stale = [name for name, text in pages.items() if not _same(FOLDER / name, text)]
    if "--check" in sys.argv:
        if stale:
            print(f"out of date: {', '.join(stale)}. Run `make docs`.")
        return 1 if stale else 0
    for name in stale:
        (FOLDER / name).write_text(pages[name], encoding="utf-8")
    print(f"written: {', '.join(stale) or 'nothing, all current'}")
    return 0


def _same(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(main())
