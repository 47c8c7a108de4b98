"""The reference pages say what the program says, and leave nothing out."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
import typing
from pathlib import Path

import click

from bowerbird.cli.main import COMMANDS, cli
from bowerbird.crawl.settings import Settings
from bowerbird.crawl.template import COMMENTS, settings_text

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"


def test_the_pages_are_current() -> None:
    done = subprocess.run(
        [sys.executable, DOCS / "reference.py", "--check"], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, f"run `make docs`: {done.stdout}{done.stderr}"


def test_every_command_and_option_is_in_the_docs() -> None:
    text = (DOCS / "commands.md").read_text(encoding="utf-8")
    context = click.Context(cli)
    commands = {name: cli.get_command(context, name) for name in COMMANDS}
    for name, command in list(commands.items()):
        if isinstance(command, click.Group):
            commands |= {f"{name} {inner}": found for inner, found in command.commands.items()}
    assert "queries import" in commands
    for name, command in commands.items():
        found = re.search(rf"^##+ {name}$(.*?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL)
        assert found, name
        assert command is not None
        for parameter in command.params:
            if isinstance(parameter, click.Option) and not parameter.hidden:  # hidden: for our own processes
                for option in (*parameter.opts, *parameter.secondary_opts):
                    assert option in found[1], f"{name} {option}"


def test_every_setting_is_in_the_docs_and_in_the_template() -> None:
    text = (DOCS / "settings.md").read_text(encoding="utf-8")
    template = settings_text({})
    sections = typing.get_type_hints(Settings)
    assert set(COMMENTS) == set(sections)
    for section, kind in sections.items():
        found = re.search(rf"^## \[{section}\]$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
        assert found, section
        names = [field.name for field in dataclasses.fields(kind)]
        assert list(COMMENTS[section][1]) == names
        for name in names:
            assert f"`{name}`" in found[1], f"{section}.{name}"
            assert re.search(rf"^# {name} = ", template, re.MULTILINE), f"{section}.{name}"


def test_the_readme_names_commands_that_exist() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\s*(?:\$ )?bowerbird ([a-z-]+)", readme, re.MULTILINE))
    assert named
    assert named <= set(COMMANDS)
