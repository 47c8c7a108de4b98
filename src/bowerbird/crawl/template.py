"""The commented bowerbird.toml that `bowerbird init` writes. A test keeps it complete."""

from __future__ import annotations

import dataclasses
import typing

import orjson

from bowerbird.crawl.settings import Settings

#: section -> (what it is about, key -> comment)
COMMENTS: dict[str, tuple[str, dict[str, str]]] = {
    "crawl": (
        "who we are, what we crawl, in which order",
        {
            "contact": "an address or page where a webmaster reaches you; sent with every request",
            "product": "the crawler's name, of letters, - and _: its user agent, and the name robots.txt addresses",
            "policy": "auto (every fetch in expected clicks, one price), or "
            "new pages (breadth-first, random, in-degree, host-fair; by studies of the whole crawl: "
            "pagerank, query-driven, hybrid, boosted, rw, rw-eg, learned) + refresh (fixed, adaptive; by studies of "
            "all fetched pages: user-centric, user-centric-linear, user-centric-saturating, sbr, ebr, click-ebr, "
            "lambda-crawl, azar, uniform, proportional) + hubs (hub-interval; by studies of all hubs: echo)",
            "scope": "which links to follow: host (of a seed), domain (of a seed), anywhere",
            "include": "regular expressions; a URL must match one, if there are any",
            "exclude": "regular expressions; a URL must match none",
            "max_depth": "links from a seed that was given, at most; seeds that the crawl chose do not count",
            "max_redirects": "redirects in a row, at most",
            "max_links_per_page": "links read from one page, at most",
            "follow_nofollow": "follow links marked nofollow",
            "well_known_feeds": 'paths tried on every host for a feed that no page names, such as "/feed"',
            "workers": "processes that fetch and read; 0 = one per core",
            "rate_per_s": "fetches a second in all; 0 = as fast as politeness allows",
            "max_errors": "tries before a URL that keeps failing is given up",
            "retry_base_s": "wait after a first error; doubles with each further one",
            "lease_s": "a worker that does not answer for so long has lost its URL",
            "nice": "how far the crawl stands back for searches and others on the same machine: 0 to 19",
        },
    ),
    "politeness": (
        "how gently a host is treated",
        {
            "delay_s": "seconds between two fetches of a host; its robots.txt may ask for more",
            "connections_per_host": "open at once to a host; above 1 only where delay_s = 0",
            "max_crawl_delay_s": "a longer Crawl-delay in robots.txt is taken as this",
        },
    ),
    "fetch": (
        "limits on one fetch",
        {
            "connect_s": "seconds to connect",
            "first_byte_s": "seconds to the first byte of the answer",
            "total_s": "seconds in all",
            "max_body_bytes": "bytes on the wire",
            "max_decoded_bytes": "bytes after decompression",
            "max_header_bytes": "bytes of headers",
            "max_connections": "open at once in one worker",
            "content_types": "what is read; everything else is left after its headers",
        },
    ),
    "network": (
        "what the crawler may connect to",
        {
            "allow_addresses": 'private networks allowed by name: "loopback", "private", or CIDR such as "10.1.0.0/16"',
        },
    ),
    "urls": (
        "the one canonical form of a URL",
        {
            "drop_params": "query parameters that only track; a trailing * is a prefix",
            "session_params": "query and path parameters that name a session",
            "token_params": "parameters dropped when their value looks like a session token",
            "sort_query": "sort query parameters: for sites that ignore their order",
            "max_length": "characters, at most",
        },
    ),
    "refresh": (
        "when to look at a known page again",
        {
            "interval_s": "seconds to the first refresh; by studies: as many refreshes as if all pages had this one",
            "min_interval_s": "never sooner",
            "max_interval_s": "adaptive: never later; under auto what gains little may wait longer",
            "longer": "adaptive: the interval grows by this share when a page had not changed",
            "shorter": "adaptive: it shrinks by this share when it had",
            "hub_interval_s": "seconds between visits to a sitemap or feed; echo: as many visits as if all had it",
            "gone_interval_s": "seconds before a page that was gone is tried again",
            "explore": "by studies: this share of the refreshes goes to all pages evenly, so that none is forgotten",
            "threshold": "sbr, ebr, click-ebr: a change counts from this share of five-word shingles changed on",
            "study_every_s": "seconds between two studies of known pages, and ten times as long as the last one took",
        },
    ),
    "frontier": (
        "how the worth of new pages is studied, for policies that look at the whole crawl",
        {
            "study_every_s": "seconds between two studies, and ten times as long as the last one took",
            "damping": "pagerank, rw, rw-eg: how much of its value a page passes on",
            "real_share": "rw-eg: the weight of links against that of being linked together, 0 to 1",
            "max_queries": "query-driven, hybrid, learned: so many of the most frequent queries are looked at",
            "query_share": "and this share of them has candidates among new pages looked for, the neediest first",
        },
    ),
    "hubs": (
        "how hubs are studied (policy echo): feeds, sitemaps, main pages and others that announce new pages",
        {
            "study_every_s": "seconds between two studies, and ten times as long as the last one took",
            "half_life_days": "interest in a new page halves in so many days, until clicks tell",
            "page_age_days": "a page that a main page links to may be a hub once it has been known for so long",
            "explore": "this share of the visits goes to all hubs evenly, so that none is left alone for ever",
        },
    ),
    "seeds": (
        "pages from which most of what is worth having is reached, chosen anew while the crawl runs",
        {
            "study_every_s": "seconds between two choices, from 200 fetched pages on; 0 = none are chosen or gone by",
            "k": "how many, at most",
            "hops": "a seed covers what is so many links away",
            "worth_change": "others take the place of those before only if they cover more by this share of it",
        },
    ),
    "budget": (
        "how policy auto weighs new pages, refreshes and hubs against each other",
        {
            "horizon_days": "the clicks of a new page count for so long ahead",
            "study_every_s": "seconds between two looks at what was expected of fetches and what they gained",
            "correct": "a kind of fetch that gains more or less than expected is expected to from then on",
        },
    ),
    "traps": (
        "bounds on endless sites",
        {
            "urls_per_pattern": "URLs of one pattern (digits and query values aside) taken on trust",
            "growth_per_novel_page": "more for each page of the pattern that was no near-duplicate",
            "path_repetitions": "the same path segment, at most",
            "near_duplicate_at": "share of equal five-word shingles from which a page counts as a copy",
        },
    ),
    "archive": (
        "the WARC archive",
        {"max_file_mb": "a new file after so many megabytes", "gzip_level": "0 (fast) to 3 (small)"},
    ),
    "index": (
        "the search index",
        {
            "commit_every_s": "new pages are searchable after about so long",
            "heap_mb": "memory of the index writer",
        },
    ),
    "demand": (
        "what is remembered of searchers, and how much of an answer they see",
        {
            "half_life_days": "a query or click counts half after so many days",
            "min_occurrences": "a query's text is stored only once it was asked so often",
            "visibility": "how likely a rank is seen: power (rank^-1.5), top-k (the first ranks), fitted (from clicks)",
            "visible_ranks": "the ranks that are seen, for top-k",
        },
    ),
    "quality": (
        "how the repository's quality is measured",
        {
            "probe_share": "share of fetches that go to pages drawn by chance: they measure what the others miss",
            "sample": "a measurement rests on so many of the latest probes",
            "max_age_days": "of which none is older than this",
            "max_queries": "and on so many of the most frequent queries",
            "every_s": "seconds between two measurements while `bowerbird serve` runs",
        },
    ),
}


def settings_text(values: dict[str, dict[str, object]]) -> str:
    """The whole file, with `values` in place of defaults; a default that was not chosen is commented out."""
    lines = [
        "# Settings of this crawl. A line that begins with '# key =' shows a default: take the '# ' away to change it.",
        "",
    ]
    for section, kind in typing.get_type_hints(Settings).items():
        about, comments = COMMENTS[section]
        lines += [f"[{section}]  # {about}"]
        chosen = values.get(section, {})
        defaults = kind()
        for field in dataclasses.fields(kind):
            given = field.name in chosen
            value = chosen[field.name] if given else getattr(defaults, field.name)
            lines.append(f"# {comments[field.name]}")
            lines.append(f"{'' if given else '# '}{field.name} = {toml_value(value)}")
        lines.append("")
    return "\n".join(lines)


def toml_value(value: object) -> str:
    """A value as TOML writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(toml_value(item) for item in value) + "]"
    if isinstance(value, str):
        return orjson.dumps(value).decode()
    return str(value)
