"""Charts are well-formed whatever the data is like, and say what they show."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.serve import charts
from bowerbird.serve.charts import Bar, Series
from bowerbird.serve.dashboard_scale import nice_ticks, number_text, percent_text, time_ticks, upper_bound

NUMBERS = st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True, width=64))
TIMES = st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=30).map(
    lambda times: sorted(times, key=lambda at: (math.isnan(at), at))
)
NAMES = st.text(max_size=40)


def parse(svg: str) -> ElementTree.Element:
    """The markup as XML; it must hold no style and no script, which the pages' policy forbids."""
    root = ElementTree.fromstring(svg)
    for element in root.iter():
        assert "style" not in element.attrib
        assert not element.tag.endswith("script")
        for name in ("x", "y", "width", "height", "cx", "cy", "d"):
            assert not re.search("nan|inf", element.attrib.get(name, "")), element.attrib
    return root


def texts(svg: str) -> list[str]:
    return ["".join(element.itertext()) for element in parse(svg).iter() if element.tag.endswith("text")]


@given(TIMES, st.data(), NAMES, NAMES)
def test_lines_and_areas_are_well_formed(times: list[float], data: st.DataObject, label: str, key: str) -> None:
    column = st.lists(NUMBERS, min_size=len(times), max_size=len(times))
    series = [Series(label, key, data.draw(column)) for _ in range(data.draw(st.integers(1, 3)))]
    band = data.draw(st.one_of(st.none(), column)), data.draw(st.one_of(st.none(), column))
    parse(charts.line_chart(times, series, label=label, low=band[0], high=band[1]))
    parse(charts.area_chart(times, series, label=label))
    parse(charts.sparkline(series[0].values, label=label, key=key))


@given(st.lists(st.builds(Bar, NAMES, st.floats(), NAMES, NAMES), max_size=8), NAMES, NUMBERS)
def test_bars_and_tables_are_well_formed(bars: list[Bar], label: str, top: float | None) -> None:
    parse(charts.bar_chart(bars, label=label, top=top))
    parse(charts.legend(bars))
    parse(charts.data_table(label, [label], [[bar.label, bar.value] for bar in bars]))
    for bar in bars:
        parse(charts.share_bar(bar.value, key=bar.key))


def test_markup_in_names_stays_text() -> None:
    svg = charts.bar_chart([Bar("</svg><script>alert(1)</script>", 3, note="a & b")], label='x" onload="y')
    root = parse(svg)
    assert "<script" not in svg
    assert root.attrib["aria-label"].startswith('x" onload="y')
    assert "onload" not in root.attrib


def test_nothing_and_one_point_are_shown_as_such() -> None:
    nothing = charts.line_chart([], [Series("a", "a", [])], label="Speed")
    assert "nothing yet" in texts(nothing)
    one = parse(charts.line_chart([100.0], [Series("a", "a", [0.5])], label="Speed", low=[0.4], high=[0.6]))
    kinds = [element.attrib.get("class", "") for element in one.iter()]
    assert any(kind.startswith("dot") for kind in kinds)
    assert any(kind.startswith("band") for kind in kinds)
    area = parse(charts.area_chart([100.0], [Series("a", "a", [2.0])], label="Speed"))
    assert any(element.attrib.get("class", "").startswith("layer") for element in area.iter())


def test_a_gap_breaks_the_line() -> None:
    svg = charts.line_chart([1, 2, 3, 4, 5], [Series("a", "a", [1, 2, math.nan, 2, 1])], label="Speed")
    assert len(re.findall('class="line ', svg)) == 2


def test_a_stack_is_as_high_as_its_sum() -> None:
    layers = [Series("a", "a", [1.0, 1.0]), Series("b", "b", [3.0, 3.0])]
    svg = charts.area_chart([0, 60], layers, label="Budget", text_of=str)
    roofs = re.findall(r'class="edge stroke-(\w)" d="M[\d.]+ ([\d.]+)', svg)
    height = {key: float(y) for key, y in roofs}
    floor = 190 - 24
    assert floor - height["b"] == pytest.approx(4 * (floor - height["a"]), rel=0.02)
    titles = [element.text or "" for element in parse(svg).iter() if element.tag.endswith("title")]
    assert "4.0, a 1.0, b 3.0" in titles[0]


def test_a_chart_says_what_it_shows() -> None:
    svg = charts.line_chart([0, 60], [Series("q", "q", [0.5, 0.8])], label="Quality", text_of=percent_text)
    root = parse(svg)
    assert root.attrib["role"] == "img"
    assert root.attrib["aria-label"] == "Quality. Latest: 1970-01-01 00:01:00: 80%"


@given(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300))
def test_ticks_are_few_and_within(one: float, other: float) -> None:
    low, high = min(one, other), max(one, other)
    ticks = nice_ticks(low, high)
    assert 1 <= len(ticks) <= 12
    slack = 1e-6 * max(abs(low), abs(high), high - low)
    assert all(low - slack <= tick <= high + slack for tick in ticks)
    assert upper_bound(high) >= high * (1 - 1e-6) or high <= 0


@given(st.floats(0, 4e9), st.floats(0, 4e9), st.integers(1, 10))
def test_time_ticks_are_few_and_in_order(one: float, other: float, count: int) -> None:
    ticks = time_ticks(min(one, other), max(one, other), count)
    assert len(ticks) <= count + 1
    assert [at for at, _ in ticks] == sorted(at for at, _ in ticks)


def test_numbers_are_short() -> None:
    assert number_text(1_234_567) == "1.23M"
    assert len(number_text(1.7e308)) < 10
