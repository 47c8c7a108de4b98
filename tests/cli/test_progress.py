"""The price in clicks in progress lines, where bids are in clicks."""

from __future__ import annotations

import pytest
from tests.cli.test_commands import a_moment

from bowerbird.cli.progress import Panel, make_display


@pytest.mark.parametrize(
    ("unit", "line", "panel"),
    [(0.0, "price=2.5 next", "price 2.5\n"), (0.01, "price-clicks=0.025", "price 0.025 clicks")],
)
def test_the_price_is_told_in_clicks_where_bids_are(
    capsys: pytest.CaptureFixture[str], unit: float, line: str, panel: str
) -> None:
    moment = a_moment(price=2.5, unit=unit)
    make_display(quiet=False, terminal=False).show(moment)
    said = capsys.readouterr().err
    assert line in said
    assert ("price-clicks" in said) == (unit > 0)
    with Panel() as shown:
        shown.show(moment)
    assert panel in "\n".join(one.rstrip() for one in capsys.readouterr().err.splitlines()) + "\n"


def test_where_nothing_is_in_line_no_bid_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    moment = a_moment(next_bid=0.0, next_url="")
    make_display(quiet=False, terminal=False).show(moment)
    assert capsys.readouterr().err.endswith(" next-bid=-\n")
    with Panel() as shown:
        shown.show(moment)
    assert ["next", "bid", "-"] in [line.split() for line in capsys.readouterr().err.splitlines()]
