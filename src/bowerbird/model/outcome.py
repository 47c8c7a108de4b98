"""What became of a fetch. Expected failures are values of this enum, never exceptions."""

from __future__ import annotations

from enum import IntEnum


class Outcome(IntEnum):
    """The result of one fetch (stored as its number: never renumber, only append)."""

    OK = 0
    NOT_MODIFIED = 1
    REDIRECT = 2
    GONE = 3  # 404 and 410
    CLIENT_ERROR = 4  # other 4xx
    SERVER_ERROR = 5  # 5xx other than 503
    THROTTLED = 6  # 429 and 503
    TIMEOUT = 7  # connect, first byte or total
    DNS = 8
    CONNECT = 9  # refused, reset, closed early
    TLS = 10
    PROTOCOL = 11  # not HTTP as we know it
    TOO_LARGE = 12  # body over the limit
    BAD_ENCODING = 13  # content-encoding damaged, unknown, or a decompression bomb
    WRONG_TYPE = 14  # not a content type we index
    ADDRESS_REFUSED = 15  # private, loopback or link-local address
    ROBOTS = 16  # excluded by robots.txt
    REDIRECT_LIMIT = 17  # too many hops
    UNPARSABLE = 18  # bytes that a parser could not read
    ABANDONED = 19  # the worker was lost while it held the lease
    FORGOTTEN = 20  # a person removed it
    ADDED = 21  # a person put it (back) in line
    HOST_UNREACHABLE = 22  # robots.txt could not be had, so nothing of the host is fetched for now
    OUT_OF_SCOPE = 23  # the settings say so by now

    @property
    def label(self) -> str:
        """The name as people read it: `not-modified`."""
        return self.name.lower().replace("_", "-")

    @property
    def answered(self) -> bool:
        """Did the host answer over HTTP?"""
        return self in ANSWERED

    @property
    def transient(self) -> bool:
        """Is it worth trying again soon?"""
        return self in TRANSIENT


#: journal entries for which no host was asked
DECISIONS_WITHOUT_FETCH = (
    Outcome.ROBOTS,
    Outcome.FORGOTTEN,
    Outcome.ADDED,
    Outcome.HOST_UNREACHABLE,
    Outcome.OUT_OF_SCOPE,
)
ANSWERED = frozenset(
    {
        Outcome.OK,
        Outcome.NOT_MODIFIED,
        Outcome.REDIRECT,
        Outcome.GONE,
        Outcome.CLIENT_ERROR,
        Outcome.SERVER_ERROR,
        Outcome.THROTTLED,
        Outcome.WRONG_TYPE,
        Outcome.TOO_LARGE,
        Outcome.BAD_ENCODING,
        Outcome.REDIRECT_LIMIT,
        Outcome.UNPARSABLE,
    }
)
TRANSIENT = frozenset(
    {
        Outcome.SERVER_ERROR,
        Outcome.THROTTLED,
        Outcome.TIMEOUT,
        Outcome.DNS,
        Outcome.CONNECT,
        Outcome.PROTOCOL,
        Outcome.ABANDONED,
    }
)
#: a page, or where it is now
GOOD = (Outcome.OK, Outcome.NOT_MODIFIED, Outcome.REDIRECT)
#: no page came of them, but nothing went wrong either
NO_ERRORS = (Outcome.GONE, Outcome.ROBOTS, Outcome.OUT_OF_SCOPE)
