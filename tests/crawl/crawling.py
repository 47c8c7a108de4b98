"""What the tests of whole crawls share: making a folder, running the command, looking at what a crawl left."""

from __future__ import annotations

import json
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from bowerbird.appraise.policy import PLAIN
from bowerbird.crawl.session import create_crawl
from bowerbird.crawl.settings import load_settings
from bowerbird.index.tantivy_index import TantivyIndex
from bowerbird.model.outcome import DECISIONS_WITHOUT_FETCH, Outcome
from bowerbird.model.url_state import FetchKind, UrlState
from bowerbird.store.archive import ArchivePlace
from bowerbird.store.archive_reader import read_exchange
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.repository import Repository

CONTACT = "crawl-master@example.org"
Sections = Mapping[str, Mapping[str, object]]

#: A crawl of loopback without waiting; retries come soon, so that `--once` ends soon. Its bids need no studies, which
#: would take a core from what the tests look at; those that are about studies name another policy.
QUICK: dict[str, dict[str, object]] = {
    "crawl": {"contact": CONTACT, "scope": "anywhere", "policy": PLAIN, "retry_base_s": 0.3, "max_errors": 2},
    "politeness": {"delay_s": 0.0, "connections_per_host": 4},
    "network": {"allow_addresses": ["loopback"]},
    "index": {"commit_every_s": 0.3},
    "quality": {"probe_share": 0.0},  # tests count fetches
}


def make_crawl(root: Path, seeds: list[str], sections: Sections | None = None) -> Path:
    """A crawl folder with quick settings, and `sections` on top of them."""
    values = {name: dict(section) for name, section in QUICK.items()}
    for name, section in (sections or {}).items():
        values.setdefault(name, {}).update(section)
    create_crawl(root, seeds, values)
    return root


def set_policy(root: Path, policy: str) -> None:
    """Have the settings of a crawl say another policy, whether they name one or leave it to the default."""
    config = root / "bowerbird.toml"
    text, changed = re.subn(r"(?m)^(# )?policy = .*$", f'policy = "{policy}"', config.read_text(encoding="utf-8"))
    assert changed == 1
    config.write_text(text, encoding="utf-8")


@dataclass(frozen=True, slots=True)
class Ran:
    """A command that ended."""

    code: int
    out: str
    err: str
    took_s: float = 0.0

    def json(self) -> Any:
        return json.loads(self.out)


def command_line(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "bowerbird.cli.main", *map(str, arguments)]


def run_command(*arguments: object, timeout_s: float = 60.0, before: Callable[[], None] | None = None) -> Ran:
    """Run `bowerbird …` as a process of its own; `before` runs in it first (limits)."""
    began = time.monotonic()
    done = subprocess.run(
        command_line(*arguments), capture_output=True, text=True, timeout=timeout_s, check=False, preexec_fn=before
    )
    return Ran(done.returncode, done.stdout, done.stderr, time.monotonic() - began)


@contextmanager
def running_crawl(root: Path, *options: object) -> Iterator[subprocess.Popen[str]]:
    """A crawl in a process of its own; ended, whatever happens, when the block ends."""
    process = subprocess.Popen(
        command_line("crawl", root, *options), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def interrupt(process: subprocess.Popen[str], timeout_s: float = 20.0) -> Ran:
    """Ctrl-C, and how it ended."""
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=timeout_s)
    return Ran(process.returncode, out, err, time.monotonic() - began)


def workers_of(pid: int) -> list[psutil.Process]:
    """The worker processes of a crawl."""
    try:
        children = psutil.Process(pid).children()
        return [child for child in children if child.name() == "bower-worker"]
    except psutil.NoSuchProcess:
        return []


def studies_of(pid: int) -> list[psutil.Process]:
    """The studies that a crawl has under way."""
    try:
        return [child for child in psutil.Process(pid).children() if "study" in child.cmdline()]
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return []


def wait_for(condition: Callable[[], bool], timeout_s: float = 15.0, every_s: float = 0.05) -> bool:
    """Poll; whether it came true in time."""
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(every_s)
    return True


def is_gone(process: psutil.Process) -> bool:
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


