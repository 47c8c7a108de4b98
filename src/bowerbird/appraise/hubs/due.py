"""When do bids reach a price? For whole columns, as `Bid.reaches` says it of one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bowerbird.model.bid import Bids, Shape

F64 = npt.NDArray[np.float64]


def values_at(bids: Bids, now: float | F64) -> F64:
    """What the bids are worth at a time, or each at its own."""
    amplitude = bids.amplitude.astype(np.float64)
    x = np.maximum(bids.rate.astype(np.float64) * (now - bids.since), 0.0)
    out = amplitude.copy()
    for shape, value in (
        (Shape.DECAY, lambda at: np.exp(-at)),
        (Shape.LINEAR, lambda at: at),
        (Shape.AREA, lambda at: at * at * 0.5),
        (Shape.SATURATING, _gains),
    ):
        mine = bids.shape == shape
        if mine.any():
            out[mine] *= value(x[mine])
    return out


def due_sooner(own: Bids, theirs: Bids, price: float, now: float) -> npt.NDArray[np.bool_]:
    """Which bids reach a price before those beside them; of two that do by now, those that are higher."""
    first, other = due_times(own, price, now), due_times(theirs, price, now)
    higher = values_at(own, now) > values_at(theirs, now)
    return np.asarray((first < other) | ((first == other) & higher))


def due_times(bids: Bids, price: float, now: float) -> F64:
    """[ECHO13] p·g(mu·I) = omega: by bid the first time from `now` on at which it is worth `price`, inf = never."""
    due = np.full(len(bids), np.inf)
    due[values_at(bids, now) >= price] = now
    with np.errstate(divide="ignore", invalid="ignore"):
        share = price / bids.amplitude.astype(np.float64)
        rate = bids.rate.astype(np.float64)
        for shape, age in (
            (Shape.LINEAR, lambda at: at),
            (Shape.AREA, lambda at: np.sqrt(2.0 * at)),
            (Shape.SATURATING, _gains_inverse),
        ):
            mine = (bids.shape == shape) & (bids.amplitude > 0) & (rate > 0) & np.isinf(due)
            if mine.any():
                due[mine] = np.maximum(bids.since[mine] + age(share[mine]) / rate[mine], now)
    return due


def _gains(at: F64) -> F64:
    from bowerbird.appraise.hubs.gains import saturating_gains  # compiled code loads slowly

    return saturating_gains(at)


def _gains_inverse(share: F64) -> F64:
    from bowerbird.appraise.hubs.gains import saturating_gains_inverse

    return saturating_gains_inverse(share)
