"""One reusable curl handle and the response that is arriving on it."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pycurl

from bowerbird.model.outcome import Outcome
from bowerbird.web.decoding import decode_body
from bowerbird.web.limits import FetchLimits
from bowerbird.web.response import (
    NO_STATUS,
    FetchResult,
    explain_status,
    final_block,
    outcome_of_error,
    outcome_of_status,
    parse_headers,
    parse_retry_after,
    parse_status_line,
    read_location,
)

_DNS_CACHE_S = 300
_RECEIVE_BUFFER_BYTES = 128 << 10
_REFUSE = -1  # anything but the number of bytes taken makes curl end the transfer
# scheme, authority without credentials, path and query; nothing that could not be sent as it is
_URL = re.compile(r"""((?i:https?))://([!"$-.0->A-\[\]-~]+)([/?][!"$-~]*)?(?:#.*)?""")
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_UNSENDABLE = re.compile(r"[^\t\x20-\x7e\x80-\xff]")


@dataclass(slots=True)
class FetchRequest:
    """One GET. `etag` and `last_modified` make it conditional; `any_type` lifts the content type filter.

    With `keep_partial`, a body over the limit is still TOO_LARGE, but comes with what the limit holds of it.
    """

    token: int
    url: str
    etag: str = ""
    last_modified: str = ""
    any_type: bool = False
    max_body_bytes: int | None = None
    keep_partial: bool = False


def conditional_headers(request: FetchRequest) -> list[str]:
    """The validators to send. One that could break out of its header line is left out."""
    headers = []
    if request.etag and not _UNSENDABLE.search(request.etag):
        headers.append(f"If-None-Match: {request.etag}")
    if request.last_modified and not _UNSENDABLE.search(request.last_modified):
        headers.append(f"If-Modified-Since: {request.last_modified}")
    return headers


def find_ca_bundle() -> str:
    """The file of trusted certificates: SSL_CERT_FILE, else the system's, else certifi's, else none ("")."""
    # a curl that came as a wheel has the path of another distribution compiled in
    candidates = [os.environ.get("SSL_CERT_FILE", ""), ssl.get_default_verify_paths().cafile or ""]
    with contextlib.suppress(ImportError):
        import certifi

        candidates.append(certifi.where())
    return next((path for path in candidates if path and Path(path).is_file()), "")


class _LentSocket(socket.socket):
    """A socket that curl copies: ours closes, without complaint, as soon as curl has its own descriptor."""

    def __del__(self) -> None:
        self.close()


