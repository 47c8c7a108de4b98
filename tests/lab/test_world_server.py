from __future__ import annotations

import gzip
import http.client
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bowerbird.lab.world import Faults, World, WorldServer, WorldSpec
from bowerbird.lab.world.serving import Plan, open_sockets
from bowerbird.lab.world.spec import DAY_S
from bowerbird.lab.world.wire import path_of
from bowerbird.model.clock import ManualClock, ScaledClock
from bowerbird.model.errors import BowerbirdError, ConfigError

SPEC = WorldSpec(seed=5, hosts=8, pages=300, validator_share=1.0, gzip_share=0.5)


def ask(host: str, path: str, method: str = "GET", **headers: str) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection(host, timeout=10)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): v for name, v in headers.items()})
        response = connection.getresponse()
        return response, response.read()
    finally:
        connection.close()


@pytest.fixture(scope="module")
def clock() -> ManualClock:
    return ManualClock(SPEC.start_s)


@pytest.fixture(scope="module")
def server(clock: ManualClock) -> Iterator[WorldServer]:
    with WorldServer(World(SPEC), clock, thread=True) as running:
        yield running


def test_what_is_served_is_what_the_world_says(server: WorldServer, clock: ManualClock) -> None:
    world = server.world
    places = sorted(world.reachable(clock.now()))[::10]
    places += [(host, path) for host in world.hosts for path in ("/robots.txt", "/feed.xml", "/no-such")]
    for host, path in places:
        response, body = ask(host, path)
        truth = world.page(host, path, clock.now())
        assert (response.status, body) == (truth.status, truth.body)
        assert response.getheader("Content-Type") == truth.content_type


def test_hosts_have_loopback_addresses_of_their_own(server: WorldServer) -> None:
    addresses = {host.rpartition(":")[0] for host in server.world.hosts}
    assert all(address.startswith("127.") for address in addresses)
    if sys.platform == "linux":
        assert len(addresses) == SPEC.hosts


def test_one_connection_serves_many_requests(server: WorldServer) -> None:
    connection = http.client.HTTPConnection(server.world.hosts[0], timeout=10)
    connection.request("GET", "/")
    connection.getresponse().read()
    first = connection.sock
    for _ in range(5):
        connection.request("GET", "/")
        assert connection.getresponse().read()
        assert connection.sock is first
    connection.close()
    response, _ = ask(server.world.hosts[0], "/", Connection="close")
    assert response.getheader("Connection") == "close"


def test_head_has_the_headers_of_get_and_no_body(server: WorldServer) -> None:
    got, body = ask(server.world.hosts[0], "/")
    head, nothing = ask(server.world.hosts[0], "/", "HEAD")
    assert nothing == b""
    assert head.getheader("Content-Length") == str(len(body))
    assert head.getheader("ETag") == got.getheader("ETag")
    assert ask(server.world.hosts[0], "/", "POST")[0].status == 405


def test_gzip_where_it_is_accepted(server: WorldServer, clock: ManualClock) -> None:
    packed = 0
    for host in server.world.hosts:
        response, body = ask(host, "/", Accept_Encoding="gzip, br")
        if response.getheader("Content-Encoding") == "gzip":
            packed += 1
            assert "Accept-Encoding" in (response.getheader("Vary") or "")
            body = gzip.decompress(body)
        assert body == server.world.page(host, "/", clock.now()).body
        assert ask(host, "/")[0].getheader("Content-Encoding") is None
    assert 0 < packed < SPEC.hosts


