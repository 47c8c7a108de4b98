"""A small crawl folder, the application over it, a real server, and a browser."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import uvicorn
from fastapi import FastAPI
from fastapi.testclient import TestClient
from tests.serve.filling import fill, make_folder, sample_pages

from bowerbird.cli.serve import listen
from bowerbird.demand.log import DemandLog, Totals
from bowerbird.serve.app import create_app

if TYPE_CHECKING:
    from playwright.sync_api import Browser

BASE = "http://127.0.0.1"
ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made once; tests work on copies."""
    root = make_folder(tmp_path_factory.mktemp("filled") / "crawl")
    fill(root, sample_pages())
    return root


@pytest.fixture
def folder(filled: Path, tmp_path: Path) -> Path:
    """A crawl folder of one's own."""
    return Path(shutil.copytree(filled, tmp_path / "crawl"))


def make_client(app: FastAPI, **options: Any) -> TestClient:
    return TestClient(app, base_url=BASE, follow_redirects=False, **options)


@pytest.fixture
def client(folder: Path) -> Iterator[TestClient]:
    """The application without a network, with no limit of rate."""
    with make_client(create_app(folder, rate_per_s=0, record_every_s=0.05)) as made:
        yield made


def read_demand(folder: Path) -> DemandLog:
    return DemandLog.open(folder / "demand.db", write=False, min_occurrences=1)


def demand_totals(folder: Path) -> Totals:
    with read_demand(folder) as log:
        return log.totals()


def wait_for(condition: Callable[[], bool], timeout_s: float = 10.0) -> bool:
    """Poll; whether it came true in time."""
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


@contextmanager
def served(app: Any) -> Iterator[str]:
    """An ASGI application on a loopback port; its address without the last slash."""
    listener = listen("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        assert wait_for(lambda: server.started)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(timeout=15)
        listener.close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Headless Chromium, one for all tests of a module: while it is open, its event loop holds the main thread."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no Chromium on this machine: install it (apt install chromium) to run the browser tests")
    with playwright.sync_playwright() as running:
        made = running.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield made
        made.close()


@pytest.fixture(scope="session")
def screenshots() -> Path:
    """Where pictures of the pages are kept."""
    folder = ROOT / "out" / "screenshots"
    folder.mkdir(parents=True, exist_ok=True)
    return folder
