"""`bowerbird serve` as a process: its address, its errors, its end."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner
from tests.serve.conftest import demand_totals
from tests.serve.filling import make_folder

from bowerbird.cli.serve import listen, serve_command
from bowerbird.model.errors import ConfigError, FolderError

PROGRAM = "from bowerbird.cli.serve import serve_command; serve_command()"


@contextmanager
def serving(*arguments: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A service in a process of its own, and its address."""
    command = [sys.executable, "-c", PROGRAM, *map(str, arguments)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.search(r"http://\S+?(?=/$)", line.strip())
        assert found, line + (process.stderr.read() if process.stderr and process.poll() else "")
        yield process, found[0]
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def get(address: str, path: str) -> httpx.Response:
    transport = httpx.HTTPTransport(retries=5)
    with httpx.Client(transport=transport, timeout=20) as client:
        return client.get(address + path)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_serves_and_ends_cleanly_with_everything_written(folder: Path, number: int) -> None:
    with serving(folder, "--port", 0) as (process, address):
        assert address.startswith("http://127.0.0.1:")
        assert get(address, "/api/search?q=bowerbird").json()["total"] == 24
        assert get(address, "/dashboard").status_code == 200
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
    assert process.returncode in ({0} if number == signal.SIGINT else {0, -number})
    assert "Traceback" not in err
    assert "warning" not in err
    assert "bowerbird" not in out.replace("Ctrl-C ends it.", "")  # no access log: it would hold queries
    assert demand_totals(folder).asked == 1


def test_a_port_that_is_taken_is_said(folder: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(ConfigError, match=rf"port {port} of 127\.0\.0\.1 is taken.*--port"):
            listen("127.0.0.1", port)
        done = CliRunner().invoke(serve_command, [str(folder), "--port", str(port)])
        assert isinstance(done.exception, ConfigError)


def test_an_address_that_is_not_ours_is_said() -> None:
    with pytest.raises(ConfigError, match=r"no-such-host\.invalid"):
        listen("no-such-host.invalid", 0)
    with pytest.raises(ConfigError, match="cannot listen"):
        listen("192.0.2.1", 0)


def test_a_folder_that_is_no_crawl_is_said(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "none"):
        done = CliRunner().invoke(serve_command, [str(place)])
        assert isinstance(done.exception, FolderError)
        assert "bowerbird init" in str(done.exception)


def test_other_addresses_than_loopback_are_warned_of(tmp_path: Path) -> None:
    root = make_folder(tmp_path / "crawl")
    with serving(root, "--host", "0.0.0.0", "--port", 0, "--allow-host", "search.example") as (process, address):
        local = address.replace("0.0.0.0", "127.0.0.1")
        with httpx.Client(transport=httpx.HTTPTransport(retries=5)) as client:
            names = ("anything.example", "192.0.2.7:80", "[2001:db8::1]", "localhost", "search.example")
            codes = [client.get(local, headers={"host": name}).status_code for name in names]
            assert codes == [400, 200, 200, 200, 200]
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=20)
    assert "can be reached from other machines" in err


def test_loopback_answers_to_loopback_names_only(tmp_path: Path) -> None:
    root = make_folder(tmp_path / "crawl")
    with (
        serving(root, "--port", 0, "--allow-host", "search.example") as (_, address),
        httpx.Client(transport=httpx.HTTPTransport(retries=5)) as client,
    ):
        names = ("evil.example", "search.example")
        codes = [client.get(address, headers={"host": name}).status_code for name in names]
    assert codes == [400, 200]