class Transfer:
    """A curl handle with fixed options, used for one request after another."""

    def __init__(
        self,
        limits: FetchLimits,
        headers: list[str],
        permits: Callable[[str], bool],
        ca_bundle: str,
    ) -> None:
        self.curl: Any = pycurl.Curl()
        self.request = FetchRequest(0, "")
        self.serial = 0  # tells this use of the handle from earlier ones
        self.received = bytearray()  # every header line so far
        self._limits = limits
        self._permits = permits
        self._common_headers = headers
        self._sent_headers = headers
        self._sent_max_file_bytes = -1
        self._max_body_bytes = limits.max_body_bytes
        self._max_header_bytes = limits.max_header_bytes
        self._chunks: list[bytes] = []
        self._body_bytes = 0
        self._block = b""
        self._status = NO_STATUS
        self._headers: dict[str, list[str]] = {}
        self._verdict: Outcome | None = None  # why we ended the transfer ourselves
        self._verdict_error = ""
        self._refused_ip = ""
        self._resolved = False
        self._target: re.Match[str] | None = None
        self._started_at = 0.0
        self._started_s = 0.0
        self._set_options(ca_bundle)

    def _set_options(self, ca_bundle: str) -> None:
        setopt = self.curl.setopt
        setopt(pycurl.NOSIGNAL, 1)
        setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
        setopt(pycurl.PROXY, "")  # an empty proxy also overrides the environment
        setopt(pycurl.NETRC, pycurl.NETRC_IGNORED)
        setopt(pycurl.FOLLOWLOCATION, 0)
        setopt(pycurl.PATH_AS_IS, 1)
        setopt(pycurl.HTTP09_ALLOWED, 0)
        setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS)
        setopt(pycurl.HTTP_CONTENT_DECODING, 0)
        setopt(pycurl.HTTPHEADER, self._common_headers)
        setopt(pycurl.SSL_VERIFYPEER, 1)
        setopt(pycurl.SSL_VERIFYHOST, 2)
        if ca_bundle:
            setopt(pycurl.CAINFO, ca_bundle)
        setopt(pycurl.DNS_CACHE_TIMEOUT, _DNS_CACHE_S)
        setopt(pycurl.BUFFERSIZE, _RECEIVE_BUFFER_BYTES)
        setopt(pycurl.CONNECTTIMEOUT_MS, max(1, round(self._limits.connect_s * 1000)))
        setopt(pycurl.TIMEOUT_MS, max(1, round(self._limits.total_s * 1000)))
        setopt(pycurl.OPENSOCKETFUNCTION, self._open_socket)
        setopt(pycurl.HEADERFUNCTION, self._take_header)
        setopt(pycurl.WRITEFUNCTION, self._take_body)

    def start(self, request: FetchRequest, serial: int, started_at: float, started_s: float) -> str:
        """Prepare the handle for a request. Returns what is wrong with the request, or an empty string."""
        self.request = request
        self.serial = serial
        self.received.clear()
        self._chunks = []
        self._body_bytes = 0
        self._block = b""
        self._status = NO_STATUS
        self._headers = {}
        self._verdict = None
        self._refused_ip = ""
        self._resolved = False
        self._started_at = started_at
        self._started_s = started_s
        url = _URL.fullmatch(request.url)
        if url is None:
            return "not an http or https URL in canonical form (ASCII, no spaces, no credentials)"
        headers = self._common_headers
        if (request.etag or request.last_modified) and (validators := conditional_headers(request)):
            headers = headers + validators
        if headers is not self._sent_headers:
            self.curl.setopt(pycurl.HTTPHEADER, [line.encode("latin-1") for line in headers])
            self._sent_headers = headers
        limit_bytes = request.max_body_bytes
        if limit_bytes is None:
            limit_bytes = self._limits.max_body_bytes
        self._max_body_bytes = limit_bytes
        # curl would refuse by Content-Length alone; 0 means no limit to it, and _take_body is exact anyway
        max_file_bytes = 0 if request.keep_partial else max(1, limit_bytes)
        if max_file_bytes != self._sent_max_file_bytes:
            self.curl.setopt(pycurl.MAXFILESIZE_LARGE, max_file_bytes)
            self._sent_max_file_bytes = max_file_bytes
        self._target = url
        self.curl.setopt(pycurl.URL, request.url.partition("#")[0])
        return ""

    def _open_socket(self, purpose: int, address: Any) -> Any:
        """The only place where a connection begins: after DNS, with the address that will be used."""
        self._resolved = True
        ip = address.addr[0]
        if isinstance(ip, bytes):
            ip = ip.decode("ascii", "replace")
        if not self._permits(ip):
            self._refused_ip = ip
            return pycurl.SOCKET_BAD
        try:
            return _LentSocket(address.family, address.socktype, address.protocol)
        except OSError:
            return pycurl.SOCKET_BAD

    def _take_header(self, line: bytes) -> int | None:
        received = self.received
        received += line
        if len(received) > self._max_header_bytes:
            self._end(Outcome.PROTOCOL, f"response headers are larger than {self._max_header_bytes} bytes")
            return _REFUSE
        return None

    def _take_body(self, chunk: bytes) -> int | None:
        if not self._body_bytes:
            self._read_head()
            if not self._admit():
                return _REFUSE
        self._body_bytes += len(chunk)
        if self._body_bytes > self._max_body_bytes:
            if self.request.keep_partial:
                self._chunks.append(chunk[: len(chunk) - self._body_bytes + self._max_body_bytes])
            self._end(Outcome.TOO_LARGE, f"body is larger than {self._max_body_bytes} bytes")
            return _REFUSE
        self._chunks.append(chunk)
        return None

    def _end(self, verdict: Outcome, error: str) -> None:
        self._verdict = verdict
        self._verdict_error = error

    def _read_head(self) -> None:
        self._block = final_block(bytes(self.received))
        self._status = parse_status_line(self._block)
        self._headers = parse_headers(self._block)

    def _admit(self) -> bool:
        """Is the body wanted, now that the headers are known?"""
        if self.request.any_type:
            return True
        content_type = self._headers.get("content-type")
        if content_type is None or self._limits.accepts_type(content_type[0]):
            return True
        if self._status.code != 200:
            return True
        self._end(Outcome.WRONG_TYPE, f"content type {content_type[0]!r} is not one that is indexed")
        return False

    def fail(self, outcome: Outcome, error: str) -> FetchResult:
        """The result of a transfer that came to nothing."""
        result = self._describe(outcome)
        result.elapsed_s = time.monotonic() - self._started_s
        result.error = error
        return result

    def expire(self) -> FetchResult:
        """The result of a transfer whose first byte did not come in time."""
        return self.fail(*self._read_timeout(f"no response within {self._limits.first_byte_s:g} s"))

    def _read_timeout(self, error: str) -> tuple[Outcome, str]:
        # on a connection that is used again there is nothing to resolve, but a request is sent
        if not self._resolved and not self.curl.getinfo(pycurl.REQUEST_SIZE):
            return Outcome.DNS, "name resolution took too long"
        return Outcome.TIMEOUT, error

    def finish(self, code: int, message: str, now_s: float) -> FetchResult:
        """The result of a transfer that curl says is over, with its error code (0: none)."""
        curl = self.curl
        if not self._block and self.received and self._verdict is None:  # no body came
            self._read_head()
            if code == 0 and not self._admit():
                code = pycurl.E_WRITE_ERROR
        status = self._status.code
        conditional = self._sent_headers is not self._common_headers
        location = read_location(self._headers)
        by_status = outcome_of_status(status, location, conditional)
        outcome, error = by_status, ""
        if code != 0:
            outcome, error = self._explain(code, message)
        result = self._describe(outcome)
        result.elapsed_s = curl.getinfo(pycurl.TOTAL_TIME)
        result.remote_ip = curl.getinfo(pycurl.PRIMARY_IP) or self._refused_ip
        result.error = error
        if not self._block:
            return result
        result.status = status
        result.first_byte_s = curl.getinfo(pycurl.STARTTRANSFER_TIME)
        result.header_block = self._block
        result.headers = self._headers
        result.location = location
        if "retry-after" in self._headers:
            result.retry_after_s = parse_retry_after(self._headers["retry-after"][0], now_s)
        if outcome is Outcome.TOO_LARGE and by_status not in {Outcome.OK, Outcome.PROTOCOL}:
            # an error page without end is still that error
            result.outcome = by_status
            result.truncated = True
        elif code == 0 or (outcome is Outcome.TOO_LARGE and self.request.keep_partial):
            self._deliver_body(result)
        self._chunks = []  # an idle handle holds no page
        return result

    def _explain(self, code: int, message: str) -> tuple[Outcome, str]:
        if self._verdict is not None:
            return self._verdict, self._verdict_error
        outcome = outcome_of_error(code)
        if outcome is Outcome.TIMEOUT:
            return self._read_timeout(message)
        if outcome is Outcome.CONNECT and self._refused_ip and code == pycurl.E_COULDNT_CONNECT:
            return Outcome.ADDRESS_REFUSED, f"address {self._refused_ip} may not be fetched from"
        if outcome is Outcome.TOO_LARGE:
            return outcome, f"body is larger than {self._max_body_bytes} bytes"
        return outcome, message or f"the transfer ended with curl error {code}"

    def _deliver_body(self, result: FetchResult) -> None:
        raw = b"".join(self._chunks)
        codings = self._headers.get("content-encoding")
        encoding = ", ".join(codings) if codings else ""
        limit_bytes, keep_partial = self._limits.max_decoded_bytes, self.request.keep_partial
        decoded = decode_body(raw, encoding, limit_bytes, keep_partial=keep_partial)
        result.raw_body = raw
        result.body = decoded.body
        result.truncated = decoded.truncated or result.outcome is Outcome.TOO_LARGE
        if result.outcome is Outcome.PROTOCOL:
            result.error = explain_status(result.status)
        if decoded.fault:
            result.error = decoded.fault
            if result.outcome is Outcome.OK:
                result.outcome = Outcome.BAD_ENCODING

    def _describe(self, outcome: Outcome) -> FetchResult:
        return FetchResult(
            token=self.request.token,
            url=self.request.url,
            outcome=outcome,
            reason=self._status.reason,
            http_version=self._status.http_version,
            request_block=self._request_block() if self._block else b"",
            started_at=self._started_at,
        )

    def _request_block(self) -> bytes:
        """The request as curl writes it. HTTP/2 has no such text: it is given in the form of HTTP/1."""
        if self._target is None:
            return b""
        scheme, host, target = self._target.groups(default="/")
        host = host.removesuffix(_DEFAULT_PORTS[scheme.lower()])
        if target.startswith("?"):
            target = "/" + target
        protocol = "HTTP/2" if self._status.http_version.startswith("2") else "HTTP/1.1"
        lines = [f"GET {target} {protocol}", f"Host: {host}", *self._sent_headers, "", ""]
        return "\r\n".join(lines).encode("latin-1", "replace")
