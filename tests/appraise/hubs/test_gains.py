"""g and its inverse for columns, against exact arithmetic, the Lambert W function and the plain lines of the bid."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import lambertw

from bowerbird.appraise.hubs.gains import saturating_gains, saturating_gains_inverse
from bowerbird.model.bid import saturating_gain, saturating_gain_inverse

TOLERANCE = 1e-12


def exact_gain(x: Decimal) -> Decimal:
    return 1 - (1 + x) * (-x).exp()


def error_of(found: float, exact: Decimal) -> float:
    return float(abs(Decimal(found) - exact) / exact)


@given(x=st.floats(1e-140, 700.0) | st.floats(1e-6, 10.0))
@settings(deadline=None)
def test_g_has_twelve_digits(x: float) -> None:
    with localcontext() as context:
        context.prec = 400
        assert error_of(float(saturating_gains(np.array([x]))[0]), exact_gain(Decimal(x))) < TOLERANCE


@given(y=st.floats(1e-300, 1.0, exclude_max=True) | st.floats(1e-6, 0.999999))
@settings(deadline=None)
def test_the_inverse_has_twelve_digits(y: float) -> None:
    found = float(saturating_gains_inverse(np.array([y]))[0])
    with localcontext() as context:
        context.prec = 400
        root, target = Decimal(found), Decimal(y)
        for _ in range(4):
            root -= (exact_gain(root) - target) / (root * (-root).exp())
        assert error_of(found, root) < TOLERANCE


def test_the_inverse_has_twelve_digits_on_both_sides_of_each_seam() -> None:
    for z in (1.0, 2.4):  # where the series ends, and where it begins to lead
        for y in (-math.expm1(-0.5 * (z * part) ** 2) for part in (1 - 1e-9, 1.0, 1 + 1e-9)):
            found = float(saturating_gains_inverse(np.array([y]))[0])
            with localcontext() as context:
                context.prec = 60
                root = Decimal(found)
                for _ in range(4):
                    root -= (exact_gain(root) - Decimal(y)) / (root * (-root).exp())
                assert error_of(found, root) < TOLERANCE


def test_the_inverse_is_lambert_w() -> None:
    y = np.linspace(0.05, 0.999, 5000)
    expected = -1.0 - lambertw(-(1.0 - y) / math.e, k=-1).real
    np.testing.assert_allclose(saturating_gains_inverse(y), expected, rtol=1e-11)


def test_columns_and_single_numbers_agree() -> None:
    x = np.geomspace(1e-9, 200.0, 2000)
    np.testing.assert_allclose(saturating_gains(x), [saturating_gain(v) for v in x.tolist()], rtol=1e-15)
    y = np.concatenate([np.geomspace(1e-12, 0.5, 1000), 1.0 - np.geomspace(1e-15, 0.5, 1000)])
    plain = [saturating_gain_inverse(v) for v in y.tolist()]
    np.testing.assert_allclose(saturating_gains_inverse(y), plain, rtol=2e-13)


def test_ends_and_shapes() -> None:
    assert saturating_gains_inverse([-1.0, 0.0, 1.0, 2.0]).tolist() == [0.0, 0.0, math.inf, math.inf]
    assert saturating_gains(np.zeros((2, 3))).shape == (2, 3)
    assert saturating_gains([]).shape == (0,)
    assert saturating_gains(2.0).shape == ()


def test_large_columns_are_cut_into_pieces_and_put_together() -> None:
    x = np.linspace(0.0, 30.0, 400_001)
    found = saturating_gains_inverse(saturating_gains(x[:200_000]))
    np.testing.assert_allclose(found[1:], x[1:200_000], rtol=1e-8)
    assert (np.diff(saturating_gains(x)) >= 0).all()
