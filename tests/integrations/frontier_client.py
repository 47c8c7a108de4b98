"""A client of the URLFrontier interface that shares nothing with the service: its stubs are made by protoc."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import grpc
from grpc_tools import protoc

PROTO = Path(__file__).with_name("urlfrontier.proto")
CALL_S = 30.0


def compile_stubs(folder: Path) -> tuple[ModuleType, ModuleType]:
    """The message and the stub modules that protoc makes of the interface."""
    code = protoc.main(
        ["protoc", f"-I{PROTO.parent}", f"--python_out={folder}", f"--grpc_python_out={folder}", PROTO.name]
    )
    assert code == 0
    sys.path.insert(0, str(folder))
    try:
        return importlib.import_module("urlfrontier_pb2"), importlib.import_module("urlfrontier_pb2_grpc")
    finally:
        sys.path.remove(str(folder))


class Service:
    """`bowerbird frontier-service` in a process of its own."""

    def __init__(self, root: Path, *options: str, first: str = "") -> None:
        self.root = root
        self.first = first  # lines of Python that come before it
        self.options = options
        self.process: subprocess.Popen[str] | None = None
        self.port = 0

    def start(self) -> Service:
        code = f"{self.first}\nfrom bowerbird.cli.main import main\nmain()"
        command = [sys.executable, "-c", code, "frontier-service", str(self.root), "--port", "0", *self.options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        found = re.search(r":(\d+)$", line.strip())
        assert found, (line, self.process.stderr.read() if self.process.stderr else "")
        self.port = int(found[1])
        return self

    def kill(self) -> None:
        """As a machine that loses power would."""
        assert self.process is not None
        self.process.kill()
        self.process.communicate()

    def stop(self) -> tuple[int, str]:
        """Ctrl-C: how it ended, and what it said."""
        assert self.process is not None
        self.process.terminate()
        _, said = self.process.communicate(timeout=30)
        return self.process.returncode, said

    def end(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill()


class Client:
    """Calls by name, with the messages of the generated module; `called` has the names of all calls that were made."""

    def __init__(self, pb: ModuleType, stubs: ModuleType, port: int) -> None:
        self.pb = pb
        self.called: set[str] = set()
        self.channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        grpc.channel_ready_future(self.channel).result(timeout=CALL_S)
        self.stub = stubs.URLFrontierStub(self.channel)

    def close(self) -> None:
        self.channel.close()

    def ask(self, name: str, request: Any = None, **fields: Any) -> Any:
        """A call with one answer."""
        self.called.add(name)
        method = self.pb.DESCRIPTOR.services_by_name["URLFrontier"].methods_by_name[name]
        if request is None:
            request = getattr(self.pb, method.input_type.name)(**fields)
        answer = getattr(self.stub, name)(request, timeout=CALL_S)
        return list(answer) if method.server_streaming else answer

    def refusal(self, name: str, **fields: Any) -> grpc.StatusCode:
        """The status of a call that must fail."""
        try:
            self.ask(name, **fields)
        except grpc.RpcError as error:
            return error.code()
        raise AssertionError(f"{name} {fields} was answered")

    def info(self, url: str, key: str = "", crawl: str = "", **metadata: str) -> Any:
        found = self.pb.URLInfo(url=url, key=key, crawlID=crawl)
        for name, value in metadata.items():
            found.metadata[name].values.append(value)
        return found

    def found(self, url: str, key: str = "", crawl: str = "", **metadata: str) -> Any:
        info = self.info(url, key, crawl, **metadata)
        return self.pb.URLItem(discovered=self.pb.DiscoveredURLItem(info=info), ID=url)

    def known(self, url: str, refetch: int = 0, key: str = "", crawl: str = "", **metadata: str) -> Any:
        info = self.info(url, key, crawl, **metadata)
        return self.pb.URLItem(known=self.pb.KnownURLItem(info=info, refetchable_from_date=refetch), ID=url)

    def put(self, items: Iterable[Any]) -> dict[str, int]:
        """What was said of each item, by its ID."""
        self.called.add("PutURLs")
        return {ack.ID: ack.status for ack in self.stub.PutURLs(iter(items), timeout=CALL_S)}

    def put_batches(self, *batches: Iterable[Any]) -> list[list[int]]:
        self.called.add("PutDiscovered")
        messages = [self.pb.DiscoveredBatch(ID=str(n), items=items) for n, items in enumerate(batches)]
        acks = list(self.stub.PutDiscovered(iter(messages), timeout=CALL_S))
        assert [ack.ID for ack in acks] == [message.ID for message in messages]
        return [list(ack.statuses) for ack in acks]

    def get(self, crawl: str | None = "", **fields: Any) -> list[str]:
        """URLs handed out; of any crawl where that is None."""
        return [info.url for info in self.get_infos(crawl, **fields)]

    def get_infos(self, crawl: str | None = "", **fields: Any) -> list[Any]:
        chosen = {"anyCrawlID": self.pb.AnyCrawlID()} if crawl is None else {"crawlID": crawl}
        return self.ask("GetURLs", **chosen, **fields)

    def get_within(self, seconds: float, crawl: str | None = "", **fields: Any) -> list[str]:
        """The same, asked again until there is something."""
        end = time.monotonic() + seconds
        while not (urls := self.get(crawl, **fields)) and time.monotonic() < end:
            time.sleep(0.05)
        return urls
