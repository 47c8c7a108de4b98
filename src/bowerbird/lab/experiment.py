"""What an experiment is: a family of policies compared on the same splits of the same data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Sample:
    """One measured number of one policy on one split."""

    policy: str
    measure: str  # "impact_pct", "avg_impact_pct", "mean_ctr"…
    at: float | None  # the share of the frontier fetched, a budget…; None for a measure without one
    value: float


@dataclass(frozen=True, slots=True)
class Cost:
    """What one policy took on one split."""

    policy: str
    seconds: float
    peak_mb: float


@dataclass(frozen=True, slots=True)
class SplitResult:
    """All that was measured on one split."""

    split: int
    samples: list[Sample] = field(default_factory=list)
    costs: list[Cost] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # said once in the report, whichever split said them


@dataclass(frozen=True, slots=True)
class Summary:
    """A policy's measure over all splits."""

    policy: str
    measure: str
    at: float | None
    mean: float
    se: float  # standard error of the mean over splits; 0 with one split
    n: int  # splits
    seconds: float  # a split, on average
    peak_mb: float  # the most of any split
    values: tuple[float, ...] = ()  # by split


@dataclass(frozen=True, slots=True)
class Finding:
    """A claim of a paper, and what this data says of it."""

    claim: str
    holds: bool | None  # None: this data cannot say
    evidence: str


class LabData(Protocol):
    """A data set that was read: what a report says of it."""

    name: str

    def describe(self) -> dict[str, str | int | float]:
        """Sizes and sources, in order, as a table of two columns."""


class Family(Protocol):
    """One kind of experiment, e.g. `frontier`."""

    name: str
    title: str
    paper: str  # the key, "RW15"
    known: tuple[str, ...]  # names of data sets that it runs on
    policies: tuple[str, ...]
    default_seeds: int
    headline: str  # the measure whose table comes first
    method: str  # the protocol in a paragraph or two, for the report
    units: dict[str, str]  # what each measure is, for tables and axes

    def load(self, name: str, folder: Path) -> LabData:
        """Read and check the data; raises InputFileError that names the file, the value and the remedy."""

    def run_split(self, data: LabData, split: int, policies: Sequence[str]) -> SplitResult:
        """Measure these policies on one split; the same arguments give the same numbers."""

    def conclude(self, data: LabData, summaries: Sequence[Summary]) -> list[Finding]:
        """Which claims of the paper hold here."""
