"""The compiled value of a bid is that of the model."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bowerbird.model.bid import Shape, shape_value
from bowerbird.schedule.kernels import value_of


@given(shape=st.sampled_from(Shape), amplitude=st.floats(0.0, 1e6, width=32), x=st.floats(-10.0, 700.0))
def test_compiled_and_plain_agree(shape: Shape, amplitude: float, x: float) -> None:
    plain = shape_value(int(shape), amplitude, x)
    assert value_of(np.uint8(shape), np.float32(amplitude), x) == pytest.approx(plain, rel=1e-14, abs=1e-300)
