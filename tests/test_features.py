import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from sklearn.base import clone
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

from cases import MAPS, Cubes, name
from traceless import RangeError
from traceless.features import Landmarks, Linear, Polynomial, RandomFourier, RandomLayer

every_map = pytest.mark.parametrize("phi", MAPS, ids=name)
rows = npst.arrays(np.float64, (7, 3), elements=st.floats(-50, 50) | st.floats(-1e4, 1e4))


@every_map
@given(X=rows)
def test_codes_are_integers_and_the_same_in_any_batch(phi, X):
    bound = phi.bind(3)
    if isinstance(phi, Landmarks):
        X = X / 10
    codes = bound.codes(X)
    assert codes.shape == (7, len(bound.steps))
    assert (codes == np.rint(codes)).all()
    assert (codes == np.vstack([bound.codes(X[i : i + 1]) for i in range(7)])).all()
    assert (codes[::-1] == bound.codes(X[::-1].copy())).all()


@every_map
def test_large_values_in_one_row_do_not_disturb_another(phi, rng):
    X = rng.normal(size=(2, 3))
    wild = np.vstack([X, 500 * X])
    assert (phi.bind(3).codes(wild)[:2] == phi.bind(3).codes(X)).all()


@every_map
def test_rows_in_several_blocks(phi, rng):
    X = rng.normal(size=(1300, 3))
    codes = phi.bind(3).codes(X)
    for i in (0, 511, 512, 1299):
        assert (codes[i] == phi.bind(3).codes(X[i : i + 1])[0]).all()


@every_map
def test_values_are_codes_times_steps(phi, rng):
    X = rng.normal(size=(9, 3))
    bound = phi.bind(3)
    assert (phi.transform(X) == bound.codes(X) * bound.steps).all()
    assert (phi.transform(X.tolist()) == phi.transform(X)).all()
    if bound.has_bias:
        assert (phi.transform(X)[:, -1] == 1).all()


@every_map
def test_specification_survives_clone_pickle_and_printing(phi, rng):
    X = rng.normal(size=(4, 3))
    for other in (clone(phi), pickle.loads(pickle.dumps(phi))):
        assert other.digest() == phi.digest()
        assert (other.transform(X) == phi.transform(X)).all()
    bound = pickle.loads(pickle.dumps(phi.bind(3)))
    assert (bound.codes(X) == phi.bind(3).codes(X)).all()
    assert type(phi).__name__ in repr(phi)
    assert phi.get_params()["resolution"] == phi.resolution


def test_every_parameter_is_part_of_the_digest():
    digests = [phi.digest() for phi in MAPS]
    digests += [
        Linear(resolution=2**-13).digest(),
        Linear(resolution=[2**-14, 2**-13]).digest(),
        RandomFourier(50, gamma=0.1, random_state=4).digest(),
        RandomFourier(50, gamma=0.11, random_state=3).digest(),
        RandomFourier(50, gamma=0.1, random_state=3, input_resolution=2**-13).digest(),
        Landmarks([[0.0], [1.0]]).digest(),
        Landmarks([[0.0, 1.0]]).digest(),
    ]
    assert len(set(digests)) == len(digests)
    assert Linear(resolution=1).digest() == Linear(resolution=1.0).digest()


def test_linear_rounds_to_the_nearest_step():
    X = np.array([[0.3, -0.3, 0.125, 7.0]])
    assert Linear(bias=False, resolution=0.25).transform(X).tolist() == [[0.25, -0.25, 0.0, 7.0]]
    each = Linear(bias=False, resolution=[0.5, 0.25, 0.125, 4.0])
    assert each.transform(X).tolist() == [[0.5, -0.25, 0.125, 8.0]]


def test_linear_holds_values_up_to_the_limit():
    phi = Linear(bias=False)
    edge = 2.0**53 / 2**14
    assert phi.transform([[edge, -edge]]).tolist() == [[edge, -edge]]
    with pytest.raises(RangeError, match=r"1 takes the value 1\.09951e\+12.*coarser resolution"):
        phi.transform([[1.0, -edge * 2]])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@every_map
def test_values_that_are_not_finite_are_named(phi, bad, rng):
    X = rng.normal(size=(600, 3))
    X[555, 1] = bad
    with pytest.raises(RangeError, match=r"(NaN|infinity) \(column 1\)"):
        phi.bind(3).codes(X)


def test_polynomial_is_the_polynomial_kernel(rng):
    X = rng.normal(size=(30, 4))
    for degree, gamma, coef0 in ((1, 1.0, 1.0), (2, 1.0, 1.0), (3, 0.5, 2.0), (2, 1.0, 0.0)):
        phi = Polynomial(degree, gamma, coef0, bias=False, resolution=2**-40)
        F = phi.transform(X)
        kernel = polynomial_kernel(X, degree=degree, gamma=gamma, coef0=coef0)
        np.testing.assert_allclose(F @ F.T + coef0**degree, kernel, rtol=1e-9, atol=1e-9)


def test_random_fourier_approximates_the_rbf_kernel(rng):
    X = rng.normal(size=(40, 5))
    for D in (4000, 4001):
        F = RandomFourier(D, gamma=0.2, bias=False).transform(X)
        assert F.shape == (40, D)
        assert np.abs(F @ F.T - rbf_kernel(X, gamma=0.2)).max() < 0.06


def test_random_fourier_against_libm(rng):
    X = rng.normal(size=(50, 4))
    phi = RandomFourier(20, gamma=0.3, bias=False)
    encode = phi.bind(4).encode
    W, x = encode.keywords["W"] / encode.keywords["turn"], np.rint(X * 2**14)
    angles = 2 * np.pi * (x @ W)
    exact = np.sqrt(2 / 20) * np.hstack([np.cos(angles), np.sin(angles)])
    assert np.abs(phi.transform(X) - exact).max() <= 0.501 * 2**-20