def test_validators_give_304_until_the_page_changes(server: WorldServer, clock: ManualClock) -> None:
    world = server.world
    page = next(p for p in range(SPEC.pages) if world.versions(p, clock.now(), clock.now() + DAY_S))
    host, path = world.location(page)
    response, _ = ask(host, path)
    tag, modified = response.getheader("ETag") or "", response.getheader("Last-Modified") or ""
    for headers in (
        {"If_None_Match": tag},
        {"If_None_Match": f'"other", {tag}'},
        {"If_Modified_Since": modified},
        {"If_None_Match": tag, "If_Modified_Since": "Thu, 01 Jan 1970 00:00:00 GMT"},
    ):
        again, body = ask(host, path, **headers)
        assert (again.status, body) == (304, b"")
        assert again.getheader("ETag") == tag
    assert ask(host, path, If_None_Match='"other"', If_Modified_Since=modified)[0].status == 200
    assert ask(host, path, If_Modified_Since="nonsense")[0].status == 200

    change = world.versions(page, clock.now(), clock.now() + DAY_S)[0]
    clock.advance(change.at_s + 1 - clock.now())
    for headers in ({"If_None_Match": tag}, {"If_Modified_Since": modified}):
        fresh, body = ask(host, path, **headers)
        assert fresh.status == 200
        assert body == world.page(host, path, clock.now()).body
        assert fresh.getheader("ETag") != tag


def test_redirects_gone_and_missing_over_http(server: WorldServer, clock: ManualClock) -> None:
    world = server.world
    redirect = next(p for p in range(SPEC.pages) if world.page(*world.location(p), 0.0).location)
    response, _ = ask(*world.location(redirect))
    assert response.status in (301, 302)
    assert response.getheader("Location") == world.page(*world.location(redirect), 0.0).location


def test_not_http_is_answered_with_400(server: WorldServer) -> None:
    address, _, port = server.world.hosts[0].rpartition(":")
    with socket.create_connection((address, int(port)), timeout=5) as sock:
        sock.sendall(b"what is this\r\n\r\n")
        assert sock.recv(100).startswith(b"HTTP/1.1 400")


