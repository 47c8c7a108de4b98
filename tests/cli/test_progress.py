"""What progress lines say: prices and bids with what they are counted in, errors as they come."""

from __future__ import annotations

import pytest
from tests.cli.test_commands import a_moment

from bowerbird.cli.progress import Panel, make_display


@pytest.mark.parametrize(
    ("unit", "by_clicks", "line", "panel"),
    [
        (0.0, False, "price=2.5 next-bid=1.5\n", "price 2.5\n"),
        (0.01, False, "price=2.5 units next-bid=1.5 units\n", "price 2.5 units\n"),
        (0.01, True, "price=0.025 clicks next-bid=0.015 clicks\n", "price 0.025 clicks\n"),
    ],
)
def test_a_price_is_in_units_until_clicks_are_known(
    capsys: pytest.CaptureFixture[str], unit: float, by_clicks: bool, line: str, panel: str
) -> None:
    moment = a_moment(price=2.5, unit=unit, by_clicks=by_clicks)
    make_display(quiet=False, terminal=False).show(moment)
    assert capsys.readouterr().err.endswith(line)
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


def test_the_first_errors_of_a_kind_are_told_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    lines = make_display(quiet=False, terminal=False)
    for moment in (
        a_moment(elapsed_s=1.0, errors=0),
        a_moment(elapsed_s=2.0, by_outcome={"host-unreachable": 3}, unreachable={"dns": 3}),
        a_moment(elapsed_s=2.5, by_outcome={"host-unreachable": 4}, unreachable={"dns": 4}),
        a_moment(elapsed_s=3.0, by_outcome={"ok": 5, "gone": 1, "timeout": 2}, unreachable={"dns": 4}),
    ):
        lines.show(moment)
    said = [line.partition(" ")[2] for line in capsys.readouterr().err.splitlines()]
    assert said[0].startswith("fetched=10 ")
    assert said[1:] == ["errors so far: robots.txt dns 3", "errors so far: timeout 2, robots.txt dns 4"]
    with Panel() as shown:
        shown.show(a_moment(by_outcome={"timeout": 2, "host-unreachable": 4}, unreachable={"connect": 4}))
    assert "timeout 2, robots.txt connect 4" in capsys.readouterr().err
