"""What arenas an index keeps that is updated for long, by how many the heap may have (`bowerbird/crawl/heap.py`).

Each number of arenas has a process of its own: 3,000 pages, of which 20 are replaced before every commit.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from bowerbird.crawl import heap
from bowerbird.index.protocol import Document
from bowerbird.index.tantivy_index import TantivyIndex
from reporting import OUT, machine, table, write_json

PAGES, REPLACED, WORDS = 3000, 20, 20_000
LOOK_EVERY = 10  # commits
ALIGNED = 64 << 20  # where glibc lets arenas begin


def main() -> None:
    """Each number in a process of its own, then a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arenas", type=int, nargs="+", default=[4, heap.ARENAS])
    parser.add_argument("--commits", type=int, default=1500)
    parser.add_argument("--alone", type=int, default=None, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    if options.alone is not None:
        run_alone(options.alone, options.commits)
        return
    rows = []
    for many in options.arenas:
        command = [sys.executable, __file__, "--alone", str(many), "--commits", str(options.commits)]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
        early, late, own, wall, cpu = (float(word) for word in said)
        rows.append(
            {
                "arenas": many,
                "arenas' MB, first tenth": early,
                "last tenth": late,
                "own MB, last tenth": own,
                "wall s": wall,
                "CPU s": cpu,
            }
        )
    print(table(rows))
    write_json(
        (options.out or OUT) / "index_heap.json", {"machine": machine(), "commits": options.commits, "rows": rows}
    )


def run_alone(arenas: int, commits: int) -> None:
    """Print the arenas' memory in the first and last tenth of the commits, all of it in the last, and the time."""
    heap.ARENAS = arenas
    heap.settle_heap()
    rng = np.random.default_rng(0)
    share = 1.0 / np.arange(1.0, WORDS + 1)
    share /= share.sum()

    def text(words: int) -> str:
        return " ".join(f"w{word}" for word in rng.choice(WORDS, words, p=share))

    pages = [
        Document(page, f"http://a.example/{page}", text(6), text(300), "", "", "a", "", 0.0) for page in range(PAGES)
    ]
    folder = Path(tempfile.mkdtemp())
    looks: list[tuple[float, float]] = []
    trimmer = heap.Trimmer(3.0)
    index = TantivyIndex.open(folder, write=True)
    try:
        for page in pages:
            index.add(page)
        index.commit()
        wall, cpu = time.perf_counter(), time.process_time()
        for commit in range(commits):
            for page in rng.integers(0, PAGES, REPLACED).tolist():
                index.add(pages[page], replace=True)
            index.commit()
            index.search("w5 w9", 3)
            trimmer.trim()
            if commit % LOOK_EVERY == 0:
                looks.append((arenas_mb(), own_mb()))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    finally:
        index.close()
        shutil.rmtree(folder)
    tenth = max(len(looks) // 10, 1)
    early, late = np.median(looks[:tenth], axis=0), np.median(looks[-tenth:], axis=0)
    print(early[0], late[0], late[1], wall, cpu)


def own_mb() -> float:
    """Memory of this process alone."""
    found = re.search(r"RssAnon:\s+(\d+)", Path("/proc/self/status").read_text())
    assert found
    return int(found.group(1)) / 1e3


def arenas_mb() -> float:
    """That of it in arenas besides the main one."""
    total, mine = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        begin = re.match(r"([0-9a-f]+)-[0-9a-f]+ \S+ \S+ \S+ \S+\s*(.*)", line)
        if begin:
            mine = not begin.group(2) and int(begin.group(1), 16) % ALIGNED == 0
        elif mine and line.startswith("Anonymous:"):
            total += int(line.split()[1])
    return total / 1e3


if __name__ == "__main__":
    main()
