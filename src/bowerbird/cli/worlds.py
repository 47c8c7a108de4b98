"""The command that serves the small living web: `world`."""

from __future__ import annotations

import click

from bowerbird.lab.world.__main__ import main as serve_world

world_command = click.Command("world", params=serve_world.params, callback=serve_world.callback, help=serve_world.help)
