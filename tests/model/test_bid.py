"""Bids: each shape against its formula, g and its inverse against exact arithmetic, when a price is reached."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bowerbird.model.bid import Bid, Bids, Shape, Term, saturating_gain, saturating_gain_inverse, shape_value

TOLERANCE = 1e-12
amplitudes = st.floats(1e-6, 1e6)
rates = st.floats(1e-9, 10.0)
times = st.floats(0.0, 2e9)
ages = st.floats(0.0, 1e9)
shapes = st.sampled_from(Shape)


def exact_gain(x: float) -> Decimal:
    """1 - (1 + x)·exp(-x) with enough digits for the cancellation at x -> 0."""
    with localcontext() as context:
        context.prec = 400
        big = Decimal(x)
        return 1 - (1 + big) * (-big).exp()


def exact_inverse(y: float, near: float) -> Decimal:
    """The root of g(x) = y by Newton's method in 400 digits, from a point nearby."""
    with localcontext() as context:
        context.prec = 400
        root, target = Decimal(near), Decimal(y)
        for _ in range(6):
            root -= (1 - (1 + root) * (-root).exp() - target) / (root * (-root).exp())
        return root


def relative_error(found: float, exact: Decimal) -> float:
    return float(abs(Decimal(found) - exact) / abs(exact)) if exact else abs(found)


def formula(shape: Shape, amplitude: float, x: float) -> float:
    """The table at the top of bid.py, written out once more."""
    return {
        Shape.CONSTANT: lambda: amplitude,
        Shape.DECAY: lambda: amplitude * math.exp(-x),
        Shape.LINEAR: lambda: amplitude * x,
        Shape.AREA: lambda: amplitude * x**2 / 2,
        Shape.SATURATING: lambda: amplitude * float(exact_gain(x)),
    }[shape]()


@given(x=st.floats(1e-100, 700.0) | st.floats(1e-6, 10.0))
def test_g_equals_its_formula_to_twelve_digits(x: float) -> None:
    assert relative_error(saturating_gain(x), exact_gain(x)) < TOLERANCE


@pytest.mark.parametrize("x", [0.0, 5e-324, 1e-160, 0.05, math.nextafter(0.05, 0), 750.0, 1e9, 1e300])
def test_g_stays_within_zero_and_one_at_the_ends(x: float) -> None:
    assert 0.0 <= saturating_gain(x) <= 1.0


@given(x=st.floats(0.0, 700.0), step=st.floats(0.0, 10.0))
def test_g_never_falls(x: float, step: float) -> None:
    assert saturating_gain(x + step) >= saturating_gain(x) * (1 - 1e-14)


@given(
    y=st.floats(1e-120, 0.999999) | st.floats(0.0, 1.0, exclude_min=True, exclude_max=True).filter(lambda y: y > 1e-120)
)
def test_the_inverse_is_exact_to_twelve_digits(y: float) -> None:
    x = saturating_gain_inverse(y)
    assert relative_error(x, exact_inverse(y, x)) < TOLERANCE


@pytest.mark.parametrize("distance", [2.0**-53, 1e-15, 1e-12, 1e-9, 1e-6, 1e-3])
def test_the_inverse_is_exact_near_one(distance: float) -> None:
    y = 1.0 - distance
    x = saturating_gain_inverse(y)
    assert relative_error(x, exact_inverse(y, x)) < TOLERANCE


@given(y=st.floats(0.0, 1.0, exclude_max=True))
def test_g_takes_the_inverse_back(y: float) -> None:
    assert saturating_gain(saturating_gain_inverse(y)) == pytest.approx(y, rel=TOLERANCE, abs=1e-300)


@given(x=st.floats(1e-150, 20.0))
def test_the_inverse_takes_g_back(x: float) -> None:
    # at x = 20 the step from one double to the next in g is 1e-16 / slope 4e-8: the digits of x end there
    room = 2.0**-52 / (x * math.exp(-x) * x) if x > 1 else 0.0
    assert saturating_gain_inverse(saturating_gain(x)) == pytest.approx(x, rel=TOLERANCE + 4 * room)


def test_the_inverse_outside_its_range() -> None:
    assert saturating_gain_inverse(0.0) == 0.0
    assert saturating_gain_inverse(-1.0) == 0.0
    assert saturating_gain_inverse(1.0) == math.inf


@given(shape=shapes, amplitude=amplitudes, x=st.floats(0.0, 600.0))
def test_each_shape_follows_its_formula(shape: Shape, amplitude: float, x: float) -> None:
    assert shape_value(int(shape), amplitude, x) == pytest.approx(
        formula(shape, amplitude, x), rel=TOLERANCE, abs=1e-300
    )


