"""What servers send so that an unchanged page need not be sent again: ETag and Last-Modified, compared."""

from __future__ import annotations

from enum import IntFlag


class Validators(IntFlag):
    """What the validators of an answer did since the version before; neither same nor moved where one had none."""

    NONE = 0
    ETAG_SAME = 1
    ETAG_MOVED = 2
    DATE_SAME = 4
    DATE_MOVED = 8
    UNASKED = 16  # the page was asked for without conditions: it would have come whatever the validators say


def compare_validators(before: tuple[str, str], after: tuple[str, str], *, unasked: bool = False) -> Validators:
    """Of two versions, each (ETag, Last-Modified); a weak ETag equals the strong one, as in conditional requests.

    >>> compare_validators(('"a"', ""), ('W/"a"', "Thu, 01 Jan 2026 00:00:00 GMT"))
    <Validators.ETAG_SAME: 1>
    """
    found = Validators.UNASKED if unasked else Validators.NONE
    etags = before[0].removeprefix("W/"), after[0].removeprefix("W/")
    if all(etags):
        found |= Validators.ETAG_SAME if etags[0] == etags[1] else Validators.ETAG_MOVED
    if before[1] and after[1]:
        found |= Validators.DATE_SAME if before[1] == after[1] else Validators.DATE_MOVED
    return found
