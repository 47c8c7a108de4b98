"""Searching: the page for people, the call for programs. Both record what was asked and shown."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import unquote, urlencode, urlsplit

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from bowerbird.crawl.moments import clock_text
from bowerbird.demand.events import Event, QueryAsked, ResultShown
from bowerbird.serve import models
from bowerbird.serve.clicks import Shown
from bowerbird.serve.folding import Result
from bowerbird.serve.intent import is_asked_here
from bowerbird.serve.pages import page as make_page
from bowerbird.serve.parts import Parts
from bowerbird.serve.service import Answer

MAX_QUERY_CHARS = 500
MAX_PAGE = 100
MAX_SIZE = 50
PAGE_SIZE = 10
NEAR_PAGES = 3
NEVER = 0.0  # too long ago for a click to count


def check_query(query: str) -> str:
    """The query as it is searched for; 400 where it is too long."""
    if len(query) > MAX_QUERY_CHARS:
        raise HTTPException(
            400, f"The query has {len(query):,} characters; at most {MAX_QUERY_CHARS} are searched for. Shorten it."
        )
    return query.strip()


async def ask(
    parts: Parts, query: str, page: int, size: int, surface: str, *, record: bool
) -> tuple[Answer, float, Callable[[str, int | None], str]]:
    """Search and record: the answer, the time, and what makes a click token of a result's URL and rank."""
    began = time.perf_counter()
    answer = await parts.service.ask(query, page, size)
    at = parts.now()
    parts.metrics.seconds.observe(time.perf_counter() - began)
    parts.metrics.searches.labels(surface).inc()
    if not answer.total:
        parts.metrics.empty.inc()
    if record:
        _record(parts, query, page, answer, at)
    # clicks count only for what was recorded as shown
    known_by = at if record else NEVER

    def sign(url: str, rank: int | None) -> str:
        return parts.signer.sign(Shown(query, url, rank, known_by))

    return answer, at, sign


def _record(parts: Parts, query: str, page: int, answer: Answer, at: float) -> None:
    events: list[Event] = []
    if page == 1:  # who turns the page has not asked again
        events.append(QueryAsked(query, at, results=answer.total))
    events += [ResultShown(query, result.hit.url, result.rank, at) for result in answer.results]
    parts.recorder.put(events)
    parts.metrics.impressions.inc(len(answer.results))


def search_router(parts: Parts) -> APIRouter:
    """The search page and the search call."""
    router = APIRouter()

    @router.get("/", include_in_schema=False)
    async def home(q: str = "") -> Response:
        if q.strip():
            return RedirectResponse("/search?" + urlencode({"q": q}), 302)
        return await show_home()

    async def show_home() -> HTMLResponse:
        indexed = await parts.service.ask_count()
        return make_page("home.html", section="search", indexed=indexed)

    @router.get("/search", include_in_schema=False)
    async def results(request: Request, q: str = "", page: str = "1") -> HTMLResponse:
        query = check_query(q)
        if not query:
            return await show_home()
        number = min(max(int(page), 1), MAX_PAGE) if page.isdecimal() and len(page) < 6 else 1
        record = is_asked_here(request.headers)
        answer, at, sign = await ask(parts, query, number, PAGE_SIZE, "page", record=record)
        return make_page(
            "results.html",
            section="search",
            query=query,
            answer=answer,
            results=[_line(result, sign) for result in answer.results],
            pager=pager(query, number, answer),
            page=number,
            now=at,
        )

    @router.get(
        "/api/search",
        tags=["search"],
        summary="Search the crawled pages",
        responses=models.COMMON_PROBLEMS,
    )
    async def search(
        request: Request,
        q: Annotated[
            str,
            Query(
                description='Words, "phrases", -minus, site:host, lang:en',
                json_schema_extra={"maxLength": MAX_QUERY_CHARS},
            ),
        ],
        page: Annotated[int, Query(ge=1, le=MAX_PAGE, description="Page of results, from 1")] = 1,
        n: Annotated[int, Query(ge=1, le=MAX_SIZE, description="Results a page")] = PAGE_SIZE,
    ) -> models.SearchAnswer:
        query = check_query(q)
        if not query:
            return models.SearchAnswer(query=query, total=0, seconds=0.0, page=page, results=[])
        answer, _, sign = await ask(parts, query, page, n, "api", record=is_asked_here(request.headers))
        return models.SearchAnswer(
            query=query,
            total=answer.total,
            seconds=answer.seconds,
            page=page,
            results=[_model(result, sign) for result in answer.results],
        )

    return router


def _model(result: Result, sign: Callable[[str, int | None], str]) -> models.SearchResult:
    hit = result.hit
    return models.SearchResult(
        rank=result.rank,
        url=hit.url,
        title=hit.title,
        snippet=hit.snippet,
        highlights=list(hit.highlights),
        score=hit.score,
        fetched_at=clock_text(hit.fetched_at),
        language=hit.language,
        folded=result.copies,
        click=sign(hit.url, result.rank),
    )


@dataclass(frozen=True, slots=True)
class Line:
    """A result as the page shows it."""

    result: Result
    href: str
    crumbs: tuple[str, ...]
    similar: tuple[tuple[str, str, str], ...]  # where it leads, title, URL


def _line(result: Result, sign: Callable[[str, int | None], str]) -> Line:
    def href(url: str, rank: int | None) -> str:
        return "/click?" + urlencode({"t": sign(url, rank)})

    similar = tuple((href(hit.url, None), hit.title or hit.url, hit.url) for hit in result.folded)
    return Line(result, href(result.hit.url, result.rank), crumbs(result.hit.url), similar)


def crumbs(url: str) -> tuple[str, ...]:
    """The host and the steps of the path, as people read them.

    >>> crumbs("https://docs.example.org/guide/first%20steps.html?page=2")
    ('docs.example.org', 'guide', 'first steps.html?page=2')
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return (url,)
    steps = [unquote(step) for step in parts.path.split("/") if step]
    if parts.query:
        steps = [*steps[:-1], f"{steps[-1] if steps else ''}?{unquote(parts.query)}"]
    readable = ("".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in step) for step in steps)
    scheme = "" if parts.scheme == "https" else f"{parts.scheme}://"
    return (scheme + parts.netloc.rpartition("@")[2], *readable)


@dataclass(frozen=True, slots=True)
class PageLink:
    """One entry of the pager; no address for the page one is on."""

    label: str
    href: str | None


def pager(query: str, page: int, answer: Answer) -> list[PageLink]:
    """Links to the pages around this one; how many there are is known only up to the next."""

    def link(label: str, number: int) -> PageLink:
        return PageLink(label, "/search?" + urlencode({"q": query, "page": number}))

    last = page + 1 if answer.has_more and page < MAX_PAGE else page
    if last == 1:
        return []
    links = [link("Previous", page - 1)] if page > 1 else []
    for number in range(max(1, page - NEAR_PAGES), last + 1):
        links.append(PageLink(str(number), None) if number == page else link(str(number), number))
    if last > page:
        links.append(link("Next", page + 1))
    return links
