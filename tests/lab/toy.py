"""A family of experiments so small that its numbers can be worked out by hand, and data for it."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from bowerbird.lab.experiment import Cost, Finding, LabData, Sample, SplitResult, Summary
from bowerbird.lab.frontier_data import FrontierData, read_frontier_data
from bowerbird.lab.measuring_cost import measured
from bowerbird.lab.summaries import compare, pick

SHARES = (0.1, 0.2, 0.5, 1.0)


def write_toy_data(folder: Path, pages: int = 40) -> Path:
    """Every page links to the next three; the clicks fall with the number."""
    folder.mkdir(parents=True, exist_ok=True)
    links = [f"p{one:03}\tp{(one + step) % pages:03}" for one in range(pages) for step in (1, 2, 3)]
    (folder / "links.tsv").write_text("\n".join(["source\ttarget", *links]) + "\n", encoding="utf-8")
    clicks = [f"p{one:03}\t{1000 // (one + 1)}" for one in range(pages)]
    (folder / "clicks.tsv").write_text("\n".join(["page\tclicks", *clicks]) + "\n", encoding="utf-8")
    return folder


@dataclass
class ToyFamily:
    """Random order against the order of names, which is the best there is."""

    name: str = "toy"
    title: str = "Toy <ranking>"
    paper: str = "TOY00"
    known: tuple[str, ...] = ("toydata", "elsewhere")
    policies: tuple[str, ...] = ("random", "names", "backwards")
    default_seeds: int = 3
    headline: str = "avg_pct"
    method: str = "Pages are ranked.\n\nThen clicks are counted & compared."
    units: dict[str, str] = field(
        default_factory=lambda: {"pct": "% of all clicks", "avg_pct": "% of all clicks, mean", "at": "share fetched"}
    )
    reference: str = "names"
    wait_s: float = 0.0
    fail_at: int = -1
    die_at: int = -1

    def load(self, name: str, folder: Path) -> FrontierData:
        return read_frontier_data(name, folder)

    def run_split(self, data: LabData, split: int, policies: Sequence[str]) -> SplitResult:
        assert isinstance(data, FrontierData)
        if split == self.fail_at:
            raise ValueError("it broke")
        if split == self.die_at:
            os._exit(9)
        time.sleep(self.wait_s)
        result = SplitResult(split, notes=["A toy.", f"Seen {min(split, 1)}"])
        rng = np.random.default_rng(split)
        for policy in policies:
            with measured(policy) as meter:
                order = {
                    "random": rng.permutation(data.count),
                    "names": np.arange(data.count),
                    "backwards": np.arange(data.count)[::-1],
                }[policy]
                summed = np.cumsum(data.clicks[order]) / data.clicks.sum()
            found = [(share, 100 * float(summed[round(share * data.count) - 1])) for share in SHARES]
            result.samples.extend([Sample(policy, "pct", share, value) for share, value in found])
            result.samples.append(Sample(policy, "avg_pct", None, float(np.mean([value for _, value in found]))))
            result.costs.append(meter.cost)
        result.costs.append(Cost("reading", 0.5, 100.0))
        return result

    def conclude(self, data: LabData, summaries: Sequence[Summary]) -> list[Finding]:
        names, random = (pick(summaries, policy, self.headline) for policy in ("names", "random"))
        if names is None or random is None:
            return [Finding("Names beat chance", None, "One of them was not run")]
        pair = compare(names, random)
        return [
            Finding("Names beat chance", pair.above == pair.n, f"{pair.above} of {pair.n} splits [really]"),
            Finding("Chance beats names", pair.above == 0, "see above"),
            Finding("Pages are read", None, "there is no text"),
        ]
