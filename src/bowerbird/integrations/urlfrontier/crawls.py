"""The crawls of one service: a folder of ours below its own for every crawl ID, and what holds for all of them."""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import quote, unquote

import orjson

from bowerbird.crawl.guest_crawl import make_guest_folder
from bowerbird.crawl.guest_frontier import GuestFrontier
from bowerbird.model.errors import FolderError
from bowerbird.store.folder import CrawlFolder

log = logging.getLogger(__name__)

DEFAULT = "DEFAULT"
MOST_CRAWLS = 100
MAX_ID_BYTES = 200  # as the name of a folder
TRASH = ".deleted-"
STATE = "service.json"


class CrawlIdError(ValueError):
    """A crawl ID that cannot be the name of a folder, or one too many."""


def folder_name(crawl_id: str) -> str:
    """The name of a crawl's folder: its ID, with what file systems do not take or would take for something else quoted.

    >>> folder_name("news 2026"), folder_name("../x"), folder_name("")
    ('news%202026', '%2E.%2Fx', 'DEFAULT')
    """
    name = quote(crawl_id or DEFAULT, safe="")
    if name[0] == ".":
        name = "%2E" + name[1:]
    if len(name) > MAX_ID_BYTES:
        raise CrawlIdError(f"crawlID {crawl_id[:40]!r}…: too long; at most {MAX_ID_BYTES} bytes once quoted")
    return name


class Crawls:
    """Opens, makes and removes frontiers by crawl ID. Used by one thread at a time."""

    def __init__(self, root: Path, *, policy: str | None = None, delay_s: float | None = None) -> None:
        self.root = root
        self.policy = policy
        self._usual_delay_s = delay_s
        self._open: dict[str, GuestFrontier] = {}
        self._turn = 0
        try:
            root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise FolderError(f"{root}: cannot be made ({error.strerror}). Choose another place.") from error
        if (root / "bowerbird.toml").exists():
            raise FolderError(
                f"{root}: is a crawl folder itself; the service keeps one for each crawl below its own. "
                f"Name its parent, with the crawl as {DEFAULT} in it, or a new folder."
            )
        self._read_state()
        for trash in root.glob(f"{TRASH}*"):  # a removal that was cut short
            shutil.rmtree(trash, ignore_errors=True)
        try:
            for place in sorted(root.iterdir()):
                if CrawlFolder(place).config.is_file():
                    self._open[unquote(place.name)] = self._load(place)
            self.get_or_make(DEFAULT)
        except BaseException:
            self.close()
            raise

    def _read_state(self) -> None:
        path = self.root / STATE
        self.active = True
        self.delay_s: float | None = None  # between two times that a line gives something, set for all crawls
        if path.exists():
            try:
                state = orjson.loads(path.read_bytes())
                self.active = bool(state["active"])
                self.delay_s = None if state["delay_s"] is None else float(state["delay_s"])
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise FolderError(
                    f"{path}: cannot be read ({error}). Restore it, or delete it to begin anew."
                ) from error

    def _write_state(self, active: bool, delay_s: float | None) -> None:
        partial = self.root / f"{STATE}.partial"
        with partial.open("wb") as out:
            out.write(orjson.dumps({"active": active, "delay_s": delay_s}))
            out.flush()
            os.fsync(out.fileno())
        partial.replace(self.root / STATE)
        self.active, self.delay_s = active, delay_s  # not before it is durable

    def _load(self, place: Path) -> GuestFrontier:
        delay_s = self._usual_delay_s if self.delay_s is None else self.delay_s
        frontier = GuestFrontier(place, policy=self.policy, delay_s=delay_s)
        frontier.note_active(self.active)
        return frontier

    # -- by ID

    def __iter__(self) -> Iterator[GuestFrontier]:
        return iter(self._open.values())

    def ids(self) -> list[str]:
        """The crawls there are."""
        return list(self._open)

    def get(self, crawl_id: str) -> GuestFrontier | None:
        """The frontier of a crawl; None where there is none of that ID."""
        return self._open.get(crawl_id or DEFAULT)

    def get_or_make(self, crawl_id: str) -> GuestFrontier:
        """The frontier of a crawl, made where there is none."""
        found = self.get(crawl_id)
        if found is None:
            place = self.root / folder_name(crawl_id)
            if len(self._open) >= MOST_CRAWLS:
                raise CrawlIdError(f"crawlID {crawl_id[:40]!r}: there are {MOST_CRAWLS} crawls already. Delete one.")
            make_guest_folder(place)
            found = self._open[crawl_id or DEFAULT] = self._load(place)
            log.info("crawl %s: made", crawl_id or DEFAULT)
        return found

    def in_turn(self) -> list[tuple[str, GuestFrontier]]:
        """All crawls, each time another first: bids of different crawls cannot be compared."""
        found = list(self._open.items())
        self._turn = (self._turn + 1) % len(found)
        return found[self._turn :] + found[: self._turn]

    def delete(self, crawl_id: str) -> int:
        """Remove a crawl with its folder; how many URLs went. There is always one of the default ID."""
        frontier = self._open.pop(crawl_id or DEFAULT, None)
        if frontier is None:
            return 0
        removed = len(frontier.places.members())
        place = frontier.crawl.folder.root
        frontier.abandon()
        trash = self.root / f"{TRASH}{os.getpid()}-{place.name}"
        place.rename(trash)  # whole or not at all; what follows may be cut short
        shutil.rmtree(trash, ignore_errors=True)
        log.info("crawl %s: deleted with %d URLs", crawl_id or DEFAULT, removed)
        self.get_or_make(DEFAULT)
        return removed

    # -- what holds for all

    def set_active(self, active: bool) -> None:
        """Hand URLs out, or stop handing them out; kept over restarts."""
        self._write_state(active, self.delay_s)
        for frontier in self:
            frontier.note_active(active)

    def set_delay(self, delay_s: float) -> None:
        """The delay of lines that have none of their own, in crawls that have none of their own; kept over restarts."""
        self._write_state(self.active, delay_s)
        for frontier in self:
            frontier.suggest_delay(delay_s)

    def commit(self) -> None:
        """Make everything durable; what is wrong with one crawl leaves the others alone, and is raised after them."""
        trouble: Exception | None = None
        for frontier in self:
            try:
                frontier.commit()
            except Exception as error:
                trouble = trouble or error
        if trouble is not None:
            raise trouble

    def keep_up(self) -> None:
        """Once a second or so; one study at a time in all crawls."""
        for frontier in self:
            busy = any(other.crawl.studies.is_busy for other in self if other is not frontier)
            frontier.keep_up(may_study=not busy)

    def close(self) -> None:
        """Commit, and let go of all folders."""
        with ExitStack() as each:  # also where one cannot be committed
            while self._open:
                each.callback(self._open.popitem()[1].close)
