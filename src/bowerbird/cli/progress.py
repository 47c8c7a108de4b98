"""Progress of a crawl: a live panel in a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Protocol

import click

from bowerbird.cli.values import size_text, time_text
from bowerbird.crawl.statistics import Progress
from bowerbird.model.outcome import Outcome
from bowerbird.model.worth import worth_text

LINE_EVERY_S = 5.0


class Display(Protocol):
    """Shows progress while a crawl runs."""

    def show(self, progress: Progress) -> None:
        """Called about once a second."""

    def __enter__(self) -> Display:
        """Begin."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End."""


class Lines:
    """One plain line every few seconds, for logs."""

    def __init__(self, every_s: float = LINE_EVERY_S) -> None:
        self.every_s = every_s
        self._last = -every_s
        self._seeds = ""
        self._troubles: set[str] = set()  # kinds that were told

    def show(self, progress: Progress) -> None:
        """Print a line when it is time; of other seeds, and of the first errors of a kind, at once."""
        if progress.seeds != self._seeds:
            self._seeds = progress.seeds
            click.echo(f"{time.strftime('%H:%M:%S')} {progress.seeds}", err=True)
        troubles = progress.troubles()
        if not self._troubles.issuperset(troubles):
            self._troubles.update(troubles)
            click.echo(f"{time.strftime('%H:%M:%S')} errors so far: {_tell_troubles(troubles)}", err=True)
        if progress.elapsed_s - self._last < self.every_s:
            return
        self._last = progress.elapsed_s
        stamp = time.strftime("%H:%M:%S")
        click.echo(
            f"{stamp} fetched={progress.fetched} speed={progress.pages_per_s:.1f}/s frontier={progress.frontier} "
            f"known={progress.known} in-flight={progress.in_flight} hosts-waiting={progress.hosts_waiting} "
            f"not-found={progress.by_outcome.get(Outcome.GONE.label, 0)} errors={progress.errors} "
            f"price={_tell(progress, progress.price)} next-bid={_tell_next(progress)}"
            f"{f' study={_tell_study(progress)}' if progress.study_basis else ''}",
            err=True,
        )

    def __enter__(self) -> Lines:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None


def _tell(progress: Progress, bid: float) -> str:
    """In clicks or units, where bids are."""
    return worth_text(bid, progress.unit, progress.by_clicks)


def _tell_troubles(troubles: dict[str, int]) -> str:
    return ", ".join(f"{kind} {count}" for kind, count in troubles.items())


def _tell_next(progress: Progress) -> str:
    return _tell(progress, progress.next_bid) if progress.next_url else "-"


def _tell_study(progress: Progress) -> str:
    if not progress.study_age_s:
        return progress.study_basis
    return f"{progress.study_basis}, {time_text(progress.study_age_s)} ago"


class Silence(Lines):
    """Shows nothing."""

    def show(self, progress: Progress) -> None:
        """Nothing."""


class Panel:
    """A small live panel."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._live = Live(console=Console(stderr=True), refresh_per_second=4, transient=False)

    def show(self, progress: Progress) -> None:
        """Redraw."""
        from rich.markup import escape
        from rich.table import Table

        table = Table(show_header=False, box=None, pad_edge=False)
        table.add_column(style="dim")
        table.add_column()
        kinds = "  ".join(f"{kind} {count}" for kind, count in progress.by_kind.items()) or "-"
        errors = _tell_troubles(progress.troubles()) or "none"
        table.add_row(
            "fetched",
            f"{progress.fetched:,}  [bold]{progress.pages_per_s:.1f}/s[/bold]  "
            f"{size_text(progress.wire_mb * 1e6)}  in {time_text(progress.elapsed_s)}",
        )
        table.add_row("frontier", f"{progress.frontier:,} of {progress.known:,} known; {progress.in_flight} in flight")
        table.add_row("budget", f"{kinds}; price {_tell(progress, progress.price)}")
        table.add_row("not found", f"{progress.by_outcome.get(Outcome.GONE.label, 0):,}")
        table.add_row("errors", errors)
        table.add_row("hosts", f"{progress.hosts_waiting} waiting")
        table.add_row("next bid", f"{_tell_next(progress)}  {escape(progress.next_url[:90])}".rstrip())
        if progress.study_basis:
            table.add_row("study", _tell_study(progress))
        if progress.seeds:
            table.add_row("seeds", progress.seeds.removeprefix("seeds: "))
        self._live.update(table)

    def __enter__(self) -> Panel:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)


def make_display(*, quiet: bool, terminal: bool) -> Display:
    """The display that fits: nothing, a panel, or lines."""
    if quiet:
        return Silence()
    return Panel() if terminal else Lines()
