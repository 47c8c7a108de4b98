"""Imports of query and click logs: streaming, once only, and safe to interrupt."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from bowerbird.demand.clickstream import Clickstream
from bowerbird.demand.delimited import Delimited, make_delimited
from bowerbird.demand.jsonl import JsonLines
from bowerbird.demand.ledger import HEAD_BYTES, Entry, Place, find_place, write_checkpoint
from bowerbird.demand.lines import LineFormat, Notes
from bowerbird.demand.log import DemandLog
from bowerbird.demand.records import Context
from bowerbird.demand.sniffing import AUTO, SNIFF_BYTES, head_lines, recognise
from bowerbird.demand.sources import BLOCK_BYTES, Source
from bowerbird.demand.ubi import UserBehaviorInsights
from bowerbird.model.errors import ConfigError, InputFileError
from bowerbird.web.url import Canonicaliser

#: Called after each block: share of the file read, lines so far.
Show = Callable[[float, int], None]


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """How a log is read. `at` is the time of lines that have none; None: now."""

    format: str = AUTO
    at: float | None = None
    url_prefix: str = ""
    first_position: int = 1
    hits_shown: bool = False
    dry_run: bool = False
    again: bool = False  # count what was imported before once more


@dataclass(slots=True)
class ImportReport:
    """What an import did, or in a dry run would do."""

    name: str
    format: str
    dry_run: bool = False
    state: str = "imported"  # imported, continued (what was new of it), known (nothing was new)
    lines_before: int = 0  # imported earlier
    columns: list[str | None] | None = None  # of a table: the field of each, None where it is not read
    lines: int = 0
    blank: int = 0  # of these, empty ones and the header
    bad: int = 0
    samples: list[tuple[int, str]] = field(default_factory=list)
    unused: dict[str, int] = field(default_factory=dict)
    asked: int = 0
    distinct: int = 0  # queries; the sum over blocks, so a query in two blocks counts twice
    shown: int = 0
    clicks: int = 0
    seconds: float = 0.0

    @property
    def given(self) -> int:
        """Lines that hold something."""
        return self.lines - self.blank

    @property
    def imported(self) -> int:
        """Lines that count: neither bad nor of no use."""
        return self.given - self.bad - sum(self.unused.values())

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        samples = [{"line": line, "reason": reason} for line, reason in self.samples]
        return asdict(self) | {"imported": self.imported, "samples": samples}


def import_log(
    log: DemandLog,
    source: Source,
    options: ImportOptions | None = None,
    *,
    canonicaliser: Canonicaliser | None = None,
    show: Show | None = None,
    now: float | None = None,
    block_bytes: int = BLOCK_BYTES,
) -> ImportReport:
    """Count every line of a log that was not counted before."""
    options = options or ImportOptions()
    began_s, now = time.perf_counter(), time.time() if now is None else now
    source.rewind()
    head = source.read(SNIFF_BYTES)
    name = recognise(head, options.format, source.name)
    context = Context(
        at=now if options.at is None else options.at,
        now=now,
        url_prefix=options.url_prefix,
        canonicaliser=canonicaliser or Canonicaliser(),
    )
    reader = _make_format(name, head, context, options, log, source.name)
    place = find_place(log.connection, source, log.sealer)
    if options.again:
        place = place.begin_again()
    report = ImportReport(source.name, reader.name, options.dry_run, lines_before=place.lines)
    if isinstance(reader, Delimited):
        report.columns = list(reader.columns)
    if place.position or place.done:
        report.state = "known" if place.done else "continued"
    if not place.done:
        entry = Entry(Path(source.name).name, reader.name, now, head[:HEAD_BYTES])
        source.move_to(place.position)
        _import_blocks(log, source, reader, place, report, entry, show, block_bytes)
        if place.position and report.lines == 0:
            report.state = "known"
    report.seconds = time.perf_counter() - began_s
    return report


def _import_blocks(
    log: DemandLog,
    source: Source,
    reader: LineFormat,
    place: Place,
    report: ImportReport,
    entry: Entry,
    show: Show | None,
    block_bytes: int,
) -> None:
    notes = Notes(lines=place.lines)
    broken_line = _is_mid_line(source, place)
    source.imported_bytes = place.position
    blocks = source.blocks(block_bytes)
    block = next(blocks, b"")
    while block:
        following = next(blocks, b"")
        tally, bad_before, before = log.tally(), notes.bad, place.position
        place.advance(block, log.sealer)
        if broken_line:
            block = _drop_broken_line(block, notes)
            broken_line = False
        reader.take(block, tally, notes)
        if not report.lines_before and not report.lines and not tally and not notes.unused and notes.bad:
            number, reason = notes.samples[0]
            raise InputFileError(
                f"{source.name}: not one line can be read as {reader.name} (line {number}: {reason}). "
                "Name its format with --format."
            )
        place.lines = notes.lines
        _add(report, notes, tally.totals, len(tally.asked))
        if not report.dry_run:
            bad, complete = notes.bad - bad_before, not following
            log.apply(
                tally,
                partial(
                    write_checkpoint,
                    sealer=log.sealer,
                    place=place,
                    before=before,
                    entry=entry,
                    bad=bad,
                    complete=complete,
                ),
            )
            source.imported_bytes = place.position
        if show is not None:
            show(source.share_read, notes.lines)
        block = following
    if not report.dry_run and report.lines:
        log.flush()


def _is_mid_line(source: Source, place: Place) -> bool:
    """Did the earlier import end within what then looked like the last line?"""
    if not place.position:
        return False
    source.move_to(place.position - 1)
    return source.read(1) != b"\n"


def _drop_broken_line(block: bytes, notes: Notes) -> bytes:
    line, _, rest = block.partition(b"\n")
    if line.strip():
        notes.add_bad(notes.lines, "imported before it was written to its end")
        notes.blank -= 1  # the line is among those imported before; here its rest is one more
    return rest


def _add(report: ImportReport, notes: Notes, totals: list[int], distinct: int) -> None:
    report.lines = notes.lines - report.lines_before
    report.blank, report.bad = notes.blank, notes.bad
    report.samples, report.unused = notes.samples, notes.unused
    report.asked += totals[0]
    report.shown += totals[1]
    report.clicks += totals[2]
    report.distinct += distinct


def _make_format(
    name: str, head: bytes, context: Context, options: ImportOptions, log: DemandLog, source: str
) -> LineFormat:
    if name == "ubi":
        return UserBehaviorInsights(
            context, log.query_of_id, first_position=options.first_position, hits_shown=options.hits_shown
        )
    if name == "jsonl":
        return JsonLines(context)
    if name == "clickstream":
        return Clickstream(context)
    if name in ("tsv", "csv"):
        return make_delimited("," if name == "csv" else "\t", head_lines(head), context, source)
    raise ConfigError(f"format {name!r}: not known.")
