"""The process that serves a world for another one."""

from __future__ import annotations

import os
import pickle
import sys
import threading

import orjson

from bowerbird.lab.world.serving import Loop
from bowerbird.model.errors import BowerbirdError


def _raise_file_limit() -> None:
    """Thousands of hosts and connections need as many files as the system lets us have."""
    try:
        import resource
    except ImportError:
        return
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def serve_parent() -> None:
    """Serve the plan that comes on standard input, until that ends: also when the parent is killed."""
    try:
        _serve()
    except (BrokenPipeError, EOFError):  # the parent ended while we started: nobody is left to serve
        # what could not be said is still in a buffer, which the interpreter would try once more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _serve() -> None:
    _raise_file_limit()
    stdin, stdout = sys.stdin.buffer, sys.stdout.buffer

    def say(message: dict[str, object]) -> None:
        stdout.write(orjson.dumps(message) + b"\n")
        stdout.flush()

    plan = pickle.load(stdin)
    try:
        loop = Loop(plan)
    except BowerbirdError as error:
        say({"error": str(error)})
        return

    def listen() -> None:
        for line in stdin:
            if line == b"stop\n":
                break
            loop.flush()
            say({"flushed": True})
        loop.stop()

    def ready(hosts: list[str]) -> None:
        say({"hosts": hosts})
        threading.Thread(target=listen, name="parent", daemon=True).start()

    loop.run(ready)


if __name__ == "__main__":
    serve_parent()
