"""The service over a crawl in PostgreSQL, whose server is restarted while it runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.serve.conftest import make_client
from tests.serve.filling import QUICK, SEED, fill, sample_pages

from bowerbird.crawl.session import create_crawl
from bowerbird.lab.postgres_server import MISSING, PostgresServer, find_programs
from bowerbird.serve.app import create_app
from bowerbird.serve.service import SEARCH_THREADS


@pytest.mark.skipif(find_programs() is None, reason=MISSING)
def test_searches_are_answered_again_after_a_restart_of_the_database(tmp_path: Path) -> None:
    with PostgresServer() as server:
        create_crawl(tmp_path / "crawl", [SEED], QUICK, server.url())
        fill(tmp_path / "crawl", sample_pages())
        word = sample_pages()[0].title.split()[0]
        with make_client(create_app(tmp_path / "crawl", rate_per_s=0), raise_server_exceptions=False) as client:
            ask = {"q": word}
            before = client.get("/api/search", params=ask)
            assert before.status_code == 200
            assert before.json()["results"]
            server.stop(at_once=True)
            assert client.get("/api/search", params=ask).status_code == 503
            server.start()
            for _ in range(2 * SEARCH_THREADS):  # each has a session of its own
                after = client.get("/api/search", params=ask)
                assert after.status_code == 200, after.text
                shown = [one["url"] for one in after.json()["results"]]
                assert shown == [one["url"] for one in before.json()["results"]]
