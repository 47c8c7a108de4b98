"""An index that was lost is built again from the archive, however often that is cut short."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.crawl.conftest import Crawled

from bowerbird.crawl import reindex
from bowerbird.crawl.reindex import catch_up
from bowerbird.crawl.settings import load_settings
from bowerbird.crawl.texts import ArchiveTexts
from bowerbird.index.tantivy_index import TantivyIndex
from bowerbird.store.folder import CrawlFolder
from bowerbird.store.repository import Repository

EVERY = 100


class CutShortError(Exception):
    pass


def _cut_short(done: int, total: int) -> None:
    raise CutShortError(done, total)


def _try_once(folder: CrawlFolder, *, whole: bool) -> tuple[int, list[int]]:
    """Catch up as a start does; how many pages were gone through, and what is in the index then."""
    repository = Repository(folder, write=True)
    index = TantivyIndex.open(folder.index, write=True, texts=ArchiveTexts(repository))
    try:
        done = catch_up(repository, index, load_settings(folder.config), None if whole else _cut_short)
    except CutShortError:
        done = EVERY
    finally:
        pages = index.pages().tolist()
        index.close()
        repository.close()
    return done, pages


def test_a_lost_index_is_built_again_though_it_is_cut_short(
    crawled: Crawled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = CrawlFolder(tmp_path / "crawl")
    shutil.copytree(crawled.root, folder.root)
    wanted = sorted(crawled.left.indexed())
    assert len(wanted) > 3 * EVERY
    shutil.rmtree(folder.index)
    monkeypatch.setattr(reindex, "COMMIT_EVERY", EVERY)
    found: list[int] = []
    for _ in range(2):
        done, pages = _try_once(folder, whole=False)
        assert done == EVERY
        assert len(found) < len(pages) < len(wanted)
        found = pages
    gone_through, pages = _try_once(folder, whole=True)
    assert pages == wanted
    fetched = len(set(crawled.left.rows("SELECT url FROM fetches")))
    assert gone_through == fetched - 2 * EVERY  # what was done is not done again
    assert _try_once(folder, whole=True) == (0, wanted)
