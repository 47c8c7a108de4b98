"""What every line format has in common: blocks of whole lines in, sums and notes about bad lines out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from bowerbird.demand.records import BadLine, Unused
from bowerbird.demand.tally import Tally

SHOWN_BAD_LINES = 5
MAX_LINE_BYTES = 1 << 20


@dataclass(slots=True)
class Notes:
    """What an import met: lines, the bad ones with number and reason, those that say nothing of interest."""

    lines: int = 0
    blank: int = 0  # of them, those that hold nothing: empty ones and the header
    bad: int = 0
    unused: dict[str, int] = field(default_factory=dict)
    samples: list[tuple[int, str]] = field(default_factory=list)

    def add_bad(self, number: int, reason: str) -> None:
        """Count a bad line; the first few are kept to be shown."""
        self.bad += 1
        if len(self.samples) < SHOWN_BAD_LINES:
            self.samples.append((number, reason))

    def add_unused(self, reason: str, count: int = 1) -> None:
        """Count lines that are in order but not used."""
        self.unused[reason] = self.unused.get(reason, 0) + count


class LineFormat(Protocol):
    """How lines are read. What it keeps between blocks must not matter much: an import can go on at any of them."""

    name: str

    def take(self, block: bytes, tally: Tally, notes: Notes) -> None:
        """Add a block of whole lines; `notes.lines` is how many came before it in the file."""


def numbered_lines(block: bytes, notes: Notes, *, skip_first: bool = False) -> Iterator[tuple[int, str]]:
    """The lines of a block that are text and not empty, with their numbers; counts them, and those that are not text.

    `skip_first`: the first line of the file is a header.
    """
    raw = block.split(b"\n")
    if raw and not raw[-1]:
        raw.pop()
    before = notes.lines
    notes.lines += len(raw)
    if before == 0 and raw:
        raw[0] = b"" if skip_first else raw[0].removeprefix(b"\xef\xbb\xbf")
    for number, line in enumerate(raw, before + 1):
        if len(line) > MAX_LINE_BYTES:
            notes.add_bad(number, f"line of {len(line):,} bytes")
            continue
        try:
            text = line.decode("utf-8").rstrip("\r")
        except UnicodeDecodeError as error:
            notes.add_bad(number, f"not UTF-8 at byte {error.start + 1}")
            continue
        if text and not text.isspace():
            yield number, text
        else:
            notes.blank += 1


class RecordFormat(ABC):
    """A format in which each line stands for itself."""

    name = ""
    skip_first = False

    def take(self, block: bytes, tally: Tally, notes: Notes) -> None:
        """Add each line, or note why not."""
        for number, line in numbered_lines(block, notes, skip_first=self.skip_first):
            try:
                self.take_line(line, tally)
            except BadLine as error:
                notes.add_bad(number, str(error))
            except Unused as error:
                notes.add_unused(str(error))

    @abstractmethod
    def take_line(self, line: str, tally: Tally) -> None:
        """Add one line; raises BadLine or Unused."""
