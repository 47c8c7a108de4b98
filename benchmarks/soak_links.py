"""What a worker has to remember of the links of a web, measured on the pages that a soak has fetched."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from contextlib import closing
from pathlib import Path

from bowerbird.crawl.reading import RESOLVED_KEPT, Reader
from bowerbird.crawl.scope import Scope
from bowerbird.crawl.settings import load_settings
from bowerbird.crawl.texts import read_place
from bowerbird.store.committed import CommittedState
from bowerbird.store.folder import CrawlFolder
from bowerbird.web.url import Canonicaliser

AGAIN = 1000  # pages that are read once more
SEED = 1


def measure_link_memory(root: Path) -> dict[str, float]:
    """Bytes for each known URL, once every page was read; and bytes that a page adds when it is read once more.

    The second must be next to nothing: what grows with fetches and not with URLs is no cost of URLs.
    """
    folder = CrawlFolder(root)
    settings = load_settings(folder.config)
    with closing(CommittedState(folder)) as state:
        (known,) = state.connection.execute("SELECT count(*) FROM urls").fetchone()
        places = state.connection.execute(
            "SELECT url, file, offset, length FROM versions ORDER BY fetched_at"
        ).fetchall()
        reader = Reader(
            Canonicaliser(settings.urls, RESOLVED_KEPT),
            Scope(settings.scope_rules, state.seeds()),
            agent=settings.crawl.product,
            hash_seed=SEED,
            max_links=settings.crawl.max_links_per_page,
        )

        def read(some: list[tuple[int, int, int, int]]) -> int:
            for row, file, offset, length in some:
                result = read_place(state, file, offset, length, state.url(row))
                if result is not None:
                    reader.read(result)
            gc.collect()
            return tracemalloc.get_traced_memory()[0]

        read(places[:1])  # what the first page makes for all
        tracemalloc.start()
        try:
            first = read(places)
            settled = read(places[:AGAIN])  # a small cache of the canonicaliser fills
            again = read(places[:AGAIN]) - settled
        finally:
            tracemalloc.stop()
    return {
        "pages": float(len(places)),
        "bytes_a_url": first / max(known, 1),
        "bytes_a_page_again": again / max(min(len(places), AGAIN), 1),
    }


if __name__ == "__main__":
    print(measure_link_memory(Path(sys.argv[1])))