def test_random_fourier_takes_huge_values_exactly():
    # far out on a line the angles are huge; whole turns must drop out without rounding
    from fractions import Fraction

    phi = RandomFourier(2, gamma=0.3, bias=False)
    encode = phi.bind(1).encode
    W, turn = int(encode.keywords["W"][0, 0]), int(encode.keywords["turn"])
    x = 2**51 + 12345  # codes, far beyond one limb
    angle = float(Fraction(x * W, turn) % 1)
    value = phi.transform([[x * 2.0**-14]])[0]
    expected = [np.cos(2 * np.pi * angle), np.sin(2 * np.pi * angle)]
    assert np.abs(value - expected).max() < 1e-6


def test_very_wide_rows_get_a_coarser_grid_of_weights(rng):
    # 300 000 columns: a limb times a whole column of W must still fit 53 bits
    phi = RandomLayer(2, bias=False)
    W = phi.bind(300_000).encode.keywords["W"]
    assert np.abs(W).sum(axis=0).max() <= 2**32
    X = rng.normal(size=(2, 300_000)) * 60
    codes = phi.bind(300_000).codes(X)
    assert (codes[1] == phi.bind(300_000).codes(X[1:])[0]).all()


@pytest.mark.parametrize(
    ("activation", "function"),
    [
        ("sigmoid", lambda z: 1 / (1 + np.exp(-z))),
        ("tanh", np.tanh),
        ("relu", lambda z: np.maximum(z, 0)),
        ("sine", np.sin),
    ],
)
def test_random_layer_activations(rng, activation, function):
    X = rng.normal(size=(50, 4))
    phi = RandomLayer(30, activation=activation, bias=False)
    keywords = phi.bind(4).encode.keywords
    z = np.rint(X * 2**14) @ keywords["W"] * keywords["unit"] + keywords["offset"]
    assert np.abs(phi.transform(X) - function(z)).max() <= 0.501 * 2**-14
    assert np.abs(keywords["W"]).max() * 2**-15 <= 1


def test_landmarks_are_the_rbf_kernel(rng):
    X, P = rng.normal(size=(30, 4)), rng.normal(size=(6, 4))
    phi = Landmarks(P, gamma=0.4, bias=False, resolution=2**-30, input_resolution=2**-22)
    np.testing.assert_allclose(phi.transform(X), rbf_kernel(X, P, gamma=0.4), atol=1e-6)


def test_landmarks_too_far_out():
    with pytest.raises(RangeError, match="coarser input_resolution"):
        Landmarks([[0.0]]).transform([[1e6]])
    assert Landmarks([[1e6]], input_resolution=2.0).transform([[1e6]])[0, 0] == 1.0


@pytest.mark.parametrize(
    ("phi", "message"),
    [
        (Linear(resolution=0.1), "power of two"),
        (Linear(resolution=0.0), "power of two"),
        (Linear(resolution=np.nan), "power of two"),
        (Linear(resolution=[2**-14] * 3), r"one per column \(2\)"),
        (RandomFourier(0), "n_components must be a positive integer"),
        (RandomFourier(2.5), "n_components must be a positive integer"),
        (RandomFourier(gamma="scale"), "gamma must be a positive finite number"),
        (RandomFourier(gamma=-1), "gamma must be a positive finite number"),
        (RandomFourier(random_state=None), "random_state must be a non-negative integer"),
        (RandomFourier(input_resolution=3.0), "input_resolution must be a power of two"),
        (RandomLayer(activation="step"), "activation must be one of"),
        (RandomLayer(scale=0), "scale must be a positive"),
        (Polynomial(degree=0), "degree must be a positive integer"),
        (Polynomial(coef0=-1), "coef0 must be a non-negative"),
        (Landmarks([[1.0, 2.0, 3.0]]), r"shape \(n_points, 2\)"),
        (Landmarks([[1.0, np.nan]]), "finite"),
        (Landmarks(0), "points must be a positive integer"),
    ],
)
def test_bad_parameters_are_named(phi, message):
    with pytest.raises(ValueError, match=message):
        phi.bind(2)


def test_a_map_of_ones_own():
    assert Cubes(bias=False).transform([[2.0, -1.0]]).tolist() == [[8.0, -1.0]]
    with pytest.raises(TypeError, match="part of its specification"):
        Cubes(resolution=object()).digest()


def test_a_map_without_values_says_what_is_missing():
    from traceless.features import FeatureMap

    with pytest.raises(NotImplementedError, match="must define values"):
        FeatureMap().values(np.zeros((1, 1)))


@every_map
def test_input_is_not_written_to(phi, rng):
    for order in "CF":
        X = np.array(rng.normal(size=(20, 3)), order=order)
        before = X.copy()
        phi.transform(X)
        assert (before == X).all()


@pytest.mark.parametrize("phi", [*MAPS, Polynomial(degree=3, coef0=0.0), Landmarks([[0.5] * 4])])
def test_features_are_counted_without_making_them(phi):
    assert phi.n_outputs(4) == len(phi.bind(4).steps)


@pytest.mark.parametrize("phi", [m for m in MAPS if not isinstance(m, Polynomial)], ids=name)
def test_a_bound_map_stays_what_it_was(phi, rng):
    """Tables are made with the first row; what became of the parameters since has no part in it."""
    X = rng.normal(size=(5, 4))
    phi = clone(phi)
    before, late = phi.bind(4).codes(X), phi.bind(4)
    phi.set_params(resolution=2**-3, **({"gamma": 9.0} if hasattr(phi, "gamma") else {}))
    assert (late.codes(X) == before).all()
    assert (pickle.loads(pickle.dumps(late)).codes(X) == late.codes(X)).all()
