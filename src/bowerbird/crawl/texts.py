"""The text of a fetched page, read again from the archive: for snippets, exports and a lost index."""

from __future__ import annotations

from collections.abc import Sequence

from bowerbird.model.errors import ArchiveError
from bowerbird.model.outcome import Outcome
from bowerbird.page.charset import decode_bytes, sniff_charset
from bowerbird.page.html import parse_html
from bowerbird.store.archive import ArchivePlace
from bowerbird.store.archive_reader import Exchange, read_exchange
from bowerbird.store.committed import CommittedState
from bowerbird.store.records import Version
from bowerbird.web.decoding import decode_body
from bowerbird.web.response import FetchResult, parse_headers

MAX_DECODED_BYTES = 1 << 30


def read_archived(state: CommittedState, version: Version, url: str) -> FetchResult | None:
    """The archived answer as if it had just come; None where the archive does not have it."""
    return read_place(state, version.file, version.offset, version.length, url)


def read_place(
    state: CommittedState, file: int | None, offset: int | None, length: int | None, url: str
) -> FetchResult | None:
    """As `read_archived`, of any place in the archive."""
    if file is None or offset is None or length is None:
        return None
    try:
        place = ArchivePlace(state.archive_name(file), offset, length)
        return _as_result(read_exchange(state.folder.archive, place, url=url))
    except ArchiveError:
        return None


def _as_result(exchange: Exchange) -> FetchResult:
    result = FetchResult(0, exchange.url, Outcome.OK, exchange.status, header_block=exchange.header_block)
    result.headers = parse_headers(exchange.header_block)
    result.body = decode_body(exchange.raw_body, result.header("content-encoding"), MAX_DECODED_BYTES).body
    result.raw_body = exchange.raw_body
    result.started_at = exchange.fetched_at
    return result


class ArchiveTexts:
    """Texts of pages by their row, for the index's snippets."""

    def __init__(self, state: CommittedState) -> None:
        self.state = state

    def __call__(self, rows: Sequence[int]) -> list[str]:
        """One text a row; empty where there is none."""
        return [self._text(row) for row in rows]

    def _text(self, row: int) -> str:
        version = self.state.version(row)
        if version is None:
            return ""
        result = read_archived(self.state, version, self.state.url(row))
        if result is None:
            return ""
        charset = sniff_charset(result.body, result.header("content-type"))
        if version.media == "text":
            return decode_bytes(result.body, charset)
        return parse_html(result.body, charset).text
