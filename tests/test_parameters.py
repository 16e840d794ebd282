import math

import numpy as np
import pytest

from traceless import LSSVC, LSSVR, PathSVC, SlidingWindow, features
from traceless.parameters import check_parameters

EVERY = [
    LSSVC(),
    LSSVR(),
    PathSVC(),
    SlidingWindow(LSSVC()),
    *(kind() for kind in features.MAPS.values()),
]


@pytest.mark.parametrize("thing", EVERY, ids=lambda thing: type(thing).__name__)
def test_every_parameter_is_declared_and_its_default_allowed(thing):
    assert set(thing.constraints) == set(thing.get_params(deep=False))
    check_parameters(thing)


RHO = "rho must be a positive finite number or 'evidence', got "


@pytest.mark.parametrize(
    ("thing", "message"),
    [
        (LSSVC(rho=0), RHO + "0."),
        (LSSVC(rho=True), RHO + "True."),
        (LSSVR(rho=math.nan), RHO + "nan."),
        (LSSVC(solver="qr"), "solver must be 'cholesky' or 'woodbury', got 'qr'."),
        (LSSVC(guard="yes"), "guard must be True or False, got 'yes'."),
        (LSSVC(n_jobs=1.5), "n_jobs must be None or a number of processes, got 1.5."),
        (features.RandomFourier(0), "n_components must be a positive integer, got 0."),
        (
            features.RandomLayer(activation="step"),
            "activation must be 'sigmoid', 'tanh', 'relu'",
        ),
        (PathSVC(gamma="best"), "gamma must be 'steady', 'scale', 'auto' or a non-negative finite"),
    ],
    ids=repr,
)
def test_what_is_not_allowed_is_said_in_a_sentence(thing, message):
    with pytest.raises(ValueError, match=message):
        check_parameters(thing)


def test_numbers_of_numpy_are_numbers():
    check_parameters(LSSVC(rho=np.float32(0.5), guard=np.bool_(True), n_jobs=np.int64(2)))


def test_parameters_are_checked_before_rows_are_looked_at():
    model = LSSVC(weighting="best")
    with pytest.raises(ValueError, match="weighting must be 'shared' or 'one_vs_rest'"):
        model.fit("not even rows", None)
    assert not model.__sklearn_is_fitted__()
