"""What bids and prices are counted in, as people read them."""

from __future__ import annotations

CLICKS, UNITS = "clicks", "units"


def count_in(unit: float | None, by_clicks: bool) -> tuple[float, str]:
    """What to multiply a bid by, and what it is counted in then; `unit` is the clicks that a bid of 1 stands for.

    Before any click is known that is nobody's clicks, and bids are counted in units. Where they are in no unit at all,
    a bid is a plain number.

    >>> count_in(0.5, True), count_in(0.5, False), count_in(None, False)
    ((0.5, 'clicks'), (1.0, 'units'), (1.0, ''))
    """
    if not unit:
        return 1.0, ""
    return (unit, CLICKS) if by_clicks else (1.0, UNITS)


def worth_text(bid: float, unit: float | None, by_clicks: bool, figures: int = 3) -> str:
    """A bid or a price.

    >>> worth_text(2.5, 0.01, True), worth_text(2.5, 0.01, False), worth_text(2.5, 0.0, False)
    ('0.025 clicks', '2.5 units', '2.5')
    """
    times, noun = count_in(unit, by_clicks)
    return f"{bid * times:.{figures}g} {noun}".rstrip()
