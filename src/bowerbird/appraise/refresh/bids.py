"""What a method of refreshing says of pages: bids as columns, and what it may be told besides its inputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bowerbird.model.bid import Shape

F64 = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class RefreshOptions:
    """The refreshes a second that there are for all pages, and from which share of changed shingles a change counts."""

    budget_per_s: float
    threshold: float = 0.1


@dataclass(frozen=True, slots=True)
class RefreshBids:
    """By page amplitude and rate; one shape. With `listens`, the rate is that of changes, and signals move the age."""

    amplitude: F64
    rate_per_s: F64
    shape: Shape
    listens: bool = False
    note: str = ""

    def values(self, age_s: npt.ArrayLike) -> F64:
        """The bids at these ages."""
        x = self.rate_per_s * np.asarray(age_s, np.float64)
        if self.shape is Shape.LINEAR:
            return self.amplitude * x
        if self.shape is Shape.AREA:
            return self.amplitude * x * x * 0.5
        return self.amplitude * np.where(x < 1e-3, x * x * (0.5 - x / 3.0), -np.expm1(-x) - x * np.exp(-x))
