"""A server that sends exactly the bytes a test tells it to, well-formed or not."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable
from types import TracebackType

Script = Callable[[socket.socket], None]


def answer(
    body: bytes = b"<p>bower</p>",
    status: str = "200 OK",
    headers: Iterable[str] = ("Content-Type: text/html",),
) -> bytes:
    """A well-formed response."""
    lines = [f"HTTP/1.1 {status}", *headers, f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


def reset(connection: socket.socket) -> None:
    """Close with a TCP reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


class HostileServer:
    """Answers each path as told: bytes are sent and the connection kept open, a script does what it likes.

    A script may sleep by `server.pause(seconds)`, which ends early when the server closes; the
    connection closes when a script returns. `requests` are the request blocks as received.
    """

    def __init__(self) -> None:
        self.routes: dict[str, bytes | Script] = {}
        self.greeting = b""  # sent before any request is read
        self.connections = 0
        self.requests: list[bytes] = []
        self._stopping = threading.Event()
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port: int = self._listener.getsockname()[1]
        self._accepting = threading.Thread(target=self._accept, daemon=True)
        self._accepting.start()

    def __enter__(self) -> HostileServer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def pause(self, seconds: float) -> bool:
        """Sleep; False when the server is closing and the script should end."""
        return not self._stopping.wait(seconds)

    def close(self) -> None:
        self._stopping.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._accepting.join(5)
        for thread in self._threads:
            thread.join(5)

    def _accept(self) -> None:
        while not self._stopping.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.add(connection)
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError), connection:
            connection.sendall(self.greeting)
            while request := self._read_request(connection):
                self.requests.append(request)
                path = request.split(b" ", 2)[1].decode("latin-1")
                action = self.routes.get(path, answer(b"no such page", "404 Not Found"))
                if callable(action):
                    action(connection)
                    break
                connection.sendall(action)
        self._open.discard(connection)

    def _read_request(self, connection: socket.socket) -> bytes:
        received = b""
        while not received.endswith(b"\r\n\r\n"):
            data = connection.recv(65536)
            if not data:
                return b""
            received += data
        return received


def send_and_close(data: bytes) -> Script:
    """A script that sends these bytes and closes."""
    return lambda connection: connection.sendall(data)


def wait_until(condition: Callable[[], bool], timeout_s: float = 5.0) -> bool:
    """Poll a condition of another thread; whether it came true in time."""
    end = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True
