"""Words of the dashboard: filters for its templates."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import jinja2
from markupsafe import Markup

from bowerbird.crawl.seed_report import seed_text
from bowerbird.crawl.url_story import own_terms
from bowerbird.model.worth import worth_text
from bowerbird.serve.dashboard_scale import count_text, number_text, percent_text, span_text, time_text

LONGEST = 90


def shorten(text: str, length: int = LONGEST) -> str:
    """A long text without its middle: both ends of a URL tell something.

    >>> shorten("abcdefghij", 7)
    'abcd…ij'
    """
    text = str(text)
    if len(text) <= length:
        return text
    tail = (length - 1) // 3
    return f"{text[: length - 1 - tail]}…{text[-tail:]}"


def in_text(seconds: float) -> str:
    """How soon.

    >>> in_text(0.2), in_text(90)
    ('now', 'in 2 min')
    """
    return "now" if seconds < 0.5 else f"in {span_text(seconds)}"


def until_text(at: float, now: float) -> str:
    """For how much longer; nothing when it is over."""
    return "–" if at <= now else f"for {span_text(at - now)}"


def clock(at: str | None) -> str:
    """An ISO time without what every reader knows."""
    return "never" if not at else at.replace("T", " ").replace("+00:00", "")


def moment(when: str, now: float) -> Markup | str:
    """`now`, a time as the crawl writes it, or words."""
    try:
        at = datetime.fromisoformat(when)
    except ValueError:
        return when
    text = in_text(at.replace(tzinfo=at.tzinfo or UTC).timestamp() - now)
    return Markup('<time datetime="{}" title="{} UTC">{}</time>').format(when, clock(when), text)


def reason_text(terms: dict[str, Any]) -> str:
    """What a bid rests on, in one line.

    >>> reason_text({"by": "adaptive", "interval_s": 7200.0, "depth": 2, "unit": 0.5})
    'adaptive: interval 2 h, depth 2'
    """
    own = own_terms(terms)
    by = str(own.pop("by", ""))
    rest = ", ".join(f"{term_name(name)} {term_value(value, name)}" for name, value in own.items())
    return f"{by}: {rest}" if by and rest else by or rest


def term_name(name: str) -> str:
    """A term's name as people read it."""
    return name.removesuffix("_s").replace("_", " ")


def term_value(value: object, name: str) -> str:
    """A term's value as people read it; names that end in _s are seconds."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return span_text(value) if name.endswith("_s") else number_text(value)


def add_filters(environment: jinja2.Environment) -> None:
    """Make them known to the templates."""
    environment.filters.update(
        percent=percent_text,
        count=count_text,
        number=number_text,
        span=span_text,
        shorten=shorten,
        in_text=in_text,
        until=until_text,
        clock=clock,
        moment=moment,
        reason=reason_text,
        term_name=term_name,
        term_value=term_value,
        seed_text=seed_text,
        time=time_text,
        worth=worth_text,
    )
