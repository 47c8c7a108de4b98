"""Opening a result: recorded, then on to the page. Only tokens of this service lead anywhere."""

from __future__ import annotations

from fastapi import APIRouter, HTTPException, Request, Response

from bowerbird.demand.events import ResultClicked
from bowerbird.serve import models
from bowerbird.serve.clicks import Shown
from bowerbird.serve.intent import is_ahead
from bowerbird.serve.parts import Parts

REFUSED = "This link was not made by this service, so it leads nowhere. Search again and use the result there."


def click_router(parts: Parts) -> APIRouter:
    """The redirect for people, the call for programs."""
    router = APIRouter()

    def read(token: str) -> Shown:
        shown = parts.signer.read(token)
        if shown is None:
            raise HTTPException(400, REFUSED)
        return shown

    def record(shown: Shown) -> None:
        now = parts.now()
        if parts.clicked.counts(shown, now):
            parts.recorder.put([ResultClicked(shown.query, shown.url, shown.rank, now)])
            parts.metrics.clicks.inc()

    @router.get("/click", include_in_schema=False)
    async def click(request: Request, t: str = "") -> Response:
        shown = read(t)
        if not is_ahead(request.headers):  # a browser that looks ahead is not a person who clicks
            record(shown)
        return Response(status_code=302, headers={"location": header_url(shown.url), "cache-control": "no-store"})

    @router.post(
        "/api/click",
        status_code=204,
        tags=["search"],
        summary="Say that a result was opened",
        responses={**models.COMMON_PROBLEMS, **models.BODY_PROBLEMS},
    )
    async def record_click(body: models.Click) -> Response:
        record(read(body.click))
        return Response(status_code=204)

    return router


def header_url(url: str) -> str:
    """A URL that can stand in a header: canonical ones can already; anything else is escaped."""
    return "".join(
        char if "!" <= char <= "~" else "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "replace"))
        for char in url
    )
