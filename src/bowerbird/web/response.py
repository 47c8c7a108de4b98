"""What came back: one result per fetch, and the rules that turn statuses and errors into outcomes."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime

import pycurl

from bowerbird.model.outcome import Outcome

RETRY_AFTER_CAP_S = 86_400.0

_BLANK_LINE = re.compile(rb"\n\r?\n")
_STATUS_LINE = re.compile(rb"HTTP/(\d(?:\.\d)?)[ \t]+(\d{3})[ \t]*([^\r\n]*)")
_DIGITS = re.compile(r"\d{1,12}")
_REDIRECTS = frozenset({301, 302, 303, 307, 308})

_CURL_OUTCOMES: dict[int, Outcome] = {
    pycurl.E_COULDNT_RESOLVE_HOST: Outcome.DNS,
    pycurl.E_COULDNT_CONNECT: Outcome.CONNECT,
    pycurl.E_PARTIAL_FILE: Outcome.CONNECT,
    pycurl.E_GOT_NOTHING: Outcome.CONNECT,
    pycurl.E_SEND_ERROR: Outcome.CONNECT,
    pycurl.E_RECV_ERROR: Outcome.CONNECT,
    pycurl.E_OPERATION_TIMEDOUT: Outcome.TIMEOUT,
    pycurl.E_BAD_CONTENT_ENCODING: Outcome.BAD_ENCODING,
    pycurl.E_FILESIZE_EXCEEDED: Outcome.TOO_LARGE,
    pycurl.E_SSL_CONNECT_ERROR: Outcome.TLS,
    pycurl.E_SSL_ENGINE_NOTFOUND: Outcome.TLS,
    pycurl.E_SSL_ENGINE_SETFAILED: Outcome.TLS,
    pycurl.E_SSL_CERTPROBLEM: Outcome.TLS,
    pycurl.E_SSL_CIPHER: Outcome.TLS,
    pycurl.E_PEER_FAILED_VERIFICATION: Outcome.TLS,
    pycurl.E_SSL_CACERT_BADFILE: Outcome.TLS,
    pycurl.E_SSL_SHUTDOWN_FAILED: Outcome.TLS,
    pycurl.E_SSL_CRL_BADFILE: Outcome.TLS,
    pycurl.E_SSL_ISSUER_ERROR: Outcome.TLS,
    pycurl.E_SSL_PINNEDPUBKEYNOTMATCH: Outcome.TLS,
    pycurl.E_SSL_INVALIDCERTSTATUS: Outcome.TLS,
}


@dataclass(slots=True)
class FetchResult:
    """The end of one fetch, good or bad.

    `header_block` is the final response's header block as received, status line included (HTTP/2
    comes as text with the status line `HTTP/2 200`). `raw_body` is the body as on the wire after
    dechunking, `body` the same without its content coding. Bodies are kept only where the outcome
    comes from a response that arrived whole, or the request asked for a part too. Durations are
    real seconds whatever the clock says.
    """

    token: int
    url: str
    outcome: Outcome
    status: int = 0
    reason: str = ""
    http_version: str = ""
    header_block: bytes = b""
    headers: dict[str, list[str]] = field(default_factory=dict)
    raw_body: bytes = b""
    body: bytes = b""
    truncated: bool = False
    request_block: bytes = b""
    remote_ip: str = ""
    started_at: float = 0.0
    elapsed_s: float = 0.0
    first_byte_s: float = 0.0
    retry_after_s: float | None = None
    location: str = ""
    error: str = ""

    def header(self, name: str) -> str:
        """The first value of a header, or an empty string."""
        values = self.headers.get(name.lower())
        return values[0] if values else ""

    def header_list(self, name: str) -> list[str]:
        """Every value of a header, in the order received."""
        return self.headers.get(name.lower(), [])


def final_block(received: bytes) -> bytes:
    """The last response's header block among all header bytes of a transfer: no 1xx before it, no trailers.

    >>> final_block(b"HTTP/1.1 100 Continue\\r\\n\\r\\nHTTP/1.1 200 OK\\r\\nA: b\\r\\n\\r\\nTrailer: x\\r\\n")
    b'HTTP/1.1 200 OK\\r\\nA: b\\r\\n\\r\\n'
    """
    start = 0
    while True:
        blank = _BLANK_LINE.search(received, start)
        end = blank.end() if blank else len(received)
        status = _STATUS_LINE.match(received, start)
        if not (status and status[2].startswith(b"1") and end < len(received)):
            return received[start:end] if start or end < len(received) else received
        start = end


@dataclass(frozen=True, slots=True)
class StatusLine:
    """The first line of a response; code 0 when it cannot be read."""

    code: int
    http_version: str
    reason: str


NO_STATUS = StatusLine(0, "", "")


def parse_status_line(block: bytes) -> StatusLine:
    """Read the first line of a header block.

    >>> parse_status_line(b"HTTP/1.1 404 Not Found\\r\\n\\r\\n")
    StatusLine(code=404, http_version='1.1', reason='Not Found')
    """
    status = _STATUS_LINE.match(block)
    if status is None:
        return NO_STATUS
    return StatusLine(int(status[2]), status[1].decode("ascii"), status[3].decode("latin-1").strip())


def parse_headers(block: bytes) -> dict[str, list[str]]:
    """Header values by lower-case name. Lines that are no headers are passed over, folded ones joined.

    >>> parse_headers(b"HTTP/1.1 200 OK\\r\\nVary: a,\\r\\n b\\r\\nnonsense\\r\\nvary: c\\r\\n\\r\\n")
    {'vary': ['a, b', 'c']}
    """
    headers: dict[str, list[str]] = {}
    values: list[str] | None = None
    for line in block.decode("latin-1").split("\n")[1:]:
        if line[:1] in {" ", "\t"}:
            if values:
                values[-1] = f"{values[-1]} {line.strip()}".strip()
            continue
        name, colon, value = line.partition(":")
        if not colon:
            values = None
            continue
        values = headers.setdefault(name.strip().lower(), [])
        values.append(value.strip())
    return headers


def parse_retry_after(value: str, now_s: float) -> float | None:
    """Seconds that a Retry-After header asks for, from 0 to a day; None when it says nothing usable.

    >>> parse_retry_after("120", 0.0)
    120.0
    >>> parse_retry_after("Thu, 01 Jan 1970 00:01:00 GMT", 0.0)
    60.0
    """
    value = value.strip()
    if not value:
        return None
    if _DIGITS.fullmatch(value) and value.isascii():
        return min(float(value), RETRY_AFTER_CAP_S)
    try:
        wait_s = parsedate_to_datetime(value).timestamp() - now_s
    except (ValueError, OverflowError, TypeError, IndexError):
        return None
    if math.isnan(wait_s):
        return None
    return min(max(wait_s, 0.0), RETRY_AFTER_CAP_S)


def read_location(headers: dict[str, list[str]]) -> str:
    """The Location header. Servers send raw UTF-8 there more often than anything else that is not ASCII."""
    values = headers.get("location")
    if not values:
        return ""
    try:
        return values[0].encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        return values[0]


def outcome_of_status(status: int, location: str, conditional: bool) -> Outcome:
    """What a complete response means. A 304 that nobody asked for means nothing.

    >>> outcome_of_status(410, "", False)
    <Outcome.GONE: 3>
    """
    if 200 <= status < 300:
        return Outcome.OK
    if status == 304 and conditional:
        return Outcome.NOT_MODIFIED
    if status in _REDIRECTS and location:
        return Outcome.REDIRECT
    if status in {404, 410}:
        return Outcome.GONE
    if status in {429, 503}:
        return Outcome.THROTTLED
    if 400 <= status < 500:
        return Outcome.CLIENT_ERROR
    if 500 <= status < 600:
        return Outcome.SERVER_ERROR
    return Outcome.PROTOCOL


def explain_status(status: int) -> str:
    """Why a response with this status was no use, in words."""
    if status == 304:
        return "status 304 although the request had no condition"
    if status in _REDIRECTS:
        return f"status {status} without a Location"
    return f"status {status} is not one to act on"


def outcome_of_error(code: int) -> Outcome:
    """What a transfer error means; those that are not about the network or TLS are breaches of protocol."""
    return _CURL_OUTCOMES.get(code, Outcome.PROTOCOL)
