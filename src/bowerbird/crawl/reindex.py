"""Index what the index missed: pages committed after its last commit are read again from the archive."""

from __future__ import annotations

from collections.abc import Callable

from bowerbird.crawl.intake import make_document
from bowerbird.crawl.reading import Reader
from bowerbird.crawl.scope import Scope
from bowerbird.crawl.settings import Settings
from bowerbird.crawl.texts import read_archived
from bowerbird.index.protocol import SearchIndex
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import UrlState
from bowerbird.store.records import Version
from bowerbird.store.repository import Repository
from bowerbird.web.url import Canonicaliser

COMMIT_EVERY = 5000


def catch_up(
    repository: Repository,
    index: SearchIndex,
    settings: Settings,
    show: Callable[[int, int], None] | None = None,
) -> int:
    """Bring the index up to the last committed fetch; how many pages were indexed or removed."""
    through = int(str(repository.meta("indexed_through") or 0))
    if index.count() == 0:
        through = 0  # a new or lost index is built from the archive
    rows = [
        int(row)
        for (row,) in repository.connection.execute("SELECT DISTINCT url FROM fetches WHERE id > ?", (through,))
    ]
    if not rows:
        return 0
    reader = Reader(
        Canonicaliser(settings.urls),
        Scope(settings.scope_rules),
        agent=settings.crawl.product,
        hash_seed=repository.table.seed,
        max_links=0,
    )
    for done, row in enumerate(rows, 1):
        version = repository.version(row)
        searchable = (
            version is not None
            and not version.noindex
            and version.media in ("html", "text")
            and repository.table.columns["state"][row] == UrlState.FETCHED
        )
        if version is None or not searchable or not _index_page(repository, index, reader, version):
            index.remove(row)
        if done % COMMIT_EVERY == 0:
            index.commit()
            if show is not None:
                show(done, len(rows))
    index.commit()
    repository.commit(indexed_through=repository.last_fetch_id)
    return len(rows)


def _index_page(repository: Repository, index: SearchIndex, reader: Reader, version: Version) -> bool:
    result = read_archived(repository, version, repository.url(version.url))
    if result is None:
        return False
    report = reader.read(result)
    if report.outcome is not Outcome.OK:
        return False
    document = make_document(version.url, report, version.duplicate_of)
    document.anchors = " \n".join(repository.anchors(version.url))
    index.add(document, replace=True)
    return True
