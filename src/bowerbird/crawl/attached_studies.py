"""The studies in a crawl folder as those who look at it take them up: each with why it could not be used."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO

from bowerbird.crawl.study_kinds import KINDS, kind_of
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.repository import Repository


def open_studies(folder: CrawlFolder, methods: Iterable[str]) -> dict[str, IO[bytes]]:
    """The files of these methods, as far as there are any. Opened before the URLs are read, none is ahead of them."""
    paths = {method: folder.study(method) for method in methods}
    return {method: path.open("rb") for method, path in paths.items() if path.is_file()}


def attach_studies(repository: Repository, streams: dict[str, IO[bytes]]) -> dict[str, str]:
    """Put the studies into the repository, with all that explains them; notes by what they are of."""
    notes = {kind.name: "" for kind in KINDS}
    seed, hashes = repository.table.seed, repository.table.columns["hash"]
    for method, stream in streams.items():
        kind = kind_of(method)
        read = kind.read(repository.folder.study(method), seed, hashes, True, stream)
        kind.put(repository, read.study)
        notes[kind.name] = read.note
    return notes
