"""The bid: expected clicks gained by one fetch, as a function of time. All the scheduler knows of a URL.

With x = rate · (now - since):

| shape      | value           | who bids so                                   |
|------------|-----------------|-----------------------------------------------|
| constant   | A               | a new page whose worth does not fade          |
| decay      | A·exp(-x)       | a new page whose interest fades               |
| linear     | A·x             | a refresh whose loss grows with age           |
| area       | A·x²/2          | the optimal index under a linear loss         |
| saturating | A·g(x)          | the optimal index under a saturating loss     |

g(x) = 1 - (1 + x)·exp(-x).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


class Shape(IntEnum):
    """How a bid moves in time."""

    CONSTANT = 0
    DECAY = 1
    LINEAR = 2
    AREA = 3
    SATURATING = 4


def saturating_gain(x: float) -> float:
    """[ECHO13] g(x) = 1 - (1 + x)·exp(-x): the index of an item whose loss saturates.

    Plain arithmetic, so that kernels compile the same lines.

    >>> saturating_gain(1.0) == 1 - 2 / math.e
    True
    """
    if x < 0.05:
        # the closed form loses its digits here: g(x) = sum over k >= 2 of (-1)^k·(k - 1)/k!·x^k
        tail = 1 / 144 - x * (1 / 840 - x * (1 / 5760 - x / 45360))
        return x * x * (1 / 2 - x * (1 / 3 - x * (1 / 8 - x * (1 / 30 - x * tail))))
    return -(math.expm1(-x) + x * math.exp(-x))


def saturating_gain_inverse(y: float) -> float:
    """[ECHO13] g^-1(y) = -1 - W_{-1}(-(1 - y)/e), for y in [0, 1).

    >>> round(saturating_gain_inverse(1 - 2 / math.e), 12)
    1.0
    """
    if y <= 0.0:
        return 0.0
    if y >= 1.0:
        return math.inf
    # Newton on whichever form keeps its digits: g itself near its flat start, log(1 + x) - x = log(1 - y) above
    if y < 0.5:
        root = math.sqrt(2.0 * y)
        x = root * (1.0 + root / 3.0)
        for _ in range(6):
            x -= (saturating_gain(x) - y) / (x * math.exp(-x))
    else:
        target = -math.log1p(-y)
        x = target + math.log1p(target + math.log1p(target))
        for _ in range(6):
            x -= (x - math.log1p(x) - target) * (1.0 + x) / x
    return x


def shape_value(shape: int, amplitude: float, x: float) -> float:
    """[ECHO13] [UC05] [BEYOND] The value of a bid at x = rate · age, by shape: A·exp(-x), A·x, A·x²/2, A·g(x).

    Plain arithmetic, so that kernels compile the same lines.
    """
    x = max(x, 0.0)
    if shape == 0:
        return amplitude
    if shape == 1:
        return amplitude * math.exp(-x)
    if shape == 2:
        return amplitude * x
    if shape == 3:
        return amplitude * x * x * 0.5
    return amplitude * saturating_gain(x)


@dataclass(frozen=True, slots=True)
class Bid:
    """One URL's bid.

    >>> Bid(2.0, rate=0.1, since=0.0, shape=Shape.LINEAR).value(now=30.0)
    6.0
    """

    amplitude: float
    rate: float = 0.0
    since: float = 0.0
    shape: Shape = Shape.CONSTANT

    def value(self, now: float) -> float:
        """Expected clicks gained by fetching at `now`."""
        return shape_value(int(self.shape), self.amplitude, self.rate * (now - self.since))

    def reaches(self, price: float, now: float) -> float | None:
        """[ECHO13] p·g(mu·I) = omega: the first time, from `now` on, at which the bid is worth `price`, or None."""
        if self.amplitude <= 0.0:
            return None
        if self.value(now) >= price:
            return now
        if self.shape in (Shape.CONSTANT, Shape.DECAY) or self.rate <= 0.0:
            return None
        share = price / self.amplitude
        if self.shape is Shape.LINEAR:
            x = share
        elif self.shape is Shape.AREA:
            x = math.sqrt(2.0 * share)
        else:
            x = saturating_gain_inverse(share)
        at = max(self.since + x / self.rate, now)
        return None if math.isinf(at) else at


@dataclass(frozen=True, slots=True)
class Bids:
    """Bids of many URLs, as columns; `terms` are named columns (or one value for all) that explain them."""

    amplitude: npt.NDArray[np.float32]
    rate: npt.NDArray[np.float32]
    since: FloatArray
    shape: npt.NDArray[np.uint8]
    terms: dict[str, npt.NDArray[np.generic]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.amplitude)

    @classmethod
    def build(
        cls,
        amplitude: npt.ArrayLike,
        *,
        shape: Shape = Shape.CONSTANT,
        rate: npt.ArrayLike = 0.0,
        since: npt.ArrayLike = 0.0,
        terms: dict[str, npt.NDArray[np.generic]] | None = None,
    ) -> Bids:
        """Columns of one shape from an amplitude column; rate and since may be single numbers."""
        column = np.asarray(amplitude, dtype=np.float32)
        n = len(column)
        return cls(
            column,
            np.array(np.broadcast_to(np.asarray(rate, dtype=np.float32), n)),
            np.array(np.broadcast_to(np.asarray(since, dtype=np.float64), n)),
            np.full(n, int(shape), dtype=np.uint8),
            terms or {},
        )

    def take(self, places: npt.NDArray[np.int64]) -> Bids:
        """Those at some places, without what explains them."""
        return Bids(self.amplitude[places], self.rate[places], self.since[places], self.shape[places])

    def bid(self, i: int) -> Bid:
        """The i-th bid as a record."""
        return Bid(float(self.amplitude[i]), float(self.rate[i]), float(self.since[i]), Shape(int(self.shape[i])))


@dataclass(frozen=True, slots=True)
class Term:
    """One node of the tree that says why a bid is what it is."""

    name: str
    value: float | str
    note: str = ""
    children: tuple[Term, ...] = ()
    page: int | None = None  # the URL it is about, by number; who shows it looks up the text

    def as_dict(self) -> dict[str, object]:
        """The tree as plain data, for JSON."""
        out: dict[str, object] = {"name": self.name, "value": self.value}
        if self.note:
            out["note"] = self.note
        if self.page is not None:
            out["page"] = self.page
        if self.children:
            out["children"] = [child.as_dict() for child in self.children]
        return out
