"""What a coordinator has in memory for the URLs of a crawl, its bids and studies with them, measured on the folder."""

from __future__ import annotations

import gc
import sys
import tempfile
import tracemalloc
from pathlib import Path
from typing import Any

from bowerbird.appraise.policy import AUTO
from bowerbird.crawl.market import Market
from bowerbird.crawl.session import make_folder
from bowerbird.crawl.view import CrawlView
from bowerbird.schedule.politeness import HostGate


def measure_url_memory(root: Path) -> dict[str, float]:
    """Bytes for each known URL: columns, hosts, line and studies as the crawl has them now, and what hangs on them.

    What a crawl without any URL has, too, is left out: it does not grow with them.
    """
    with tempfile.TemporaryDirectory() as folder:
        make_folder(Path(folder) / "bare", {})
        bare, _ = _measure(Path(folder) / "bare")
    taken, known = _measure(root)
    return {"known": float(known), "bytes_a_url": (taken - bare) / max(known, 1), "bare_bytes": float(bare)}


def _measure(root: Path) -> tuple[int, int]:
    """Bytes, and known URLs."""
    _load(root)  # kernels, and what the first of all makes for all
    gc.collect()
    tracemalloc.start()
    try:
        kept = _load(root)
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    return taken, kept[1].repository.table.columns.count


def _load(root: Path) -> tuple[Any, Market]:
    view = CrawlView(root, AUTO)
    repository, gate = view.repository, HostGate()
    gate.extend(len(repository.table.hosts.origins))
    market = Market(repository, view.policy, gate, None, view.now)
    market.open(view.now)
    view.close()
    return view, market


if __name__ == "__main__":
    print(measure_url_memory(Path(sys.argv[1])))
