"""What does measuring gains cost? Indexing real page versions with and without it ([UC05], Figure 2: 7-8%).

    python benchmarks/measurement.py [--data FOLDER] [--versions 20000] [--rounds 5] [--by words]

The pages of a documentation site (mdn, or another folder of that format) are indexed; then their weekly versions
replace them, through the crawler's own index thread: alone, and with what each version gains the searchers of a web
search engine's log. Both run in turns, each from a copy of the same index, with its merges waited for. Bar: measuring
adds at most 5% to the elapsed time, by the shortest round of each (others are disturbed by what else runs; the median
of the ratios is told too). The engine indexes in a thread of its own, so that with two cores free measuring costs CPU
seconds, which are told, but little time.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import orjson

import reporting
from bowerbird.crawl.gain_meter import GainMeter
from bowerbird.crawl.hearing import hear_answers
from bowerbird.crawl.indexing import IndexThread
from bowerbird.crawl.intake import IndexChange
from bowerbird.demand.visibility import PowerLaw
from bowerbird.demand.workload import words_of
from bowerbird.index.measuring import WordScoring
from bowerbird.index.protocol import Document
from bowerbird.index.scoring import field_frequencies
from bowerbird.index.tantivy_index import TantivyIndex
from bowerbird.lab.data_files import read_bytes
from bowerbird.lab.sketches_data import read_queries
from bowerbird.model.workload import Workload, make_workload
from bowerbird.quality.measured_gains import GainBasis, make_basis
from bowerbird.store.gains import MeasuredGain
from bowerbird.web.url import split_words

ROOT = Path(__file__).resolve().parent.parent
BAR = 1.05
BATCH = 200  # pages that a crawl commits together
COMMIT_EVERY_S = 3.0
TITLE = re.compile(r"^title:[ \t]*(.+?)[ \t]*$", re.MULTILINE)


def read_lines(folder: Path, stem: str) -> Iterator[dict[str, Any]]:
    for path in folder.glob(f"{stem}.jsonl*"):
        yield from map(orjson.loads, read_bytes(path).splitlines())


class Site:
    """Pages by number, with their first texts and their later versions in the order of time."""

    def __init__(self, folder: Path, versions: int) -> None:
        self.numbers: dict[str, int] = {}
        self.base = [self._document(record) for record in read_lines(folder, "base")]
        later = (record for record in read_lines(folder, "weeks") if record["status"] != "D")
        self.later = [self._document(record) for record in islice(later, versions)]

    def _document(self, record: dict[str, Any]) -> Document:
        path, text = str(record["path"]), str(record["text"])
        page = self.numbers.setdefault(path, len(self.numbers))
        url = f"https://site.example/{path.removesuffix('.md')}"
        title = TITLE.search(text[:1000])
        at = float(record.get("week", 0))
        return Document(
            page, url, title.group(1) if title else "", text, "", split_words(url), "site.example", "en", at
        )

    def changes(self) -> Iterator[list[IndexChange]]:
        """The later versions, as a crawl hands them to its index."""
        for first in range(0, len(self.later), BATCH):
            part = self.later[first : first + BATCH]
            yield [IndexChange(each.page, each, True, each.fetched_at, each.fetched_at - 1) for each in part]


def open_index(folder: Path) -> TantivyIndex:
    return TantivyIndex.open(folder, write=True, texts=lambda pages: [""] * len(pages))


def make_base(site: Site, folder: Path, workload: Workload, *, by_words: bool) -> GainBasis:
    """The index of the first texts, and what to measure by; forward records beside the index."""
    index = open_index(folder)
    for each in site.base:
        index.add(each)
    index.commit()
    asked = workload
    if by_words:
        asked = make_workload(workload.terms, workload.term_frequency().tolist(), lambda word: [word])
    _, answers = hear_answers(index, asked)
    scoring = WordScoring.bm25(index, asked.terms)
    holding = field_frequencies(index, asked.terms, ["text"])[0]
    basis = make_basis(asked, answers, PowerLaw(), scoring, holding)
    index.close()
    meter = GainMeter(folder / "forward.db")
    meter.use(basis)
    meter.see([IndexChange(each.page, each) for each in site.base])
    meter.commit()
    meter.close()
    return basis


def apply_versions(site: Site, folder: Path, basis: GainBasis | None) -> tuple[float, float, list[MeasuredGain]]:
    """Elapsed and CPU seconds, and what was measured."""
    index = open_index(folder)
    meter = None if basis is None else GainMeter(folder / "forward.db")
    wall, cpu = time.perf_counter(), time.process_time()
    thread = IndexThread(index, COMMIT_EVERY_S, 0, meter)
    thread.use_basis(basis)
    for number, changes in enumerate(site.changes()):
        thread.put(changes, number)
    thread.close()
    spent = time.perf_counter() - wall, time.process_time() - cpu
    if meter is not None and meter.failures:
        raise SystemExit("measuring failed")
    return *spent, thread.take_gains()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder of the shared data (else BOWERBIRD_DATA)")
    parser.add_argument("--on", default="mdn")
    parser.add_argument("--versions", type=int, default=20_000)
    parser.add_argument("--queries", type=int, default=100_000, help="the most frequent ones")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--by", choices=["queries", "words"], default="queries")
    options = parser.parse_args()
    data = options.data or Path(os.environ.get("BOWERBIRD_DATA") or ROOT.parent / "shared" / "data")
    site = Site(data / options.on, options.versions)
    asked = read_queries(data / options.on, [])
    most = sorted(asked, key=lambda text: -asked[text])[: options.queries]
    workload = make_workload(most, [asked[text] for text in most], words_of)
    with tempfile.TemporaryDirectory() as scratch:
        work = Path(scratch)
        began = time.perf_counter()
        basis = make_base(site, work / "base", workload, by_words=options.by == "words")
        print(
            f"{len(site.base):,} pages, {len(site.later):,} later versions; {len(workload):,} queries of "
            f"{len(workload.terms):,} words; basis after {time.perf_counter() - began:.1f} s",
            flush=True,
        )
        rows: list[dict[str, Any]] = []
        gains: list[MeasuredGain] = []
        records_mb = 0.0
        for turn in range(-1, options.rounds):
            spent: dict[bool, tuple[float, float]] = {}
            for measuring in (False, True) if turn % 2 else (True, False):
                shutil.copytree(work / "base", work / "copy")
                wall, cpu, found = apply_versions(site, work / "copy", basis if measuring else None)
                spent[measuring] = wall, cpu
                if measuring:
                    gains, records_mb = found, (work / "copy" / "forward.db").stat().st_size / 1e6
                shutil.rmtree(work / "copy")
            if turn >= 0:  # the first turn warms caches and compiles
                (plain, plain_cpu), (both, both_cpu) = spent[False], spent[True]
                rows.append(
                    {
                        "round": turn + 1,
                        "indexing_s": plain,
                        "measuring_too_s": both,
                        "ratio": both / plain,
                        "indexing_cpu_s": plain_cpu,
                        "measuring_too_cpu_s": both_cpu,
                        "cpu_ratio": both_cpu / plain_cpu,
                    }
                )
    print(reporting.table(rows))
    ratio = min(row["measuring_too_s"] for row in rows) / min(row["indexing_s"] for row in rows)
    cpu_ratio = min(row["measuring_too_cpu_s"] for row in rows) / min(row["indexing_cpu_s"] for row in rows)
    middle = median(row["ratio"] for row in rows)
    values = np.array([gain.gain for gain in gains])
    print(f"{len(gains):,} gains measured, {np.count_nonzero(values):,} above 0, {1e4 * values.sum():.2f} bp in all")
    print(f"forward records: {records_mb:.1f} MB, {1e6 * records_mb / len(site.numbers):,.0f} bytes a page")
    print(f"elapsed {ratio:.3f} x (bar {BAR}; median of the rounds {middle:.3f} x), CPU {cpu_ratio:.3f} x")
    bars = [{"bar": "indexing with measurement", "figure": ratio, "bound": f"<= {BAR}", "passed": ratio <= BAR}]
    facts = {
        "by": options.by,
        "versions": len(site.later),
        "queries": len(workload),
        "cpu_ratio": cpu_ratio,
        "median_ratio": middle,
    }
    reporting.write_json("measurement", {"machine": reporting.machine(), **facts, "rows": rows, "bars": bars})


if __name__ == "__main__":
    main()
