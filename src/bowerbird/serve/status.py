"""The crawl as programs see it: status, and why a URL is where it is. Slow looks have a thread of their own."""

from __future__ import annotations

import asyncio
import math
import time
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query

from bowerbird.model.errors import UrlError
from bowerbird.serve import models
from bowerbird.serve.parts import Parts
from bowerbird.web.url import Canonicaliser, parse_input

STATUS_FOR_S = 2.0
MAX_URL_CHARS = 8192


def status_router(parts: Parts) -> APIRouter:
    """The calls about the crawl."""
    router = APIRouter(tags=["crawl"])
    lock = asyncio.Lock()
    kept: tuple[float, models.Status] | None = None

    def look() -> models.Status:
        with parts.lookout.view() as view:
            found = finite(view.status())
        # where the folder lies is nobody's business on the network
        return models.Status.model_validate({**found, "folder": parts.folder.root.resolve().name})

    def explain_url(url: str) -> models.Explanation | str:
        with parts.lookout.view() as view:
            canonical = parse_input(url, Canonicaliser(view.settings.urls))
            if view.repository.table.find_url(canonical) is None:
                return canonical
            return models.Explanation.model_validate(finite(view.explain(url)))

    @router.get("/api/status", summary="The crawl at a glance", responses=models.COMMON_PROBLEMS)
    async def status() -> models.Status:
        nonlocal kept
        async with lock:
            if kept is None or time.monotonic() - kept[0] > STATUS_FOR_S:
                found = await parts.looks.ask(look)
                kept = time.monotonic(), found
            return kept[1]

    @router.get(
        "/api/explain",
        summary="Why a URL is where it is",
        responses={**models.COMMON_PROBLEMS, **models.NOT_FOUND},
    )
    async def explain(
        url: Annotated[str, Query(description="A URL that the crawl knows", json_schema_extra={"maxLength": 8192})],
    ) -> models.Explanation:
        if len(url) > MAX_URL_CHARS:
            raise HTTPException(400, f"The URL has {len(url):,} characters; at most {MAX_URL_CHARS:,} are looked up.")
        try:
            found = await parts.looks.ask(lambda: explain_url(url))
        except UrlError as error:
            raise HTTPException(400, str(error)) from error
        if isinstance(found, str):
            raise HTTPException(404, f"{found}: not known to this crawl.")
        return found

    return router


def finite(value: Any) -> Any:
    """The same, with None for numbers that JSON cannot say."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [finite(each) for each in value]
    return value
