"""A CDXJ index of the archive, as replay tools (pywb, OutbackCDX) read it."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TextIO

import orjson

from bowerbird.store.archive_reader import ArchivedRecord, iterate_records

_URL = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*)://(?P<host>[^/?#]*)(?P<path>[^?#]*)(?P<query>\?[^#]*)?", re.I)
_DEFAULT_PORTS = {"http": "80", "https": "443"}
_WWW = re.compile(r"www\d*\.")


def write_cdxj(folder: Path, out: TextIO, *, ends: Mapping[str, int] | None = None) -> int:
    """Write one line for each response and revisit of an archive (up to `ends`), sorted; return how many."""
    lines = sorted(cdxj_line(record) for record in iterate_records(folder, ends=ends))
    out.writelines(lines)
    return len(lines)


def cdxj_line(record: ArchivedRecord) -> str:
    """The CDXJ line of one record: SURT key, timestamp, JSON."""
    exchange = record.exchange
    mime = exchange.header("Content-Type").partition(";")[0].strip().lower()
    about = {
        "url": exchange.url,
        "mime": "warc/revisit" if exchange.is_revisit else mime or "unk",
        "status": str(exchange.status),
        "digest": record.payload_digest,
        "length": str(record.length),
        "offset": str(record.offset),
        "filename": record.file,
    }
    stamp = time.strftime("%Y%m%d%H%M%S", time.gmtime(exchange.fetched_at))
    return f"{surt(exchange.url)} {stamp} {orjson.dumps(about).decode()}\n"


def surt(url: str) -> str:
    """The sort-friendly form of a URL: host reversed, without scheme, `www.`, default port and fragment.

    >>> surt("https://www.Example.org:443/a/B?z=1&a=2#top")
    'org,example)/a/b?a=2&z=1'
    """
    parts = _URL.match(url)
    if parts is None:
        return url.replace(" ", "%20").lower()
    host = parts["host"].rpartition("@")[2].lower()
    name, port = host, ""
    if (colon := host.rfind(":")) > host.rfind("]"):
        name, port = host[:colon], host[colon + 1 :]
    name = _WWW.sub("", name.rstrip("."), count=1) if _WWW.match(name) else name.rstrip(".")
    is_address = name.startswith("[") or name.replace(".", "").isdigit()
    key = name if is_address else ",".join(reversed(name.split(".")))
    if port and port != _DEFAULT_PORTS.get(parts["scheme"].lower()):
        key += ":" + port
    path = parts["path"].rstrip("/") or "/"
    query = "&".join(sorted((parts["query"] or "")[1:].split("&")))
    return f"{key}){path}{'?' + query if query else ''}".replace(" ", "%20").lower()
