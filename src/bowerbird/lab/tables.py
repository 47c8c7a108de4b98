"""Summaries as tables: policies down, and across either the measures or the places at which one was measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from bowerbird.lab.experiment import Family, Summary
from bowerbird.lab.summaries import interval_95

UNKNOWN = "–"
MAX_DECIMALS = 5


@dataclass(frozen=True, slots=True)
class Cell:
    """A mean with what is known of its error."""

    mean: str
    error: str  # standard error; empty with one split, or of what no split moves
    interval: str  # 95%; empty with too few splits too
    n: int

    def __str__(self) -> str:
        return f"{self.mean} ± {self.error}" if self.error else self.mean


@dataclass(frozen=True, slots=True)
class MeasureTable:
    """Cells by policy and column."""

    title: str
    about: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]

    def without_errors(self, certain: Callable[[str], bool]) -> MeasureTable:
        """The same, with nothing but means of the policies that splits do not move."""
        bare = [
            (policy, tuple(replace(cell, error="", interval="") for cell in cells) if certain(policy) else cells)
            for policy, cells in self.rows
        ]
        return replace(self, rows=tuple(bare))


def make_tables(family: Family, summaries: Sequence[Summary]) -> list[MeasureTable]:
    """One for each measure that has places, one for all the others together; the headline's first.

    Measures of one kind that were taken on several things ("loss_bp web", "loss_bp site") have a table of their own.
    Those of kinds that a family leaves unshown have none: its findings rest on them.
    """
    unshown = getattr(family, "unshown", ())
    summaries = [row for row in summaries if split_measure(row.measure)[0] not in unshown]
    placed = {row.measure: None for row in summaries if row.at is not None}
    single: dict[str, dict[str, None]] = {}
    for row in summaries:
        if row.at is None:
            single.setdefault(split_measure(row.measure)[0], {})[row.measure] = None
    policies = list(dict.fromkeys(row.policy for row in summaries))
    tables: list[tuple[bool, MeasureTable]] = []
    found = {(row.policy, row.measure): row for row in summaries if row.at is None}
    for kind, measures in single.items():
        names = sorted(measures, key=lambda name: name != family.headline)
        columns = [[found.get((policy, name)) for policy in policies] for name in names]
        about = family.units.get(kind, "") if kind else _about(family, names)
        heads = [split_measure(name)[1] for name in names]
        beyond = getattr(family, "beyond", {}).get(kind, "")
        table = _lay_out(kind or "Over all", about, heads, policies, columns, together=bool(kind), beyond=beyond)
        tables.append((family.headline in names, table))
    for measure in placed:
        rows = [row for row in summaries if row.measure == measure and row.at is not None]
        places = sorted({row.at for row in rows if row.at is not None})
        at = {(row.policy, row.at): row for row in rows}
        columns = [[at.get((policy, place)) for policy in policies] for place in places]
        about = "; ".join(filter(None, (unit_of(family, measure), _across(family, measure))))
        table = _lay_out(measure, about, place_texts(places), policies, columns, together=True)
        tables.append((measure == family.headline, table))
    certain = getattr(family, "certain", lambda policy: False)
    return [table.without_errors(certain) for _, table in sorted(tables, key=lambda pair: not pair[0])]


def split_measure(measure: str) -> tuple[str, str]:
    """The kind of a measure and what it was taken on; a measure of its own has no kind.

    >>> split_measure("loss_bp web tf-idf"), split_measure("impact_pct")
    (('loss_bp', 'web tf-idf'), ('', 'impact_pct'))
    """
    kind, _, on = measure.partition(" ")
    return (kind, on) if on else ("", measure)


def unit_of(family: Family, measure: str) -> str:
    """What a family says of a measure, or of its kind; nothing if it does not."""
    kind, on = split_measure(measure)
    said = family.units.get(kind, "")
    return family.units.get(measure) or (f"{on}: {said}" if said else "")


def place_unit(family: Family, measure: str) -> str:
    """What the places are at which a measure was taken."""
    return family.units.get(f"at {split_measure(measure)[0]}") or family.units.get("at", "")


def place_texts(places: Sequence[float]) -> list[str]:
    """Shares as per cent, other places as they are.

    >>> place_texts([0.01, 0.3]), place_texts([0.22, 4.0])
    (['1%', '30%'], ['0.22', '4'])
    """
    shares = all(0 < place <= 1 for place in places)
    return [f"{100 * place:g}%" if shares else f"{place:g}" for place in places]


def decimals_for(values: Sequence[float]) -> int:
    """So many that differences between such values show.

    >>> decimals_for([57.02, 100.0]), decimals_for([0.0123]), decimals_for([12345.6])
    (1, 4, 0)
    """
    largest = max((abs(value) for value in values if math.isfinite(value)), default=0.0)
    if largest == 0.0:
        return 1
    size = math.floor(math.log10(largest))
    return 0 if size >= 3 else 1 if size >= 1 else 2 - size


def number_text(value: float, decimals: int) -> str:
    """A number, or a dash; with many decimals as a power of ten.

    >>> number_text(1234.56, 1), number_text(5.124e-6, 8), number_text(math.nan, 1)
    ('1,234.6', '5.12e-06', '–')
    """
    if not math.isfinite(value):
        return UNKNOWN
    return f"{value:,.{decimals}f}" if decimals <= MAX_DECIMALS else f"{value:.2e}"


def measure_cell(row: Summary | None, decimals: int, beyond: str = "") -> Cell:
    """A summary in words; `beyond` stands for a mean without bounds."""
    if row is None or not row.n:
        return Cell(UNKNOWN, "", "", 0)
    if math.isinf(row.mean):
        return Cell(beyond or UNKNOWN, "", "", row.n)
    reach = interval_95(row.mean, row.se, row.n)
    error = number_text(row.se, decimals) if row.n > 1 else ""
    interval = " to ".join(number_text(end, decimals) for end in reach) if reach else ""
    return Cell(number_text(row.mean, decimals), error, interval, row.n)


def _lay_out(
    title: str,
    about: str,
    names: Sequence[str],
    policies: Sequence[str],
    columns: Sequence[Sequence[Summary | None]],
    *,
    together: bool = False,
    beyond: str = "",
) -> MeasureTable:
    """`together`: all columns have as many decimals as the largest needs."""
    means = [[row.mean for row in column if row is not None] for column in columns]
    joint = decimals_for([mean for column in means for mean in column])
    decimals = [joint if together else decimals_for(column) for column in means]
    cells = [
        [measure_cell(row, places, beyond) for row in column] for column, places in zip(columns, decimals, strict=True)
    ]
    kept = [
        (policy, tuple(column[place] for column in cells))
        for place, policy in enumerate(policies)
        if any(column[place].n for column in cells)
    ]
    return MeasureTable(title, about, tuple(names), tuple(kept))


def _about(family: Family, measures: Sequence[str]) -> str:
    known = [(name, family.units[name]) for name in measures if family.units.get(name)]
    return "; ".join(f"{name}: {unit}" for name, unit in known)


def _across(family: Family, measure: str) -> str:
    unit = place_unit(family, measure)
    return f"across: {unit}" if unit else ""
