"""Was this asked here? What another site makes a browser send, or a browser fetches ahead, nobody has asked.

Browsers say where a request comes from in headers that no page can forge (Fetch Metadata): `Sec-Fetch-Site`,
`Sec-Fetch-Mode`, `Sec-Fetch-User`. They leave them out over plain HTTP to another machine, and programs never send
them: then only `Origin` and `Referer` tell, where they are there.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.datastructures import Headers

AHEAD = ("prefetch", "prerender", "preview")


def is_ahead(headers: Headers) -> bool:
    """Does the browser fetch this before anybody wants it?"""
    said = " ".join(headers.get(name, "") for name in ("sec-purpose", "purpose", "x-purpose", "x-moz")).lower()
    return any(word in said for word in AHEAD)


def is_asked_here(headers: Headers) -> bool:
    """Was this asked by a person on our own pages, in the address bar, or by a program?

    A link or a form of another site never counts: its words are that site's. Of a neighbour within the same site (a
    search box on www.example.org that leads to search.example.org) it counts where a person followed it.
    """
    if is_ahead(headers):
        return False
    site = headers.get("sec-fetch-site")
    if site is None:
        return not _names_another_host(headers)
    if site == "same-site":
        return headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-user") == "?1"
    return site in {"same-origin", "none"}


def _names_another_host(headers: Headers) -> bool:
    ours = headers.get("host", "").lower()
    for name in ("origin", "referer"):
        said = headers.get(name)
        if said is None:
            continue
        try:
            if urlsplit(said).netloc.lower() != ours:
                return True
        except ValueError:
            return True
    return False
