"""The dashboard and the explain page: how the crawl serves its searchers, where its budget goes, why a URL is next."""

from __future__ import annotations

import shlex
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query
from fastapi.responses import HTMLResponse, JSONResponse, Response
from pydantic import BaseModel, Field

from bowerbird.crawl.measurements import Measurement
from bowerbird.crawl.view import CrawlView
from bowerbird.model.errors import BowerbirdError, UrlError
from bowerbird.serve.dashboard_data import WINDOWS, Glance, Observer
from bowerbird.serve.dashboard_panels import draw_panels
from bowerbird.serve.dashboard_survey import Lookout
from bowerbird.serve.dashboard_text import add_filters
from bowerbird.serve.pages import environment, page
from bowerbird.web.url import Canonicaliser, parse_input

TITLES = {
    "status": "At a glance",
    "quality": "Search quality",
    "budget": "Where the budget goes",
    "errors": "Errors",
    "next": "The next fetches",
    "demand": "Demand",
    "needs": "Neediest queries",
    "hubs": "Hubs",
    "seeds": "Seeds",
    "hosts": "Hosts",
}
TONES = {"fetched": "good", "new": "", "gone": "warn", "failed": "bad"}
MAX_URL_CHARS = 4096
MAX_POINTS = 10_000
NOT_KEPT = {"cache-control": "no-store"}


class QualityPoint(BaseModel):
    """The quality of the repository as it was measured once, with its 95% interval."""

    at: datetime
    quality: float
    low: float
    high: float
    probes: int
    causes: dict[str, float] = Field(description="share of quality lost by each cause: rose, fell, unfetched, gone")


class QualityAnswer(BaseModel):
    """The latest measurement, or null where there is none, and the series in the order of time."""

    latest: QualityPoint | None
    series: list[QualityPoint]


def make_dashboard(
    folder: Path, *, clock: Callable[[], float] = time.time, lookout: Lookout | None = None
) -> APIRouter:
    """The routes /dashboard, /dashboard/live, /explain and /api/quality of one crawl folder."""
    add_filters(environment())
    observer = Observer(folder, clock=clock, lookout=lookout)
    drawn: dict[str, tuple[Glance, dict[str, str]]] = {}

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        yield
        observer.close()

    router = APIRouter(lifespan=lifespan)

    def panels_of(window: str) -> tuple[Glance, dict[str, str]]:
        glance = observer.glance(window)
        last = drawn.get(glance.window)
        if last is None or last[0] is not glance:
            last = drawn[glance.window] = (glance, draw_panels(glance))
        return last

    @router.get("/dashboard", response_class=HTMLResponse, include_in_schema=False)
    def show_dashboard(window: str = "auto") -> Response:
        """The page."""
        glance, panels = panels_of(window)
        answer = page(
            "dashboard.html",
            503 if glance.problem else 200,
            section="dashboard",
            glance=glance,
            panels=panels,
            titles=TITLES,
            windows=WINDOWS,
        )
        answer.headers.update(NOT_KEPT)
        return answer

    @router.get("/dashboard/live", include_in_schema=False)
    def show_live(window: str = "auto") -> Response:
        """The panels alone, for the page that is open."""
        glance, panels = panels_of(window)
        at = datetime.fromtimestamp(glance.at, UTC).isoformat(timespec="milliseconds")
        return JSONResponse({"at": at, "running": glance.running, "panels": panels}, headers=NOT_KEPT)

    @router.get("/explain", response_class=HTMLResponse, include_in_schema=False)
    def show_explanation(url: str = "") -> Response:
        """Why a URL is where it is."""
        return explain_page(observer, url)

    @router.get("/api/quality")
    def quality(
        n: Annotated[int, Query(ge=1, le=MAX_POINTS, description="at most so many, the newest")] = 1000,
    ) -> QualityAnswer:
        """Measured search quality: the latest, and how it went."""
        series = [quality_point(one) for one in observer.quality(n)]
        return QualityAnswer(latest=series[-1] if series else None, series=series)

    return router


def quality_point(one: Measurement) -> QualityPoint:
    """A measurement as the API gives it."""
    return QualityPoint(
        at=datetime.fromtimestamp(one.at, UTC),
        quality=one.quality,
        low=one.low,
        high=one.high,
        probes=one.probes,
        causes=one.causes,
    )


def explain_page(observer: Observer, asked: str) -> Response:
    """The page of one URL; 400 for what is no URL, 404 with help for one the crawl does not know."""
    asked = asked.strip()
    context: dict[str, Any] = {
        "section": "explain",
        "asked": asked[:MAX_URL_CHARS],
        "name": observer.folder.root.resolve().name,
        "shell_url": shlex.quote(asked[:MAX_URL_CHARS]),
        "story": None,
        "problem": "",
        "heading": "",
        "similar": [],
        "tone": "",
        "code": 200,
    }

    def say(status: int, heading: str, problem: str, similar: list[str] | None = None) -> Response:
        context.update(code=status, heading=heading, problem=problem, similar=similar or [])
        return page("explain.html", status, **context)

    if not asked:
        return page("explain.html", 200, **context)
    if len(asked) > MAX_URL_CHARS:
        return say(400, "Not a URL", f"longer than {MAX_URL_CHARS:,} characters")
    try:
        with observer.lookout.view() as view:
            try:
                canonical = parse_input(asked, Canonicaliser(view.settings.urls))
            except UrlError as error:
                return say(400, "Not a URL that can be crawled", str(error))
            try:
                story = view.explain(asked)
            except UrlError:
                return say(404, "Not known to this crawl", canonical, similar_urls(view, canonical))
    except (BowerbirdError, OSError) as error:
        return say(503, "The crawl cannot be read", observer.without_path(str(error)))
    context.update(story=story, tone=TONES.get(story["state"], ""))
    return page("explain.html", 200, **context)


def similar_urls(view: CrawlView, url: str) -> list[str]:
    """Known URLs that somebody who asked for this one may have meant."""
    scheme, _, rest = url.partition("://")
    host, slash, path = rest.partition("/")
    hosts = (host, host.removeprefix("www.") if host.startswith("www.") else f"www.{host}")
    bare = path.partition("?")[0].rstrip("/")
    paths = (path, bare, f"{bare}/" if bare else "", "")
    tries = [f"{s}://{h}{slash}{p}" for p in paths for h in hosts for s in (scheme, "https", "http")]
    table = view.repository.table
    return [one for one in dict.fromkeys(tries) if one != url and table.find_url(one) is not None][:5]
