"""What was acknowledged survives `kill -9`: URLs, leases, delays, blocks, limits, and whether the service is active."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from tests.crawl.crawling import run_command
from tests.integrations.conftest import PLAIN, Connect
from tests.integrations.frontier_client import Client, Service

LEASE_S = 6


def test_leases_delays_blocks_limits_and_the_active_state_survive(
    service: Service, connect: Connect, client: Client
) -> None:
    hosts = ("leased", "waits", "blocked", "limited", "free")
    client.put([client.found(f"http://{host}.example/{n}") for host in hosts for n in range(3)])
    client.ask("SetDelay", key="waits.example", delay_requestable=3600)
    client.ask("BlockQueueUntil", key="blocked.example", time=int(time.time()) + 3600)
    client.ask("SetCrawlLimit", key="limited.example", limit=1)
    began = time.monotonic()
    leased = client.get(key="leased.example", max_urls_per_queue=2, delay_requestable=LEASE_S)
    assert len(leased) == 2
    assert client.get(key="waits.example", max_urls_per_queue=1, delay_requestable=600) == ["http://waits.example/0"]
    (limited,) = client.get(key="limited.example", delay_requestable=600)
    client.put([client.known(limited)])
    client.ask("SetActive", state=False)
    service.kill()

    service.start()
    again = connect(service)
    assert not again.ask("GetActive").state
    assert again.get() == []
    again.ask("SetActive", state=True)
    stats = again.ask("GetStats")
    given = again.get(delay_requestable=600)
    in_time = time.monotonic() - began < LEASE_S - 0.5  # on a machine with better things to do, a start takes longer
    assert (stats.size, stats.counts["completed"]) == (14, 1)
    assert stats.inProcess == 3 or not in_time
    back = [url for url in given if url in leased]
    assert not (back and in_time)
    assert sorted(set(given) - set(back)) == [
        *(f"http://free.example/{n}" for n in range(3)),
        "http://leased.example/2",
    ]
    assert "blocked.example" not in again.ask("ListQueues").values
    # what was with a fetcher when the service died comes back when its lease ends, and not before
    while len(back) < 2 and time.monotonic() - began < LEASE_S + 10:
        if found := again.get(key="leased.example", delay_requestable=600):
            assert time.monotonic() - began >= LEASE_S - 1
            back += found
        time.sleep(0.1)
    assert sorted(back) == sorted(leased)


def test_nothing_acknowledged_is_lost_and_nothing_is_handed_out_twice(tmp_path: Path, connect: Connect) -> None:
    """Three times a service dies in the middle of streams that put URLs in and get them out."""
    service = Service(tmp_path / "service", "--policy", PLAIN)
    acknowledged: set[str] = set()
    done: set[str] = set()
    handed_out: list[str] = []
    try:
        for turn in range(3):
            client = connect(service.start())
            client.ask("SetDelay", delay_requestable=0)
            stop = threading.Event()

            def items(turn: int = turn, client: Client = client, stop: threading.Event = stop) -> Iterator[Any]:
                for n in range(100_000):
                    if stop.is_set():
                        return
                    yield client.found(f"http://h{n % 40}.example/{turn}/{n}")

            def put(client: Client = client, items: Any = items) -> None:
                try:
                    for ack in client.stub.PutURLs(items()):
                        if ack.status == 0:
                            acknowledged.add(ack.ID)
                except grpc.RpcError:
                    pass  # it died

            def fetch(client: Client = client, stop: threading.Event = stop) -> None:
                try:
                    while not stop.is_set():
                        urls = client.get(max_urls_per_queue=5, delay_requestable=3600)
                        handed_out.extend(urls)
                        done.update(client.put([client.known(url) for url in urls[::2]]))
                except grpc.RpcError:
                    pass

            threads = [threading.Thread(target=put), threading.Thread(target=fetch)]
            for thread in threads:
                thread.start()
            time.sleep(1.5)
            service.kill()
            stop.set()
            for thread in threads:
                thread.join(20)
        client = connect(service.start())
        listed = {}
        for start in range(0, 400_000, 5_000):
            part = client.ask("ListURLs", start=start, size=5_000)
            for item in part:
                which = item.known if item.HasField("known") else item.discovered
                listed[which.info.url] = item.WhichOneof("item")
            if len(part) < 5_000:
                break
        assert len(acknowledged) > 200
        assert acknowledged <= set(listed)
        assert done
        assert {url for url in done if listed[url] != "known"} == set()
        assert len(handed_out) == len(set(handed_out))  # an hour's leases held through every death
        stats = client.ask("GetStats")
        assert stats.counts["completed"] >= len(done)
        assert stats.size + stats.counts["completed"] == len(listed)
    finally:
        service.end()


def test_a_clean_end_leaves_a_folder_that_opens_at_once(service: Service, connect: Connect, client: Client) -> None:
    client.put([client.found("http://a.example/")])
    code, said = service.stop()
    assert (code, said) == (0, "")
    service.start()
    assert connect(service).ask("CountURLs").value == 1


def test_a_port_that_is_taken_is_said_in_our_words_and_leaves_no_folder(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = run_command("frontier-service", tmp_path / "new", "--port", port)
    assert done.code == 2
    assert done.err == (
        f"bowerbird: port {port} of 127.0.0.1 is taken by another program. Choose another with --port; 0 takes any "
        "free one.\n"
    )
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("same_port", [True, False])
def test_a_second_service_is_told_that_one_has_the_folder(service: Service, same_port: bool) -> None:
    assert service.process is not None
    done = run_command("frontier-service", service.root, "--port", service.port if same_port else 0)
    assert done.code == 2
    assert done.err.startswith(
        f"bowerbird: {service.root / 'DEFAULT'}: the frontier service (pid {service.process.pid}) has it already."
    )
    assert len(done.err.splitlines()) == 1
