"""Validators of two versions, compared."""

from __future__ import annotations

import pytest

from bowerbird.model.validators import Validators, compare_validators

OLD, NEW = "Thu, 01 Jan 2026 00:00:00 GMT", "Fri, 02 Jan 2026 00:00:00 GMT"


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        (("", ""), ('"a"', OLD), Validators.NONE),
        (('"a"', OLD), ("", ""), Validators.NONE),
        (('"a"', ""), ('"a"', OLD), Validators.ETAG_SAME),
        (('"a"', ""), ('W/"a"', ""), Validators.ETAG_SAME),
        (('"a"', OLD), ('"b"', OLD), Validators.ETAG_MOVED | Validators.DATE_SAME),
        (('"a"', OLD), ('"a"', NEW), Validators.ETAG_SAME | Validators.DATE_MOVED),
        (("", OLD), ('"b"', NEW), Validators.DATE_MOVED),
    ],
)
def test_what_moved(before: tuple[str, str], after: tuple[str, str], found: Validators) -> None:
    assert compare_validators(before, after) == found
    assert compare_validators(before, after, unasked=True) == found | Validators.UNASKED
