"""Commands that carry a crawl elsewhere: export."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from bowerbird.cli.values import FOLDER
from bowerbird.crawl.export import BINARY_FORMATS, FORMATS, export_crawl
from bowerbird.model.errors import InputFileError


@click.command("export")
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.argument("out", metavar="OUT", type=click.Path(allow_dash=True))
@click.option("--format", "form", type=click.Choice(FORMATS), required=True, help="What to write.")
@click.option("--text/--no-text", default=True, show_default=True, help="With titles and texts (jsonl, parquet).")
def export_command(folder: Path, out: str, form: str, text: bool) -> None:
    """Write the crawl to OUT: WARC files, a CDXJ index, or a table of pages as Parquet or JSON lines.

    An OUT of - is standard output.
    """
    to_stdout = out == "-"  # as typed: a file of that name is ./-
    if to_stdout and form in BINARY_FORMATS and sys.stdout.isatty():
        raise InputFileError(
            f"-: {form} is binary and standard output is a terminal. Redirect it, or name a file to write to."
        )

    def show(done: int) -> None:
        if done % 5000 == 0 and sys.stderr.isatty():
            click.echo(f"\r{done:,} URLs", nl=False, err=True)

    target = sys.stdout.buffer if to_stdout else Path(out)
    count = export_crawl(folder, form, target, text=text, show=show)
    click.echo(f"{out}: {count:,} {'files' if form == 'warc' else 'records'}.", err=to_stdout)
