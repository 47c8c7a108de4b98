"""Connections and streams are bounded: dead clients are noticed, live ones may ask whether the service lives."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.integrations.conftest import PLAIN, Connect
from tests.integrations.frontier_client import Service

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS, PING, GOAWAY, ACK = 4, 6, 7, 1
WITHIN_S = 40.0


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[str], Service]]:
    """Starts a service with other bounds."""
    started: list[Service] = []

    def make(first: str) -> Service:
        started.append(Service(tmp_path / "service", "--policy", PLAIN, first=first).start())
        return started[-1]

    yield make
    for one in started:
        one.end()


def frame(kind: int, flags: int = 0, payload: bytes = b"") -> bytes:
    return struct.pack(">I", len(payload))[1:] + bytes((kind, flags)) + bytes(4) + payload


def read_frames(connection: socket.socket) -> Iterator[tuple[int, int, bytes]]:
    """Until the service closes the connection."""
    stream = connection.makefile("rb")
    while head := stream.read(9):
        yield head[3], head[4], stream.read(int.from_bytes(head[:3], "big"))


def test_a_client_that_answers_no_ping_is_let_go(start: Callable[[str], Service]) -> None:
    service = start("import bowerbird.integrations.urlfrontier.server as s\ns.PING_EVERY_S, s.PING_ANSWER_S = 1.0, 0.5")
    with socket.create_connection(("127.0.0.1", service.port), timeout=WITHIN_S) as dead:
        dead.sendall(PREFACE + frame(SETTINGS) + frame(SETTINGS, ACK))
        kinds = [kind for kind, flags, _ in read_frames(dead) if not flags & ACK]  # ends, or nobody let go of it
    assert kinds[-2:] == [PING, GOAWAY]


def test_a_client_may_ping_an_idle_connection(start: Callable[[str], Service]) -> None:
    service = start("import bowerbird.integrations.urlfrontier.server as s\ns.CLIENT_PING_EVERY_S = 0.0")
    with socket.create_connection(("127.0.0.1", service.port), timeout=WITHIN_S) as client:
        client.sendall(PREFACE + frame(SETTINGS) + frame(SETTINGS, ACK))
        answered = 0
        frames = read_frames(client)
        for n in range(20):
            client.sendall(frame(PING, 0, struct.pack(">Q", n)))
            for kind, flags, payload in frames:
                assert kind != GOAWAY, payload  # "too many pings"
                if kind == PING and flags & ACK:
                    answered += 1
                    break
    assert answered == 20


def test_streams_that_put_are_so_many_at_most(start: Callable[[str], Service], connect: Connect) -> None:
    service = start("import bowerbird.integrations.urlfrontier.read_ahead as s\ns.MOST_STREAMS = 3")
    client = connect(service)
    done = threading.Event()

    def slowly(n: int) -> Iterator[Any]:
        yield client.found(f"http://a.example/{n}")
        done.wait(WITHIN_S)

    streams = [client.stub.PutURLs(slowly(n), timeout=WITHIN_S) for n in range(3)]
    for stream in streams:
        assert next(stream).status == 0
    with pytest.raises(grpc.RpcError) as refused:
        client.put([client.found("http://a.example/more")])
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "3 streams" in str(refused.value.details())
    assert len(client.get()) == 3  # other calls are served
    done.set()
    for stream in streams:
        assert list(stream) == []
    assert client.put([client.found("http://a.example/more")]) == {"http://a.example/more": 0}
