"""The web application, put together: search, clicks, dashboard, the JSON API, metrics."""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

import bowerbird
from bowerbird.crawl.demand_log import open_demand
from bowerbird.crawl.settings import Settings, load_settings
from bowerbird.demand.log import DemandLog
from bowerbird.model.errors import BowerbirdError, FolderError
from bowerbird.serve.clicks import ClickOnce, Recorder, TokenSigner
from bowerbird.serve.dashboard import make_dashboard
from bowerbird.serve.dashboard_survey import Lookout
from bowerbird.serve.metrics import CONTENT_TYPE, Metrics
from bowerbird.serve.models import COMMON_PROBLEMS
from bowerbird.serve.pages import ROOM, page
from bowerbird.serve.parts import Parts
from bowerbird.serve.redirects import click_router
from bowerbird.serve.search import search_router
from bowerbird.serve.security import HEADERS, Guard, RateLimiter
from bowerbird.serve.service import BusyError, Desk, SearchService
from bowerbird.serve.status import status_router
from bowerbird.store.committed import CommittedState
from bowerbird.store.folder import CrawlFolder

log = logging.getLogger(__name__)

DEFAULT_RATE_PER_S = 20.0
ABOUT = "Search the pages of a crawl, say which results were opened, and look at how the crawl goes."


def create_app(
    folder: Path,
    *,
    now: Callable[[], float] = time.time,
    rate_per_s: float = DEFAULT_RATE_PER_S,
    hosts: Iterable[str] | None = (),
    addresses: bool = False,
    record_every_s: float = 1.0,
) -> FastAPI:
    """The application for a crawl folder, which is opened when the application starts and closed when it ends.

    `rate_per_s`: requests a second from one address; 0 = no limit. `hosts`: names, besides those of loopback, that a
    request may address; None = any name. `addresses`: may it also address any IP address?
    """
    crawl = CrawlFolder(folder)
    crawl.check()
    CommittedState(crawl).close()  # a database that cannot be read is said now, not at the first search
    settings = load_settings(crawl.config)
    service = SearchService(crawl)
    metrics = Metrics(crawl, service.count)

    def open_log() -> DemandLog:
        if not crawl.root.is_dir():
            raise FolderError(vanished_text(crawl))
        return open_demand(crawl, settings.demand, write=True)

    recorder = Recorder(
        open_log,
        every_s=record_every_s,
        on_written=metrics.written.inc,
        on_dropped=metrics.dropped.inc,
    )
    metrics.waiting.set_function(lambda: recorder.waiting)
    signer = make_signer(crawl, settings)
    lookout = Lookout(folder)
    parts = Parts(crawl, service, signer, ClickOnce(), recorder, metrics, Desk(1, "looks"), lookout, now)
    counting = Desk(1, "metrics")  # a monitor must not wait behind slow looks

    @asynccontextmanager
    async def running(app: FastAPI) -> AsyncIterator[None]:
        service.open()
        recorder.start()
        try:
            yield
        finally:
            recorder.close()
            parts.looks.close()
            counting.close()
            lookout.close()
            service.close()

    app = FastAPI(
        title="Bowerbird",
        version=bowerbird.__version__,
        description=ABOUT,
        lifespan=running,
        docs_url=None,  # they would load scripts from elsewhere
        redoc_url=None,
    )
    app.state.parts = parts
    app.add_middleware(
        Guard, limiter=RateLimiter(rate_per_s), hosts=hosts, addresses=addresses, on_limited=metrics.limited.inc
    )
    app.include_router(search_router(parts))
    app.include_router(click_router(parts))
    app.include_router(status_router(parts))
    app.include_router(make_dashboard(folder, clock=now, lookout=lookout), tags=["crawl"], responses=COMMON_PROBLEMS)

    @app.get("/metrics", include_in_schema=False)
    async def show_metrics() -> Response:
        return Response(await counting.ask(metrics.text), media_type=CONTENT_TYPE)

    app.mount("/static", StaticFiles(directory=ROOM / "static"), name="static")
    _handle_errors(app, metrics, crawl)
    return app


def make_signer(folder: CrawlFolder, settings: Settings) -> TokenSigner:
    """Tokens by the folder's own secret; where it cannot be written to, they hold until the service ends."""
    try:
        with open_demand(folder, settings.demand, write=True) as demand:
            return TokenSigner(demand.signing_key("click"))
    except (BowerbirdError, OSError, sqlite3.Error) as error:
        log.warning("queries and clicks will not be recorded: %s", error)
        return TokenSigner.with_random_secret()


def vanished_text(folder: CrawlFolder) -> str:
    """What to say of a folder that was there when the service began."""
    return f"{folder.root}: the crawl folder is no longer there. Put it back, or end this service."


def _handle_errors(app: FastAPI, metrics: Metrics, folder: CrawlFolder) -> None:
    def answer(request: Request, status: int, detail: str, headers: dict[str, str] | None = None) -> Response:
        if request.url.path.startswith("/api/"):
            return JSONResponse({"detail": detail}, status, headers)
        made = page("problem.html", status, code=status, detail=detail)
        made.headers.update(headers or {})
        return made

    async def on_refusal(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return answer(request, error.status_code, str(error.detail), dict(error.headers or {}))

    async def on_invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        # the input itself is not sent back: it need not be expressible in JSON
        found = [{key: each[key] for key in ("type", "loc", "msg")} for each in error.errors()]
        return JSONResponse({"detail": found}, 422)

    async def on_busy(request: Request, error: Exception) -> Response:
        metrics.busy.inc()
        return answer(request, 503, "Too many questions at once: try again in a second.", {"retry-after": "1"})

    async def on_trouble(request: Request, error: Exception) -> Response:
        log.error("%s: %s", request.url.path, error if folder.root.is_dir() else vanished_text(folder))
        return answer(request, 503, "The crawl folder cannot be read at the moment.", {"retry-after": "5"})

    async def on_mistake(request: Request, error: Exception) -> Response:
        made = answer(request, 500, "Something went wrong here. The service's log says what.")
        made.headers.update(HEADERS)  # this answer does not pass through the guard
        return made

    app.add_exception_handler(HTTPException, on_refusal)
    app.add_exception_handler(RequestValidationError, on_invalid)
    app.add_exception_handler(BusyError, on_busy)
    app.add_exception_handler(BowerbirdError, on_trouble)
    app.add_exception_handler(sqlite3.Error, on_trouble)
    app.add_exception_handler(Exception, on_mistake)
