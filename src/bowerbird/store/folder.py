"""The crawl folder: one directory a person can copy, move and delete. Nothing in it holds an absolute path."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bowerbird.model.errors import FolderError

STORE_SCHEMES = ("postgresql://", "postgres://")


def is_store_url(text: str) -> bool:
    """Does this name a PostgreSQL database?

    >>> is_store_url("postgresql://db.example/crawl"), is_store_url("crawls/one")
    (True, False)
    """
    return text.startswith(STORE_SCHEMES)


@dataclass(frozen=True, slots=True)
class CrawlFolder:
    """The places within a crawl folder."""

    root: Path

    @property
    def config(self) -> Path:
        """The commented settings."""
        return self.root / "bowerbird.toml"

    @property
    def database(self) -> Path:
        """URL records, links, versions, the journal of decisions."""
        return self.root / "state.db"

    @property
    def store(self) -> Path:
        """Where the database is not in the folder: a file with its URL, for its owner's eyes only."""
        return self.root / "store.url"

    @property
    def store_url(self) -> str | None:
        """The URL of the database; None where it is in the folder."""
        try:
            return self.store.read_text(encoding="utf-8").strip()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise FolderError(
                f"{self.store}: cannot be read ({error.strerror}). It says where the crawl's database is: "
                "change its permissions, or run as its owner."
            ) from error

    @property
    def checkpoint(self) -> Path:
        """The columns as of some fetch; only a shortcut, rebuilt from the database when missing."""
        return self.root / "columns.ckpt"

    @property
    def archive(self) -> Path:
        """WARC files."""
        return self.root / "archive"

    @property
    def index(self) -> Path:
        """The search index."""
        return self.root / "index"

    @property
    def forward(self) -> Path:
        """The words of each indexed page that searchers ask for; made anew, page by page, when missing."""
        return self.index / "forward.db"

    @property
    def studies(self) -> Path:
        """What the frontier is worth, one file a method; made anew when missing."""
        return self.root / "study"

    def study(self, method: str) -> Path:
        """The last study by a method."""
        return self.studies / f"{method}.npz"

    @property
    def lock(self) -> Path:
        """Held by the one process that writes."""
        return self.root / "lock"

    def has_database(self) -> bool:
        """Is there a database, or word of where it is?"""
        return self.store.is_file() or self.database.is_file()

    def check(self) -> None:
        """Raise unless this is a crawl folder that can be read."""
        if not self.root.is_dir():
            raise FolderError(f"{self.root}: no such folder. `bowerbird init {self.root} --seed URL` makes one.")
        if not os.access(self.root, os.R_OK | os.X_OK):
            raise FolderError(f"{self.root}: not readable by this user. Change its permissions or run as its owner.")
        if not self.config.is_file() or not self.has_database():
            raise FolderError(
                f"{self.root}: not a crawl folder (no bowerbird.toml and state.db in it). "
                f"`bowerbird init {self.root} --seed URL` makes one."
            )


class WriterLock:
    """One writer a folder. The lock dies with the processes that inherited it, so a crash leaves none behind."""

    connection: None = None  # it is opened under the lock, and not with it

    def __init__(self, folder: CrawlFolder, wait_s: float = 3.0) -> None:
        try:
            self.fd = os.open(folder.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise FolderError(f"{folder.root}: not writable ({error.strerror}). Change its permissions.") from error
        deadline = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(self.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError as error:
                if time.monotonic() < deadline:
                    time.sleep(0.05)
                    continue
                holder = os.pread(self.fd, 32, 0).decode("ascii", "replace").strip()
                os.close(self.fd)
                raise FolderError(
                    f"{folder.root}: another process (pid {holder or 'unknown'}) is writing to this crawl. "
                    "Stop it first; a crawl has one writer."
                ) from error
        with suppress(OSError):  # on a full disk the lock holds all the same, without saying whose it is
            os.ftruncate(self.fd, 0)
            os.pwrite(self.fd, str(os.getpid()).encode("ascii"), 0)

    @property
    def keep_fds(self) -> tuple[int, ...]:
        """What the processes that belong to the writer inherit."""
        return (self.fd,)

    def release(self) -> None:
        """Let another process write."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    @staticmethod
    def is_held(folder: CrawlFolder) -> bool:
        """Is some process writing now?"""
        url = folder.store_url
        if url is not None:
            from bowerbird.store.election import is_claimed

            return is_claimed(url)
        try:
            fd = os.open(folder.lock, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)  # shared: two who ask at once do not see each other
        except OSError:
            return True
        finally:
            os.close(fd)
        return False
