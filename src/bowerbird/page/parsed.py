"""What a page said: the values that parsing gives to the rest of the crawler."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from bowerbird.web.directives import Directives

_ALLOWED = Directives()


class RawLink(NamedTuple):
    """A link as the page writes it: not resolved, white space around it stripped."""

    href: str
    anchor: str
    nofollow: bool


@dataclass(slots=True)
class ParsedPage:
    """One HTML page, read."""

    title: str = ""
    description: str = ""
    text: str = ""
    """Main text, white space collapsed."""
    language: str = ""
    """Primary language subtag in lower case, or nothing."""
    base: str | None = None
    canonical: str | None = None
    refresh: str | None = None
    """Target of a meta refresh within 30 seconds."""
    feeds: list[str] = field(default_factory=list)
    links: list[RawLink] = field(default_factory=list)
    directives: Directives = _ALLOWED
    links_cut: int = 0
    """Link elements left unread because the page has too many."""