def test_a_request_may_come_in_pieces_and_two_at_once(server: WorldServer) -> None:
    address, _, port = server.world.hosts[0].rpartition(":")
    with socket.create_connection((address, int(port)), timeout=5) as sock:
        sock.sendall(b"GET /no HTTP/1.1\r\nHo")
        time.sleep(0.02)
        sock.sendall(b"st: x\r\n\r\nGET /no HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        received = b""
        while data := sock.recv(65536):
            received += data
    assert received.count(b"HTTP/1.1 404") == 2


def test_the_log_tells_who_came_when() -> None:
    with WorldServer(World(SPEC), thread=True, faults=Faults(latency_ms=150)) as server:
        host = server.world.hosts[2]
        threads = [threading.Thread(target=ask, args=(host, f"/x{i}")) for i in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        ask(server.world.hosts[1], "/")
        log = server.log()
    assert sorted(access.path for access in log) == ["/", "/x0", "/x1", "/x2"]
    crowd = [access for access in log if access.host == host]
    assert {access.status for access in crowd} == {404}
    assert max(access.in_flight for access in crowd) == 3
    assert max(access.connections for access in crowd) == 3
    assert all(access.ended_s - access.began_s > 0.14 for access in log)
    alone = next(access for access in log if access.host != host)
    assert (alone.in_flight, alone.connections, alone.status) == (1, 1, 200)


def test_faults_are_503_and_resets() -> None:
    faults = Faults(error_share=0.4, drop_share=0.2, retry_after_s=3)
    with WorldServer(World(SPEC), thread=True, faults=faults) as server:
        statuses: list[int] = []
        for _ in range(100):
            try:
                response, _ = ask(server.world.hosts[0], "/")
            except (ConnectionError, http.client.HTTPException):
                statuses.append(0)
                continue
            statuses.append(response.status)
            if response.status == 503:
                assert response.getheader("Retry-After") == "3"
        assert [access.status for access in server.log()] == statuses
    assert 5 < statuses.count(0) < 40
    assert 15 < statuses.count(503) < 55
    assert statuses.count(200) > 20


def test_a_process_of_its_own_serves_the_same_bytes_in_its_time(tmp_path: Path) -> None:
    clock = ScaledClock(speed=86_400.0, start_s=SPEC.start_s)
    log_path = tmp_path / "access.jsonl"
    with WorldServer(World(SPEC), clock, log_path=log_path) as server:
        assert server.pid not in (None, os.getpid())
        frozen_path = "/robots.txt"
        host = server.world.hosts[0]
        assert ask(host, frozen_path)[1] == server.world.page(host, frozen_path, 0.0).body
        seen = set()
        for _ in range(3):
            seen.add(ask(host, "/")[0].getheader("Date"))
            time.sleep(0.05)
        assert len(seen) == 3
        assert [access.path for access in server.log()] == ["/robots.txt", "/", "/", "/"]
    assert log_path.read_text().count("\n") == 4
    with pytest.raises(OSError):
        ask(host, "/")


def test_frozen_bytes_are_equal_in_both_processes() -> None:
    world = World(WorldSpec(seed=9, hosts=3, pages=60, frozen=True))
    with WorldServer(world, addresses="ports") as server:
        assert {host.rpartition(":")[0] for host in server.world.hosts} == {"127.0.0.1"}
        for host, path in sorted(server.world.reachable(0.0))[::3]:
            assert ask(host, path)[1] == server.world.page(host, path, 0.0).body


def test_ports_in_use_and_wrong_options_are_explained() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.1.1" if sys.platform == "linux" else "127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=str(port)), WorldServer(World(SPEC), base_port=port):
            pass
    with pytest.raises(ConfigError, match="many"):
        open_sockets(1, 0, "elsewhere")
    with WorldServer(World(SPEC), thread=True, keep_log=False) as server, pytest.raises(BowerbirdError):
        server.log()


def test_many_hosts_go_on_to_the_next_port() -> None:
    sockets = open_sockets(255, 0, "many")
    names = [sock.getsockname() for sock in sockets]
    for sock in sockets:
        sock.close()
    assert len(set(names)) == 255
    assert all(address.startswith("127.") for address, _ in names)
    if sys.platform == "linux":
        assert len({port for _, port in names}) == 2


def test_targets_may_be_whole_urls() -> None:
    assert path_of("http://a.example/b?c#d") == "/b?c"
    assert path_of("http://a.example") == "/"
    assert path_of("/x") == "/x"


def test_ctrl_c_while_it_starts_is_quiet() -> None:
    """The world is large enough that its process is still making it when the signal comes."""
    command = [sys.executable, "-m", "bowerbird.lab.world", "--pages", "400000", "--hosts", "100", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        end = time.monotonic() + 60
        while not (child := children.read_text().strip()) and time.monotonic() < end:
            time.sleep(0.02)
        assert child
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (130, b"", b"")
    end = time.monotonic() + 30
    while Path(f"/proc/{child}").exists() and time.monotonic() < end:  # it is making pages: it looks up now and then
        time.sleep(0.05)
    assert not Path(f"/proc/{child}").exists()


@pytest.mark.parametrize("plan", [b"", pickle.dumps(Plan(spec=SPEC, clock=ScaledClock(1.0, 0.0)))])
def test_the_serving_process_is_quiet_when_its_parent_is_gone(plan: bytes) -> None:
    command = [sys.executable, "-m", "bowerbird.lab.world.child"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdout.close()
        process.stdin.write(plan)
        process.stdin.close()
        assert process.stderr.read() == b""
        assert process.wait(30) == 0


def test_the_command_prints_seeds_and_ends_with_ctrl_c() -> None:
    command = [sys.executable, "-m", "bowerbird.lab.world", "--hosts", "4", "--pages", "80", "--seed", "7"]
    process = subprocess.Popen(
        [*command, "--speed", "600", "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        assert process.stdout
        url = process.stdout.readline().decode().strip()
        host = url.removeprefix("http://").removesuffix("/")
        assert ask(host, "/")[0].status == 200
        process.send_signal(signal.SIGINT)
        assert process.wait(15) == 0
    finally:
        process.kill()
        process.communicate()
    with pytest.raises(OSError):
        ask(host, "/")
