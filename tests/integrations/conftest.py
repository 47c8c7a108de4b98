"""The service under test, and a client made from the published interface."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from tests.integrations.frontier_client import Client, Service, compile_stubs

Stubs = tuple[ModuleType, ModuleType]
Connect = Callable[[Service], Client]
PLAIN = "breadth-first+adaptive"  # bids that need no studies


@pytest.fixture(scope="session")
def stubs(tmp_path_factory: pytest.TempPathFactory) -> Stubs:
    return compile_stubs(tmp_path_factory.mktemp("stubs"))


@pytest.fixture
def connect(stubs: Stubs) -> Iterator[Connect]:
    """Clients that are closed at the end."""
    clients: list[Client] = []

    def make(service: Service) -> Client:
        clients.append(Client(*stubs, service.port))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    one = Service(tmp_path / "service", "--policy", PLAIN).start()
    yield one
    one.end()


@pytest.fixture
def client(service: Service, connect: Connect) -> Client:
    """A client of a service whose queues give without waiting."""
    found = connect(service)
    found.ask("SetDelay", delay_requestable=0)
    return found
