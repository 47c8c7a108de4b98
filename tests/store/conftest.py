"""Both kinds of store: what is asked of one is asked of the other."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.store.stored import Maker, make_folder, new_schema

from bowerbird.store.folder import CrawlFolder

STORES = ("embedded", "postgres")


@pytest.fixture(scope="session", params=STORES)
def maker(request: pytest.FixtureRequest) -> Maker:
    """Makes a crawl folder with an empty database of one kind."""
    if request.param == "embedded":
        return make_folder
    server = request.getfixturevalue("postgres")
    return lambda root: make_folder(root, new_schema(server))


@pytest.fixture
def folder(maker: Maker, tmp_path: Path) -> CrawlFolder:
    return maker(tmp_path / "crawl")
