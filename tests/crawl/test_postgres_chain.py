"""A crawl in PostgreSQL of pages that each lead to the next only: one link that is lost ends it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from tests.crawl.crawling import QUICK, run_command, running_crawl, wait_for
from tests.store.stored import new_schema

from bowerbird.crawl.session import create_crawl
from bowerbird.lab.postgres_server import PostgresServer

PAGES = 80


class Chain(BaseHTTPRequestHandler):
    """Page n links to page n + 1."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:  # as the base class has it
        number = int(self.path[3:]) if self.path.startswith("/p/") else -1
        more = f'<a href="/p/{number + 1}">page {number + 1}</a>' if 0 <= number < PAGES - 1 else ""
        body = f"<title>page {number}</title><p>word{number} other{number * 7}</p>{more}".encode()
        self.send_response(200 if number >= 0 else 404)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def first() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Chain) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/p/0"
        server.shutdown()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_no_link_is_lost_with_the_coordinator(postgres: PostgresServer, tmp_path: Path, first: str) -> None:
    """It is killed with links in hand that its worker counts as told."""
    settings = {**QUICK, "politeness": {"delay_s": 0.02}, "crawl": {**QUICK["crawl"], "max_depth": PAGES + 1}}
    create_crawl(tmp_path / "crawl", [first], settings, new_schema(postgres))
    root = tmp_path / "crawl"
    worker = subprocess.Popen([sys.executable, "-m", "bowerbird", "work", str(root), "--workers", "1"])

    def fetched() -> int:
        return int(run_command("status", root, "--json").json()["fetched"])

    try:
        with running_crawl(root, "--workers", 0, "--policy", "breadth-first", "--quiet") as crawl:
            assert wait_for(lambda: fetched() > 5, 90)
            crawl.kill()
        ended = run_command("crawl", root, "--workers", 0, "--policy", "breadth-first", "--once", timeout_s=200)
        assert ended.code == 0, ended.err
    finally:
        worker.terminate()
        worker.wait(60)
    assert fetched() == PAGES