class Left:
    """What a crawl left in its folder, read from the database itself."""

    def __init__(self, root: Path) -> None:
        self.folder = CrawlFolder(root)

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        connection = sqlite3.connect(self.folder.database, timeout=30)
        try:
            return connection.execute(query, values).fetchall()
        finally:
            connection.close()

    def one(self, query: str, *values: object) -> Any:
        return self.rows(query, *values)[0][0]

    def urls(self) -> dict[int, str]:
        return {int(row): str(url) for row, url in self.rows("SELECT id, url FROM urls")}

    def states(self) -> dict[str, UrlState]:
        """The state of each URL by the journal's last word."""
        last = dict(self.rows("SELECT url, state FROM fetches WHERE id IN (SELECT max(id) FROM fetches GROUP BY url)"))
        return {url: UrlState(last.get(row, 0)) for row, url in self.urls().items()}

    def fetches(self, *outcomes: Outcome) -> list[str]:
        """URLs of the fetches made, one for each; only of these outcomes if any are given."""
        wanted = outcomes or tuple(outcome for outcome in Outcome if outcome not in DECISIONS_WITHOUT_FETCH)
        marks = ",".join(str(int(outcome)) for outcome in wanted)
        return [
            str(url)
            for (url,) in self.rows(
                f"SELECT urls.url FROM fetches JOIN urls ON urls.id = fetches.url WHERE outcome IN ({marks})"
                " ORDER BY fetches.id"
            )
        ]

    def outcomes(self, url: str) -> list[Outcome]:
        """What became of each decision about a URL, in order."""
        found = self.rows(
            "SELECT outcome FROM fetches JOIN urls ON urls.id = fetches.url WHERE urls.url = ? ORDER BY fetches.id", url
        )
        return [Outcome(outcome) for (outcome,) in found]

    def searchable(self) -> list[int]:
        """The rows the index must hold, and no others."""
        states = self.states()
        urls = self.urls()
        rows = self.rows("SELECT url FROM versions WHERE noindex = 0 AND media IN ('html', 'text') ORDER BY url")
        return [row for (row,) in rows if states[urls[row]] is UrlState.FETCHED]

    def indexed(self) -> list[int]:
        """The rows the index holds, one for each document."""
        with TantivyIndex.open(self.folder.index, write=False) as index:
            return list(map(int, index.pages()))

    def search(self, query: str) -> list[str]:
        with TantivyIndex.open(self.folder.index, write=False) as index:
            return [hit.url for hit in index.search(query, 20).hits]

    def check_agreement(self, scratch: Path) -> None:
        """Archive, index, journal, totals and columns say the same. `scratch` is an empty place for copies."""
        assert self.indexed() == self.searchable()
        self._check_archive()
        twice = self.rows(
            "SELECT url, count(*) FROM fetches WHERE kind = ? AND outcome = ? GROUP BY url HAVING count(*) > 1",
            int(FetchKind.NEW),
            int(Outcome.OK),
        )
        back = {url for url, state in self.rows("SELECT url, outcome FROM fetches") if state == Outcome.ADDED}
        assert [url for url, _ in twice if url not in back] == []
        counted = self.rows(
            "SELECT kind, outcome, count(*), sum(wire_bytes) FROM fetches GROUP BY kind, outcome ORDER BY kind, outcome"
        )
        assert counted == self.rows("SELECT * FROM totals ORDER BY kind, outcome")
        self.check_columns(scratch)

    def _check_archive(self) -> None:
        urls = self.urls()
        names = dict(self.rows("SELECT id, name FROM archive_files"))
        for row, file, offset, length in self.rows("SELECT url, file, offset, length FROM versions"):
            place = ArchivePlace(names[file], offset, length)
            exchange = read_exchange(self.folder.archive, place, url=urls[row])
            assert exchange.status == 200
        for row, outcome, file, offset, length in self.rows(
            "SELECT url, outcome, file, offset, length FROM fetches WHERE file IS NOT NULL"
        ):
            exchange = read_exchange(self.folder.archive, ArchivePlace(names[file], offset, length), url=urls[row])
            assert exchange.is_revisit == (outcome == Outcome.NOT_MODIFIED)
        sizes = {path.name: path.stat().st_size for path in self.folder.archive.iterdir()}
        for name, end in self.rows("SELECT name, bytes FROM archive_files"):
            assert sizes[name] >= end

    def check_columns(self, scratch: Path) -> None:
        """A start from the checkpoint and a start from the journal alone come to the same columns."""
        scratch.mkdir(parents=True, exist_ok=True)
        for path in self.folder.root.glob("state.db*"):
            shutil.copy(path, scratch / path.name)
        interval_s = load_settings(self.folder.config).refresh.interval_s
        with_mark = Repository(self.folder, write=False, default_interval_s=interval_s)
        without = Repository(CrawlFolder(scratch), write=False, default_interval_s=interval_s)
        try:
            assert without.replayed == with_mark.last_fetch_id
            for name in with_mark.table.columns.layout:
                mine, other = with_mark.table.columns[name], without.table.columns[name]
                assert np.array_equal(mine, other), name
        finally:
            with_mark.close()
            without.close()


def limit_file_size(size: int) -> Callable[[], None]:
    """For `before`: no file of the process, or of its children, may become larger."""

    def apply() -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return apply


def is_one_line(text: str) -> bool:
    """One line for a person: no traceback, nothing but that line."""
    return len(text.strip().splitlines()) == 1 and "Traceback" not in text
