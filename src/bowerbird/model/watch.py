"""What was expected of fetches of each kind, and what they turned out to gain."""

from __future__ import annotations

from dataclasses import dataclass, field

from bowerbird.model.factors import Factors

METHOD = "watch"
NEAR_KINDS = "by_near"  # in what a watch tells of itself: kinds whose factors go by fetches near the price
OFF = 0.2  # of 1: what is surely farther is not what it was thought to be


@dataclass(frozen=True, slots=True)
class KindWatch:
    """One kind of fetch, or the fetches that one appraiser asked for."""

    name: str
    fetches: int  # that were looked at
    expected: float  # of them by now, in `unit`
    realised: float
    unit: str
    ratio: float  # realised by expected, shrunk towards 1 where there is little
    low: float  # 95% interval of the ratio
    high: float
    events: float | None = None  # clicks, pages found or changes that were expected; None where they were not counted

    @property
    def too_little(self) -> bool:
        """Was hardly anything expected, less than one event? Then the ratio says nothing."""
        return self.events is not None and self.events < 1.0

    @property
    def drifts(self) -> bool:
        """Is what was expected wrong by more than chance explains?"""
        return self.low > 1.0 or self.high < 1.0

    @property
    def surely_off(self) -> bool:
        """Is the whole interval more than a fifth from 1?"""
        return not self.cannot_tell and (self.low > 1.0 + OFF or self.high < 1.0 - OFF)

    @property
    def cannot_tell(self) -> bool:
        """May it be more than a fifth below 1, and as well above? Then nobody knows yet."""
        return self.too_little or self.fetches == 0 or (self.low < 1.0 - OFF and self.high > 1.0 + OFF)


@dataclass(frozen=True, slots=True)
class Watch:
    """All kinds at a time, and the factors that follow for what is expected from now on.

    `margins` are the fetches of each kind that bid near the price: what they were to gain as they bid, corrected, and
    what they did gain.
    """

    at: float
    kinds: tuple[KindWatch, ...]
    appraisers: tuple[KindWatch, ...]
    factors: Factors
    method: str = METHOD
    info: dict[str, str | float] = field(default_factory=dict)
    margins: tuple[KindWatch, ...] = ()
