"""The one exception tree. A message names the thing, the value and the remedy; an expected failure is a value."""

from __future__ import annotations


class BowerbirdError(Exception):
    """Anything a user can do something about. The command line prints it without a traceback."""

    exit_code = 2


class UrlError(BowerbirdError):
    """A URL given by a person cannot be crawled."""


class ConfigError(BowerbirdError):
    """bowerbird.toml, or an option, has a value that cannot be used."""


class FolderError(BowerbirdError):
    """A crawl folder is missing, unreadable, locked, or of another version."""


class IndexHeldError(FolderError):
    """Another process writes to the index."""


class StoreError(BowerbirdError):
    """A crawl's database elsewhere refuses something, or what is needed to speak with it is not installed."""


class StoreLostError(StoreError):
    """A crawl's database elsewhere cannot be reached, or it ended the session: what was not committed is lost."""


class DiskFullError(BowerbirdError):
    """The disk would not take what the crawl had to write; what was acknowledged is safe."""

    exit_code = 3


class PolicyError(BowerbirdError):
    """A policy name is not known."""


class InputFileError(BowerbirdError):
    """A file given by a person is missing or cannot be read."""


class TableError(BowerbirdError):
    """A table given by another program lacks a column, or holds what it should not."""


class EngineError(BowerbirdError):
    """Spark could not finish a job: no memory, no disk, a lost machine."""

    exit_code = 3


class ArchiveError(BowerbirdError):
    """A WARC file does not hold what the records say it holds."""
