"""Ridges of a solve on a device, in planes of bits."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import examples
from traceless.solvers.ridge import Ridge

pytest.importorskip("torch", reason="torch is not installed: make test-torch")

from traceless.device.solve import _planes


@examples(60)
@given(
    st.lists(st.integers(0, 10**9), min_size=1, max_size=4),
    st.integers(1, 10**6),
    st.integers(10, 30),
)
def test_planes_are_the_fractional_parts(numbers, denominator, bits):
    planes, rest = _planes(Ridge.of_fractions(np.array(numbers, dtype=object), denominator), bits)
    for j, number in enumerate(numbers):
        exactly = Fraction(number % denominator, denominator)
        parts = (Fraction(int(p[j, 0]), 2 ** (bits * (k + 1))) for k, p in enumerate(planes))
        left = exactly - sum(parts)
        assert 0 <= left < Fraction(1, 2 ** (bits * len(planes)))
        assert rest[j, 0] == float(left)


def test_planes_of_floats_end():
    planes, rest = _planes(Ridge(np.array([2.5, 3.0, 2.0**-20])), 21)
    assert not rest.any()
    assert [p[:, 0].tolist() for p in planes] == [[2**20, 0, 2]]
