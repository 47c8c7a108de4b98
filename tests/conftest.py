"""Fixtures shared by all tests."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from bowerbird.lab.postgres_server import MISSING, PostgresServer, find_programs

settings.register_profile("unhurried", deadline=None)  # machines are noisy, and first calls compile
settings.load_profile("unhurried")

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data to measure against; tests that need it are skipped where it is absent."""
    folder = Path(os.environ.get("BOWERBIRD_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no shared data at {folder}: set BOWERBIRD_DATA to run this test")
    return folder


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A real PostgreSQL on loopback; tests that need it are skipped, and say why, where it is not installed."""
    if find_programs() is None:
        pytest.skip(MISSING)
    with PostgresServer() as server:
        yield server


@pytest.fixture(autouse=True, scope="session")
def unhurried() -> Iterator[None]:
    """A crawl command lowers its own priority; run within the tests it would lower theirs, with every call."""
    nice = os.nice
    os.nice = lambda increment: nice(0)
    yield
    os.nice = nice


@pytest.fixture(autouse=True, scope="session")
def interruptible() -> None:
    """A shell has its background jobs ignore Ctrl-C, and so would every program that the tests start and interrupt."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
