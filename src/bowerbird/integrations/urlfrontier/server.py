"""The gRPC server: calls by name, bounds on what one caller may hold, and a clean end."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc

from bowerbird.integrations.urlfrontier.crawls import Crawls
from bowerbird.integrations.urlfrontier.desk import Desk
from bowerbird.integrations.urlfrontier.messages import CALLS, CLASSES, SERVICE, Call
from bowerbird.integrations.urlfrontier.service import FrontierService, check_key, status_of
from bowerbird.model.errors import ConfigError

log = logging.getLogger(__name__)

MOST_CALLS = 500  # under way at once, of all clients
MAX_MESSAGE_BYTES = 4 << 20
PING_EVERY_S = 60.0  # a connection that is silent
PING_ANSWER_S = 20.0
CLIENT_PING_EVERY_S = 10.0  # at most so often
GRACE_S = 3.0


def serve(
    root: Path, host: str, port: int, *, policy: str | None = None, say: Callable[[int], None] = lambda port: None
) -> None:
    """Serve the crawls below `root` until SIGINT or SIGTERM; `say` is told the port once calls are taken."""
    crawls = Crawls(root, policy=policy)
    desk = Desk(crawls)
    try:
        asyncio.run(_serve(desk, host, port, say))
    finally:
        desk.close()


async def _serve(desk: Desk, host: str, port: int, say: Callable[[int], None]) -> None:
    server = grpc.aio.server(
        maximum_concurrent_rpcs=MOST_CALLS,
        options=(
            ("grpc.so_reuseport", 0),
            ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
            ("grpc.max_concurrent_streams", MOST_CALLS),
            ("grpc.keepalive_time_ms", int(PING_EVERY_S * 1000)),
            ("grpc.keepalive_timeout_ms", int(PING_ANSWER_S * 1000)),
            ("grpc.http2.ping_timeout_ms", int(PING_ANSWER_S * 1000)),  # of late this one counts, a minute if not set
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.max_pings_without_data", 0),  # of ours: as many as it takes
            ("grpc.http2.min_ping_interval_without_data_ms", int(CLIENT_PING_EVERY_S * 1000)),
        ),
    )
    shown = f"[{host}]" if ":" in host else host
    try:
        bound = server.add_insecure_port(f"{shown}:{port}")
    except RuntimeError:
        bound = 0
    if not bound:
        raise ConfigError(
            f"--host {host} --port {port}: cannot listen there. Is another program on that port? 0 takes any free one."
        )
    service = FrontierService(desk, f"{shown}:{bound}")
    handlers = {name: _handler(service, name, call) for name, call in CALLS.items()}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, handlers),))
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    await server.start()
    upkeep = asyncio.ensure_future(desk.keep_up())
    say(bound)
    try:
        await stop.wait()
    finally:
        await server.stop(GRACE_S)
        upkeep.cancel()


def _handler(service: FrontierService, name: str, call: Call) -> Any:
    """A call's handler. What streams out is ready bytes or messages; what goes wrong becomes a status."""
    method = getattr(service, name)

    def read(data: bytes) -> Any:
        request = CLASSES[call.request].FromString(data)
        check_key(request)
        return request

    async def unary(request: bytes, context: Any) -> Any:
        try:
            return await method(read(request))
        except Exception as error:
            return await context.abort(*status_of(error))

    async def stream(request: Any, context: Any) -> None:
        try:
            if call.streams_in:
                await method(context)
            else:
                await method(read(request), context)
        except grpc.aio.AbortError:
            raise
        except Exception as error:
            await context.abort(*status_of(error))

    if call.streams_in:
        return grpc.stream_stream_rpc_method_handler(stream, None, _as_bytes)
    if call.streams_out:
        return grpc.unary_stream_rpc_method_handler(stream, None, _as_bytes)
    return grpc.unary_unary_rpc_method_handler(unary, None, _as_bytes)


def _as_bytes(message: Any) -> bytes:
    return message if isinstance(message, bytes) else message.SerializeToString()
