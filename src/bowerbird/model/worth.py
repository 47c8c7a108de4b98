"""What bids and prices are counted in, as people read them."""

from __future__ import annotations

CLICKS, UNITS = "clicks", "units"
#: terms of a decision that say what its bid and price are counted in
COUNTED_IN = ("unit", "by_clicks")


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
    return amount_text(bid * times, noun, figures)


def amount_text(value: float, noun: str, figures: int = 3) -> str:
    """So many of them, or one.

    >>> amount_text(1.0, UNITS), amount_text(1.25, UNITS), amount_text(1.0, "")
    ('1 unit', '1.25 units', '1')
    """
    told = f"{value:.{figures}g}"
    return f"{told} {noun.removesuffix('s') if told == '1' else noun}".rstrip()
