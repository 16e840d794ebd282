"""One ρ for all targets, or one for each."""

import numpy as np
import pytest

from traceless import LSSVC, LSSVR
from traceless.estimators.loading import from_description
from traceless.estimators.rhos import rhos
from traceless.files.saving import described
from traceless.parameters import check_parameters


@pytest.mark.parametrize("rho", [2, 2.0, np.float32(2), [2.0] * 3, (2,) * 3])
def test_one_for_all(rho):
    assert rhos(rho, 3) == (2.0, 2.0, 2.0)


def test_one_for_each():
    for rho in ([1, 0.5, 3.0], (1, 0.5, 3.0), np.array([1, 0.5, 3.0])):
        found = rhos(rho, 3)
        assert found == (1.0, 0.5, 3.0)
        assert {*map(type, found)} == {float}
    assert rhos([0.5], 1) == (0.5,)


@pytest.mark.parametrize(
    ("rho", "n", "said"),
    [
        ([1.0, 2.0], 3, r"rho has 2 numbers, and there are 3 targets or labels"),
        ([1.0, 2.0], 1, r"rho has 2 numbers, and there is one target or label"),
        ([], 2, r"rho has 0 numbers"),
        ([1.0, 0.0], 2, r"rho\[1\] must be a positive finite number, got 0\.0"),
        ([np.nan, 1.0], 2, r"rho\[0\] must be"),
        ([[1.0, 2.0]], 1, r"rho\[0\] must be a positive finite number"),
        ([True, 1.0], 2, r"rho\[0\] must be"),
        (["1", 1.0], 2, r"rho\[0\] must be"),
        ("1", 2, r"rho must be a positive finite number"),
        (-1.0, 2, r"rho must be"),
        (None, 2, r"rho must be"),
        (np.array(2.0), 2, r"rho must be"),
        ([1.0, [2.0]], 2, r"rho\[1\] must be"),
        (np.ones((2, 2)), 2, r"rho must be"),
        (np.inf, 2, r"rho must be"),
    ],
)
def test_what_cannot_be(rho, n, said):
    with pytest.raises(ValueError, match=said):
        rhos(rho, n)


@pytest.mark.parametrize("kind", [LSSVC, LSSVR])
def test_as_a_parameter(kind):
    for rho in (1, 0.5, [0.5, 2], (0.5, 2.0), np.array([0.5, 2.0]), np.array([1, 2])):
        check_parameters(kind(rho=rho))
        again = from_description(described(kind(rho=rho))).rho
        assert np.array_equal(again, rho)
    said = "a positive finite number, a sequence of them, one for each target or 'evidence', got"
    for rho in (
        [],
        [0.0, 1.0],
        [[1.0]],
        [1.0, "a"],
        [True],
        np.array([np.inf]),
        [1, [2, 3]],
        0,
        None,
        "1",
    ):
        with pytest.raises(ValueError, match=said):
            check_parameters(kind(rho=rho))