@given(shape=shapes, amplitude=amplitudes, x=st.floats(-1e9, 0.0))
def test_before_its_time_a_bid_stands_as_at_its_start(shape: Shape, amplitude: float, x: float) -> None:
    assert shape_value(int(shape), amplitude, x) == shape_value(int(shape), amplitude, 0.0)


@given(shape=shapes, amplitude=amplitudes, rate=rates, since=times, age=ages)
def test_a_bid_is_its_shape_at_rate_times_age(
    shape: Shape, amplitude: float, rate: float, since: float, age: float
) -> None:
    bid = Bid(amplitude, rate, since, shape)
    now = since + age
    assert bid.value(now) == shape_value(int(shape), amplitude, rate * (now - since))


@given(shape=shapes, amplitude=amplitudes, rate=rates, since=times, wait=ages, share=st.floats(1e-6, 3.0))
@example(Shape.SATURATING, 1.0, 1.0, 0.0, 0.0, 1.0)
def test_reaches_is_the_first_time_the_price_is_met(
    shape: Shape, amplitude: float, rate: float, since: float, wait: float, share: float
) -> None:
    bid = Bid(amplitude, rate, since, shape)
    now, price = since + wait, share * amplitude
    at = bid.reaches(price, now)
    if at is None:
        values = [bid.value(moment) for moment in (now, *(now + 10.0**power for power in range(13)))]
        saturated = shape is Shape.SATURATING and price >= amplitude  # only rounding brings it to its amplitude
        assert all(value < price or (saturated and value == price) for value in values)
        return
    assert at >= now
    if at == now and bid.value(now) >= price:
        return
    slack = 1e-6 * (at - since) + 1e-6  # clock times near 2e9 carry seven digits after the point
    assert bid.value(at + slack) >= price * (1 - 1e-9)
    assert at - slack < now or bid.value(at - slack) <= price * (1 + 1e-9)


@pytest.mark.parametrize(
    ("bid", "price", "expected"),
    [
        (Bid(2.0), 2.0, 100.0),
        (Bid(2.0), 2.1, None),
        (Bid(2.0, 1.0, 100.0, Shape.DECAY), 1.9, 100.0),
        (Bid(2.0, 1.0, 90.0, Shape.DECAY), 1.9, None),
        (Bid(2.0, 0.1, 100.0, Shape.LINEAR), 6.0, 130.0),
        (Bid(2.0, 0.1, 100.0, Shape.AREA), 9.0, 130.0),
        (Bid(2.0, 0.1, 100.0, Shape.SATURATING), 2.0, None),
        (Bid(2.0, 0.1, 100.0, Shape.SATURATING), 2 - 4 / math.e, 110.0),
        (Bid(0.0, 1.0, 0.0, Shape.LINEAR), 1.0, None),
        (Bid(2.0, 0.0, 0.0, Shape.LINEAR), 1.0, None),
        (Bid(1e-300, 1e-30, 0.0, Shape.LINEAR), 1e20, None),
    ],
)
def test_reaches_by_hand(bid: Bid, price: float, expected: float | None) -> None:
    found = bid.reaches(price, 100.0)
    assert found == (None if expected is None else pytest.approx(expected, rel=1e-12))


def test_bids_as_columns_give_back_each_bid() -> None:
    bids = Bids.build([1.0, 2.5], shape=Shape.LINEAR, rate=[0.5, 0.25], since=7.0)
    assert len(bids) == 2
    assert bids.bid(1) == Bid(2.5, 0.25, 7.0, Shape.LINEAR)
    assert (bids.amplitude.dtype, bids.rate.dtype, bids.since.dtype, bids.shape.dtype) == (
        np.float32,
        np.float32,
        np.float64,
        np.uint8,
    )


def test_single_numbers_stand_for_a_whole_column_of_their_own() -> None:
    bids = Bids.build([1.0, 1.0, 1.0], rate=0.5, since=3.0)
    bids.rate[0] = 9.0
    bids.since[1] = 9.0
    assert bids.rate.tolist() == [9.0, 0.5, 0.5]
    assert bids.since.tolist() == [3.0, 9.0, 3.0]


def test_a_tree_of_terms_is_plain_data() -> None:
    tree = Term("bid", 2.0, "by hand", (Term("depth", 1),))
    assert tree.as_dict() == {
        "name": "bid",
        "value": 2.0,
        "note": "by hand",
        "children": [{"name": "depth", "value": 1}],
    }
