"""When do bids reach a price? For whole columns, as `Bid.reaches` says it of one."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bowerbird.model.bid import Bids, Shape

F64 = npt.NDArray[np.float64]


def values_at(bids: Bids, now: float) -> F64:
    """What the bids are worth at a time."""
    from bowerbird.appraise.hubs.gains import saturating_gains  # compiled code loads slowly

    amplitude = bids.amplitude.astype(np.float64)
    x = np.maximum(bids.rate.astype(np.float64) * (now - bids.since), 0.0)
    out = amplitude.copy()
    for shape, value in (
        (Shape.DECAY, lambda at: np.exp(-at)),
        (Shape.LINEAR, lambda at: at),
        (Shape.AREA, lambda at: at * at * 0.5),
        (Shape.SATURATING, saturating_gains),
    ):
        mine = bids.shape == shape
        if mine.any():
            out[mine] *= value(x[mine])
    return out


def due_times(bids: Bids, price: float, now: float) -> F64:
    """[ECHO13] p·g(mu·I) = omega: by bid the first time from `now` on at which it is worth `price`, inf = never."""
    from bowerbird.appraise.hubs.gains import saturating_gains_inverse

    due = np.full(len(bids), np.inf)
    due[values_at(bids, now) >= price] = now
    with np.errstate(divide="ignore", invalid="ignore"):
        share = price / bids.amplitude.astype(np.float64)
        rate = bids.rate.astype(np.float64)
        for shape, age in (
            (Shape.LINEAR, lambda at: at),
            (Shape.AREA, lambda at: np.sqrt(2.0 * at)),
            (Shape.SATURATING, saturating_gains_inverse),
        ):
            mine = (bids.shape == shape) & (bids.amplitude > 0) & (rate > 0) & np.isinf(due)
            if mine.any():
                due[mine] = np.maximum(bids.since[mine] + age(share[mine]) / rate[mine], now)
    return due
