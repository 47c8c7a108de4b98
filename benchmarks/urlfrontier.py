"""URLs a second through the frontier service, which has one core; the client has another.

    python benchmarks/urlfrontier.py [--urls 200000] [--policy breadth-first+adaptive] [--json FILE]

Each step is timed by the client's clock from the first message to the last acknowledgement; beside it stands the time
of the service's core that a URL took, which is what a faster client would find.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import grpc
import psutil

from bowerbird.integrations.urlfrontier.messages import CLASSES, SERVICE

STREAMS = 4
BATCH = 100
HOSTS = 2000


class Client:
    def __init__(self, channel: Any, process: psutil.Process) -> None:
        self.channel = channel
        self.process = process
        self.results: list[dict[str, Any]] = []

    async def put(self, call: str, streams: list[list[bytes]]) -> None:
        async def one(messages: list[bytes]) -> None:
            stream = self.channel.stream_stream(f"/{SERVICE}/{call}")()

            async def send() -> None:
                for message in messages:
                    await stream.write(message)
                await stream.done_writing()

            async def read() -> None:
                while await stream.read() is not grpc.aio.EOF:
                    pass

            await asyncio.gather(send(), read())

        await asyncio.gather(*(one(messages) for messages in streams))

    async def get(self, per_queue: int, queues: int) -> list[Any]:
        params = CLASSES["GetParams"](max_urls_per_queue=per_queue, max_queues=queues, delay_requestable=3600)
        stream = self.channel.unary_stream(f"/{SERVICE}/GetURLs")(params.SerializeToString())
        found = []
        while (message := await stream.read()) is not grpc.aio.EOF:
            found.append(message)
        return found

    async def measure(self, name: str, count: int, work: Any) -> Any:
        cpu, began = sum(self.process.cpu_times()[:2]), time.perf_counter()
        out = await work
        took = time.perf_counter() - began
        count = count or len(out)
        core = sum(self.process.cpu_times()[:2]) - cpu
        row = {"step": name, "urls": count, "urls_per_s": round(count / took), "core_us": round(core / count * 1e6, 1)}
        self.results.append(row)
        print(
            f"{name:44} {count:>8,} URLs {row['urls_per_s']:>8,} /s   {row['core_us']:>6.1f} us of the core each",
            flush=True,
        )
        return out


def info(n: int, *, told: bool) -> Any:
    one = CLASSES["URLInfo"](url=f"https://www.host{n % HOSTS}.example/section/{n % 97}/page-{n}.html")
    if told:
        one.metadata["referrer"].values.append(f"https://www.host{n % HOSTS}.example/section/0/page-{n % HOSTS}.html")
        one.metadata["anchor"].values.append(f"Page number {n}")
    return one


def batches(first: int, count: int, *, told: bool) -> list[bytes]:
    make = CLASSES["DiscoveredBatch"]
    return [
        make(ID=str(n), items=[info(n + k, told=told) for k in range(BATCH)]).SerializeToString()
        for n in range(first, first + count, BATCH)
    ]


def singles(first: int, count: int) -> list[bytes]:
    out = []
    for n in range(first, first + count):
        item = CLASSES["URLItem"](ID=str(n))
        item.discovered.info.CopyFrom(info(n, told=False))
        out.append(item.SerializeToString())
    return out


def known(found: Iterable[bytes]) -> list[bytes]:
    out = []
    for data in found:
        item = CLASSES["URLItem"]()
        item.known.info.ParseFromString(data)
        item.known.info.metadata["digest"].values.append("same")
        out.append(item.SerializeToString())
    return out


def split(messages: list[bytes]) -> list[list[bytes]]:
    return [messages[n::STREAMS] for n in range(STREAMS)]


async def run(address: str, process: psutil.Process, urls: int) -> list[dict[str, Any]]:
    async with grpc.aio.insecure_channel(address) as channel:
        await channel.channel_ready()
        client = Client(channel, process)
        delay = CLASSES["QueueDelayParams"](delay_requestable=0).SerializeToString()
        await channel.unary_unary(f"/{SERVICE}/SetDelay")(delay)
        await client.put("PutDiscovered", [batches(10**7, BATCH, told=False)])  # everything is loaded and compiled
        part = urls // 4
        one, two = batches(0, urls, told=False), batches(urls, urls, told=True)
        await client.measure("PutDiscovered, batches of 100", urls, client.put("PutDiscovered", split(one)))
        await client.measure("the same with referrer and anchor", urls, client.put("PutDiscovered", split(two)))
        await client.measure("PutDiscovered, all known", urls, client.put("PutDiscovered", split(one)))
        await client.measure(
            "PutURLs, discovered, one by one", part, client.put("PutURLs", split(singles(2 * urls, part)))
        )
        found: list[bytes] = []

        async def take() -> list[bytes]:
            while len(found) < urls // 2:
                some = await client.get(10, 200)
                found.extend(some)
                if not some:
                    await asyncio.sleep(0.01)
            return found

        await client.measure("GetURLs, up to 2,000 at a time", 0, take())
        await client.measure("PutURLs, known, one by one", part, client.put("PutURLs", split(known(found[:part]))))
        rest = batches(3 * urls, urls, told=False)

        async def both() -> None:
            more: list[bytes] = []

            async def out() -> None:
                while len(more) < urls:
                    more.extend(some := await client.get(0, 200))
                    if not some:
                        await asyncio.sleep(0.01)

            await asyncio.gather(client.put("PutDiscovered", split(rest)), out())

        await client.measure("PutDiscovered and GetURLs at once, each way", urls, both())
        return client.results


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--urls", type=int, default=100_000)
    parser.add_argument("--policy", default="breadth-first+adaptive")
    parser.add_argument("--port", type=int, default=7099)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    cores = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "bowerbird", "frontier-service", f"{folder}/service"]
        service = subprocess.Popen(
            [*command, "--port", str(options.port), "--policy", options.policy],
        )
        os.sched_setaffinity(service.pid, {cores[0]})
        os.sched_setaffinity(0, set(cores[1:]) or set(cores))
        try:
            results = asyncio.run(run(f"127.0.0.1:{options.port}", psutil.Process(service.pid), options.urls))
        finally:
            service.terminate()
            service.wait(60)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
