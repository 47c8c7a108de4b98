"""What the columns of files and tables may be called. The first of each is its name in messages."""

from __future__ import annotations

SOURCES = ("source", "from", "src", "from_url", "source_url")
TARGETS = ("target", "to", "dst", "destination", "to_url", "target_url")
PAGES = ("page", "url", "name", "title", "slug")
CLICKS = ("clicks", "views", "count", "visits", "impact")
QUERIES = ("query", "text", "terms")
FREQUENCIES = ("frequency", "count", "clicks", "n")
