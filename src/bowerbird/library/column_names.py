"""What the columns of files and tables may be called. The first of each is its name in messages."""

from __future__ import annotations

from collections.abc import Sequence

SOURCES = ("source", "from", "src", "from_url", "source_url")
TARGETS = ("target", "to", "dst", "destination", "to_url", "target_url")
PAGES = ("page", "url", "name", "title", "slug")
CLICKS = ("clicks", "views", "count", "visits", "impact")
QUERIES = ("query", "text", "terms")
FREQUENCIES = ("frequency", "count", "clicks", "n")
SCORES = ("score", "value", "rank", "pagerank", "impact", "clicks")
TIMES = ("time", "day", "date", "timestamp", "at")
ANCHORS = ("anchor", "anchor_text", "text")
LINKED = ("page", "target", *PAGES[1:], *TARGETS[1:])  # pages that an anchor stands for
WEIGHTS = ("weight", "value", "clicks", "views", "count", "visits", "impact", "score")


def find_columns(header: Sequence[str], wanted: Sequence[tuple[str, ...]]) -> list[int] | None:
    """Where the wanted columns are; None where the header does not name all of them.

    >>> find_columns(["n", "To", "from"], (SOURCES, TARGETS))
    [2, 1]
    """
    return match_columns([{name.strip().lower()} for name in header], [set(names) for names in wanted])


def match_columns(header: Sequence[set[str]], wanted: Sequence[set[str]]) -> list[int] | None:
    """The same of sets of words: each wanted one takes the first that it has a word in common with."""
    found: list[int] = []
    for words in wanted:
        place = next((place for place, cell in enumerate(header) if cell & words and place not in found), None)
        if place is None:
            return None
        found.append(place)
    return found


def tell_missing(header: Sequence[str], wanted: Sequence[Sequence[str]]) -> str:
    """Which of the wanted columns a header does not name, for an error.

    >>> tell_missing(["anchor", "from", "dest"], (SOURCES, ("target", "to")))
    'has no column target (or to); it has anchor, from, dest. Rename the one that is it.'
    """
    known = {name.strip().lower() for name in header}
    # where all are known, two wanted ones would be the same column
    missing = [names for names in wanted if not known & set(names)] or wanted
    told = (f"no column {names[0]}" + (f" (or {', '.join(names[1:])})" if len(names) > 1 else "") for names in missing)
    each = "the one that is it" if len(missing) == 1 else "those that are them"
    return f"has {' and '.join(told)}; it has {', '.join(header) or 'none'}. Rename {each}."
