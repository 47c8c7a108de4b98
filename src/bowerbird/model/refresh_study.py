"""A study of known pages: when each of them is worth a refresh, worked out for the whole crawl at once.

Bids are in prices: what the refreshes that a budget buys clear at is 1, the reserve, so a page is due when its bid
reaches 1. A study is made now and then; the bids are read off it until the next one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

F32 = npt.NDArray[np.float32]
U8 = npt.NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class RefreshDetails:
    """What the bids rest on, by row, for people who ask why."""

    loss: F32  # share of quality lost while a change is missed
    growth_per_s: F32  # of the gain of a refresh with the page's age, while that is short
    certainty: F32  # the changes a second are known as well as from so many changes seen
    stake: F32  # share of quality that a change of the whole page could move


@dataclass(frozen=True, slots=True)
class ValidatorTrust:
    """How far the validators of hosts are believed, by host."""

    not_modified: F32  # share of changes that move them: so much of a visit without a change is a 304
    date_recall: F32  # share of changes that Last-Modified tells of
    date_false_per_s: F32  # how often it moves without one


@dataclass(frozen=True, slots=True)
class RefreshStudy:
    """What a method found out about the first `count` rows; NaN where a row was no fetched page."""

    at: float
    method: str
    count: int
    amplitude: F32  # in prices
    rate_per_s: F32
    shape: U8
    interval_s: F32  # the age at which it is due if its site says nothing
    changes_per_s: F32
    host_interval_s: F32  # the mean by host, for pages fetched later; NaN where a host had none
    default_interval_s: float  # for hosts found later
    longest_s: float  # no page waits longer, whatever its site says
    recall: F32  # by host, of what sites say of changes; empty where the method does not listen to them
    false_rate_per_s: F32  # by host
    price: float  # in the unit of the method
    budget_per_s: float  # refreshes
    details: RefreshDetails | None = None
    trust: ValidatorTrust | None = None
    gain: F32 | None = None  # the amplitude in shares of Q times seconds, of bids whose rate is that of changes
    stale_loss: F32 | None = None  # share of Q lost while a change is missed, of all
    most_changes: F32 | None = None  # missed ones that take all that a page has at stake
    host_cost: F32 | None = None  # by host, of a refresh, in first fetches there
    clicks_per_s: float = 0.0  # that searchers make in all; 0 = not known
    info: dict[str, str | float] = field(default_factory=dict)
