"""Commands that carry a crawl elsewhere: export."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from bowerbird.cli.values import FOLDER
from bowerbird.crawl.export import FORMATS, export_crawl


@click.command("export")
@click.argument("folder", metavar="DIR", type=FOLDER)
@click.argument("out", metavar="OUT", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(FORMATS), required=True, help="What to write.")
@click.option("--text/--no-text", default=True, show_default=True, help="With titles and texts (jsonl, parquet).")
def export_command(folder: Path, out: Path, form: str, text: bool) -> None:
    """Write the crawl to OUT: WARC files, a CDXJ index, or a table of pages as Parquet or JSON lines."""

    def show(done: int) -> None:
        if done % 5000 == 0 and sys.stderr.isatty():
            click.echo(f"\r{done:,} URLs", nl=False, err=True)

    count = export_crawl(folder, form, out, text=text, show=show)
    click.echo(f"{out}: {count:,} {'files' if form == 'warc' else 'records'}.")
