"""Crawl folders for the tests of the service, filled through the program's own archive, database and index."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path

from bowerbird.crawl.session import create_crawl
from bowerbird.crawl.texts import ArchiveTexts
from bowerbird.index.protocol import Document
from bowerbird.index.tantivy_index import TantivyIndex
from bowerbird.model.outcome import Outcome
from bowerbird.model.url_state import FetchKind, UrlState
from bowerbird.store.archive import ArchiveWriter
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.records import FetchRecord, Version
from bowerbird.store.repository import Repository

SEED = "http://seed.example/"
AT = time.time() - 200.0
QUICK: dict[str, dict[str, object]] = {
    "crawl": {"contact": "crawl-master@example.org", "scope": "anywhere"},
    "network": {"allow_addresses": ["loopback"]},
    "demand": {"min_occurrences": 1},
}


@dataclass(frozen=True, slots=True)
class Page:
    """A page to put in. `copy_of` is the URL it is a near-duplicate of."""

    url: str
    title: str
    text: str
    copy_of: str | None = None
    fetched_at: float = AT
    language: str = "en"


def make_folder(root: Path) -> Path:
    """A crawl that has fetched nothing."""
    create_crawl(root, [SEED], QUICK)
    return root


def fill(root: Path, pages: Iterable[Page]) -> None:
    """Put pages into archive, database and index."""
    folder = CrawlFolder(root)
    repository = Repository(folder, write=True)
    index = TantivyIndex.open(folder.index, write=True, texts=ArchiveTexts(repository))
    archive = ArchiveWriter(folder.archive, f"test{repository.last_fetch_id}", software="test", user_agent="test")
    for page in pages:
        _put(repository, index, archive, page)
    archive.close()
    last = repository.commit()
    index.commit()
    repository.commit(indexed_through=last)
    index.close()
    repository.close()


def _put(repository: Repository, index: TantivyIndex, archive: ArchiveWriter, page: Page) -> None:
    row = int(repository.add_urls([page.url], at=page.fetched_at)[0][0])
    copy_of = None if page.copy_of is None else int(repository.add_urls([page.copy_of], at=page.fetched_at)[0][0])
    html = f"<!doctype html><title>{escape(page.title)}</title><p>{escape(page.text)}</p>".encode()
    place = archive.write_exchange(
        url=page.url,
        fetched_at=page.fetched_at,
        remote_ip="127.0.0.1",
        request_block=b"GET / HTTP/1.1\r\n\r\n",
        header_block=b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n",
        raw_body=html,
        metadata={},
    )
    file = repository.archive_file(place.file)
    repository.note_archive_end(file, place.offset + place.length)
    fetch = FetchRecord(
        row, FetchKind.NEW, page.fetched_at, 1.0, 0.5, "{}", page.fetched_at, Outcome.OK, UrlState.FETCHED
    )
    fetch.status, fetch.wire_bytes, fetch.content_hash = 200, len(html), row + 1
    fetch.file, fetch.offset, fetch.length = file, place.offset, place.length
    repository.record(fetch)
    version = Version(row, "", "", None, page.fetched_at, "html", False, copy_of, file, place.offset, place.length)
    repository.record_version(version)
    host = page.url.split("/")[2]
    index.add(
        Document(row, page.url, page.title, page.text, "", "", host, page.language, page.fetched_at, copy_of),
        replace=True,
    )


HOSTILE_TITLE = "<script>alert('title')</script> & \"hostile\""
HOSTILE_TEXT = "<img src=x onerror=alert(1)> the hostile words 'and' \"quotes\" </p><script>alert(2)</script>"


def sample_pages() -> list[Page]:
    """Bowers and birds: enough for three pages of results, copies, and one page that means harm."""
    birds = [
        Page(
            f"http://birds.example/kinds/bird-{number}",
            f"Bowerbird number {number}",
            f"A bowerbird builds a bower of twigs. This is bird {number}. "
            + "Blue things lie before it. " * (number % 5),
        )
        for number in range(1, 25)
    ]
    first = Page("https://copies.example/original", "Plumage guide", "Plumage of the satin kind is glossy and dark.")
    copies = [
        Page(f"https://copies.example/copy-{number}", "Plumage guide", first.text, copy_of=first.url)
        for number in (1, 2)
    ]
    hostile = Page("http://bad.example/page?x=1&y=<b>", HOSTILE_TITLE, HOSTILE_TEXT)
    script = Page("javascript:alert(document.domain)//x/", "Scriptword page", "A scriptword address of another scheme.")
    return [*birds, first, *copies, hostile, script]
