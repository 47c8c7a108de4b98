"""Pages from templates: everything that comes from the web or from a person is escaped."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import jinja2
from fastapi.responses import HTMLResponse
from markupsafe import Markup, escape

ROOM = Path(str(files("bowerbird.serve")))

_STEPS = ((60.0, "second", 1.0), (3600.0, "minute", 60.0), (86400.0, "hour", 3600.0), (30 * 86400.0, "day", 86400.0))


def ago_text(at: float, now: float) -> str:
    """How long ago, in the words people use.

    >>> ago_text(0, 200)
    '3 minutes ago'
    """
    past = max(0.0, now - at)
    if past < 10:
        return "just now"
    for below, name, unit in _STEPS:
        if past < below:
            return _count(int(past // unit), name)
    return _count(int(past // (30 * 86400)), "month") if past < 365 * 86400 else _count(int(past // 31_557_600), "year")


def _count(number: int, name: str) -> str:
    number = max(1, number)
    return f"{number} {name}{'s' if number > 1 else ''} ago"


def ago(at: float | None, now: float) -> Markup:
    """The time as an element: "3 minutes ago", the exact time on hover."""
    if not at:
        return Markup("never")
    exact = datetime.fromtimestamp(at, UTC)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(
        exact.isoformat(timespec="seconds"), f"{exact:%Y-%m-%d %H:%M:%S} UTC", ago_text(at, now)
    )


def highlight(text: str, ranges: tuple[tuple[int, int], ...]) -> Markup:
    """The text, escaped, with its ranges marked."""
    out, done = Markup(""), 0
    for start, end in ranges:
        out += escape(text[done:start]) + Markup("<mark>{}</mark>").format(text[start:end])
        done = end
    return out + escape(text[done:])


@cache
def environment() -> jinja2.Environment:
    """The templates of this room. A name that the context lacks is a mistake, not an empty text."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(ROOM / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals.update(section="", query="")
    made.filters.update(ago=ago, highlight=highlight, thousands=lambda number: f"{number:,}")
    return made


def render(template: str, **context: Any) -> str:
    """A template filled in."""
    return environment().get_template(template).render(context)


def page(template: str, status: int = 200, **context: Any) -> HTMLResponse:
    """A template as a response."""
    return HTMLResponse(render(template, **context), status)
