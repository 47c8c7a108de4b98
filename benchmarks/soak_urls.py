"""What a coordinator has in memory for the URLs of a crawl, its bids and studies with them, measured on the folder."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from pathlib import Path
from typing import Any

from bowerbird.appraise.policy import AUTO
from bowerbird.crawl.market import Market
from bowerbird.crawl.view import CrawlView
from bowerbird.schedule.politeness import HostGate


def measure_url_memory(root: Path) -> dict[str, float]:
    """Bytes for each known URL: columns, hosts, line and studies as the crawl has them now, and what hangs on them."""
    _load(root)  # kernels, and what the first of all makes for all
    gc.collect()
    tracemalloc.start()
    try:
        kept = _load(root)
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    known = kept[1].repository.table.columns.count
    return {"known": float(known), "bytes_a_url": taken / max(known, 1)}


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
