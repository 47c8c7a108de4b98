"""The studies in a crawl folder as those who look at it take them up: each with why it could not be used."""

from __future__ import annotations

from collections.abc import Iterable
from typing import IO

from bowerbird.appraise.policy import HUB_STUDIED, REFRESH_STUDIED
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.hub_study_file import read_hub_study
from bowerbird.store.refresh_study_file import read_refresh_study
from bowerbird.store.repository import Repository
from bowerbird.store.study_file import read_study


def open_studies(folder: CrawlFolder, methods: Iterable[str]) -> dict[str, IO[bytes]]:
    """The files of these methods, as far as there are any. Opened before the URLs are read, none is ahead of them."""
    paths = {method: folder.study(method) for method in methods}
    return {method: path.open("rb") for method, path in paths.items() if path.is_file()}


def attach_studies(repository: Repository, streams: dict[str, IO[bytes]]) -> dict[str, str]:
    """Put the studies into the repository, with all that explains them; notes by what they are of."""
    notes = {"frontier": "", "refresh": "", "hubs": ""}
    seed, hashes = repository.table.seed, repository.table.columns["hash"]
    for method, stream in streams.items():
        path = repository.folder.study(method)
        if method in REFRESH_STUDIED:
            of_pages = read_refresh_study(path, seed, hashes, details=True, stream=stream)
            repository.refresh_study, notes["refresh"] = of_pages.study, of_pages.note
        elif method in HUB_STUDIED:
            of_hubs = read_hub_study(path, seed, hashes, stream=stream)
            repository.hub_study, notes["hubs"] = of_hubs.study, of_hubs.note
        else:
            read = read_study(path, seed, hashes, reasons=True, stream=stream)
            repository.study, notes["frontier"] = read.study, read.note
    return notes
