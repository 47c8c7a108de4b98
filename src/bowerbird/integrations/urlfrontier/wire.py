"""Between the interface's messages and what the frontier takes: items in, answers out."""

from __future__ import annotations

from typing import Any

from bowerbird.crawl.guest_items import GuestItem, read_hints
from bowerbird.crawl.guest_places import GuestStanding
from bowerbird.integrations.urlfrontier.messages import CLASSES

URLInfo = CLASSES["URLInfo"]
URLItem = CLASSES["URLItem"]
LAST_DATE = 2**32 - 1  # dates beyond are taken as this


#: metadata of one fetch: sent back with the URL and echoed with the next, it would count again
TOLD_ONCE = ("clicks", "changed")


def read_info(info: Any) -> GuestItem:
    """A URL that was found; its metadata is kept as the bytes it came in, without what is told once and counted."""
    if not info.metadata:
        return GuestItem(info.url, info.key)
    hints = read_hints({name: values.values for name, values in info.metadata.items()})
    lasting = URLInfo(metadata=info.metadata)
    for name in TOLD_ONCE:
        if name in lasting.metadata:
            del lasting.metadata[name]
    kept = lasting.SerializeToString()
    return GuestItem(info.url, info.key, kept, hints)


def read_item(item: Any) -> tuple[str, GuestItem] | None:
    """The crawl ID and what is put there; None where the message is empty."""
    which = item.WhichOneof("item")
    if which is None:
        return None
    if which == "discovered":
        info = item.discovered.info
        return info.crawlID, read_info(info)
    known = item.known
    found = read_info(known.info)
    found.known, found.refetch = True, min(known.refetchable_from_date, LAST_DATE)
    return known.info.crawlID, found


def _field(number: int, data: bytes) -> bytes:
    """A field of bytes as it goes over the wire; none where it is empty."""
    if not data:
        return b""
    size, length = bytearray(), len(data)
    while length > 0x7F:
        size.append(length & 0x7F | 0x80)
        length >>= 7
    size.append(length)
    return bytes((number << 3 | 2,)) + bytes(size) + data


def write_info(standing: GuestStanding, crawl: bytes) -> bytes:
    """A URLInfo, ready to be sent: its metadata goes back as it came. `crawl` is the field of the crawl ID."""
    return _field(1, standing.url.encode()) + _field(2, standing.key.encode()) + standing.metadata + crawl


def crawl_field(crawl_id: str) -> bytes:
    """The field of a URLInfo that names its crawl."""
    return _field(4, crawl_id.encode())


def write_item(standing: GuestStanding, crawl: bytes) -> Any:
    """A URL as it stands: discovered until it was dealt with, then known."""
    item = URLItem(creation_date=standing.created)
    info = URLInfo.FromString(write_info(standing, crawl))
    if standing.known:
        item.known.info.CopyFrom(info)
        item.known.refetchable_from_date = standing.refetch
    else:
        item.discovered.info.CopyFrom(info)
    return item
