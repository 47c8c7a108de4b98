"""How a lab run is shown: its progress on standard error, its results as tables."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Protocol

import click
from rich.console import Console
from rich.table import Table

from bowerbird.cli.values import count_text, time_text
from bowerbird.lab.registry import data_root
from bowerbird.lab.report import VERDICTS
from bowerbird.lab.runner import Progress, Run
from bowerbird.lab.summaries import MIN_SPLITS
from bowerbird.lab.tables import MeasureTable, make_tables

#: of what is printed to a file or a pipe, where nobody needs it to fit
WIDE = 200


class LabDisplay(Protocol):
    """Shows how far a run has come."""

    def show(self, progress: Progress) -> None:
        """Called at the start and after each split."""

    def __enter__(self) -> LabDisplay:
        """Begin."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End."""


class SplitLines:
    """A plain line for each split."""

    def __init__(self, headline: str) -> None:
        self.headline = headline

    def show(self, progress: Progress) -> None:
        """Print it."""
        stamp = time.strftime("%H:%M:%S")
        click.echo(f"{stamp} {progress_text(progress, self.headline)}", err=True)

    def __enter__(self) -> SplitLines:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


class NoDisplay(SplitLines):
    """Shows nothing."""

    def show(self, progress: Progress) -> None:
        """Nothing."""


class Bar:
    """A bar that fills, with the latest split's headline below it."""

    def __init__(self, headline: str) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bars

        self.headline = headline
        columns = (
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("splits"),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
        )
        self._bars = Bars(*columns, console=Console(stderr=True))
        self._task = self._bars.add_task("", total=None)

    def show(self, progress: Progress) -> None:
        """Move on; the first time, begin: before that, processes may be forked, and the bar has a thread."""
        self._bars.start()
        left = f"about {time_text(progress.left_s)} left" if progress.left_s else ""
        self._bars.update(self._task, total=progress.of, completed=progress.done, description=left)
        if progress.latest is not None:
            self._bars.console.print(progress_text(progress, self.headline), highlight=False, markup=False)

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()


def make_lab_display(headline: str, *, quiet: bool, terminal: bool) -> LabDisplay:
    """The display that fits: nothing, a bar, or lines."""
    if quiet:
        return NoDisplay(headline)
    return Bar(headline) if terminal else SplitLines(headline)


def progress_text(progress: Progress, headline: str) -> str:
    """What is done, and the headline of the latest split; of a measure with places, its last."""
    done = f"{progress.done} of {count_text(progress.of, 'split')} done in {time_text(progress.elapsed_s)}"
    if progress.latest is None:
        return f"{count_text(progress.of, 'split')} to measure"
    values = {one.policy: one.value for one in progress.latest.samples if one.measure == headline}
    told = ", ".join(f"{policy} {value:.4g}" for policy, value in values.items())
    left = f"; about {time_text(progress.left_s)} left" if progress.left_s else ""
    return f"{done}{left}; split {progress.latest.split}: {told or 'measured'}"


def show_run(run: Run) -> None:
    """Tables, findings and notes on standard output."""
    console = make_console()
    for table in make_tables(run.family, run.summaries):
        console.print(f"{table.title} ({table.about})" if table.about else table.title, style="bold")
        console.print(_lay_out(table))
        click.echo()
    if len(run.splits) == 1:
        click.echo("One split only: there is no standard error. Run with more --seeds before believing a difference.\n")
    elif run.splits:
        few = f" Too few splits for intervals: {MIN_SPLITS} are needed." if len(run.splits) < MIN_SPLITS else ""
        click.echo(f"Mean ± standard error over {len(run.splits)} splits.{few}\n")
    if run.findings:
        claims = Table(
            box=None,
            pad_edge=False,
            title="What is claimed, and what this data says",
            title_justify="left",
            title_style="bold",
        )
        for name in ("claim", "here", "evidence"):
            claims.add_column(name, no_wrap=name == "here")
        for finding in run.findings:
            claims.add_row(finding.claim, VERDICTS[finding.holds], finding.evidence)
        console.print(claims)
        click.echo()
    for note in run.notes:
        click.echo(f"Note: {note}")


def make_console() -> Console:
    """Standard output; brackets in what is printed mean themselves."""
    return Console(width=None if sys.stdout.isatty() else WIDE, highlight=False, markup=False)


def _lay_out(table: MeasureTable) -> Table:
    made = Table(box=None, pad_edge=False)
    made.add_column("policy", no_wrap=True)
    for name in table.columns:
        made.add_column(name, justify="right")
    for policy, cells in table.rows:
        made.add_row(policy, *(str(cell) for cell in cells))
    return made


def data_text(names: tuple[str, ...]) -> str:
    """Data sets, and which of them are not there."""
    root = data_root()
    return ", ".join(name if (root / name).is_dir() else f"{name} (absent)" for name in names)
