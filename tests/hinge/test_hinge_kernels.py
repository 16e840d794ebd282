import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles import dense_kernel
from traceless.arithmetic.elementary import exponential
from traceless.hinge import kernels
from traceless.hinge.gram import Gram
from traceless.hinge.kernels import Kernel

KERNELS = [
    Kernel("rbf", gamma=0.3),
    Kernel("linear"),
    Kernel("poly", gamma=0.7, coef0=0.5, degree=3),
    Kernel("poly", gamma=1.0, degree=0),
    Kernel("sigmoid", gamma=0.4, coef0=-0.2),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: f"{k.name}{k.degree}")
def test_values_are_right_symmetric_and_the_same_in_any_batch(rng, kernel):
    A = rng.normal(size=(300, 7))
    G = kernel.values(A, A)
    assert np.allclose(G, dense_kernel(kernel, A, A), rtol=1e-12, atol=1e-13)
    assert np.array_equal(G, G.T)
    rows = rng.permutation(300)[:41]
    for i in rows:
        assert np.array_equal(kernel.values(A[i : i + 1], A[rows])[0], G[i, rows])
    assert np.allclose(kernel.diagonal(A), G.diagonal(), rtol=1e-14)


def in_order(kernel, A, B):
    """Kernel values in NumPy, one rounded operation after the other, without the compiled core."""
    s = np.zeros((len(A), len(B)))
    for a, b in zip(kernel.centred(A).T, kernel.centred(B).T, strict=True):
        part = a[:, None] - b if kernel.name == "rbf" else a[:, None] * b
        s = s + (part * part if kernel.name == "rbf" else part)
    if kernel.name == "linear":
        return s
    if kernel.name == "rbf":
        return exponential(-kernel.gamma * s)
    s = kernel.gamma * s + kernel.coef0
    if kernel.name == "poly":
        return np.multiply.reduce([np.ones_like(s)] + kernel.degree * [s], axis=0)
    e, below = exponential(-2.0 * np.abs(s)), 19.0
    for odd in range(17, 0, -2):
        below = odd + np.minimum(s * s, 1.0) / below
    return np.where(np.abs(s) < 0.75, s / below, np.copysign((1.0 - e) / (1.0 + e), s))


@given(
    st.sampled_from([*KERNELS, Kernel("linear", centre=np.full(40, 0.5))]),
    st.sampled_from([1, 2, 4, 7, 40]),
    st.integers(1, 21),
    st.integers(1, 70),
    st.integers(-8, 8),
    st.integers(0, 2**32),
)
def test_every_bit_is_that_of_one_operation_after_the_other(kernel, width, m, n, size, seed):
    rng = np.random.default_rng(seed)
    A, B = (np.ldexp(rng.normal(size=(k, width)), size) for k in (m, n))
    if kernel.centre is not None:
        kernel = Kernel("linear", centre=kernel.centre[:width])
    right = in_order(kernel, A, B)
    assert np.array_equal(kernel.values(A, B), right)
    assert np.array_equal(kernel.values(A, np.asfortranarray(B)), right)
    assert np.array_equal(kernel.diagonal(A), in_order(kernel, A, A).diagonal())


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_blocks_and_threads_have_no_effect_on_a_value(threads, rng, monkeypatch):
    monkeypatch.setattr(kernels, "_WORTH", 0)
    monkeypatch.setattr(kernels, "THREADS", threads)
    A, B = rng.normal(size=(9, 5000)), rng.normal(size=(50, 5000)) / 10
    for kernel in KERNELS:
        assert np.array_equal(kernel.values(A, B), in_order(kernel, A, B))


@given(st.floats(0.0, 1e6))
def test_far_points(distance):
    value = Kernel("rbf").values(np.array([[distance]]), np.array([[0.0]]))[0, 0]
    right = np.exp(-(distance**2)) if distance**2 < 700 else 0.0
    assert value == pytest.approx(right, rel=1e-14, abs=0)


@given(st.floats(-800.0, 800.0) | st.floats(-1e-3, 1e-3))
def test_sigmoids_of_any_size(x):
    value = Kernel("sigmoid").values(np.array([[x]]), np.array([[1.0]]))[0, 0]
    assert value == pytest.approx(np.tanh(x), rel=1e-14, abs=1e-300)


def test_a_linear_kernel_can_be_centred(rng):
    A, centre = rng.normal(size=(20, 3)) + 1000.0, np.array([1000.0, 0.0, 999.0])
    G = Kernel("linear", centre=centre).values(A, A)
    assert np.allclose(G, (A - centre) @ (A - centre).T, rtol=1e-13)
    assert np.array_equal(Kernel("linear", centre=centre).diagonal(A), G.diagonal())


@pytest.mark.parametrize("kernel", [Kernel("linear"), Kernel("poly")], ids=["linear", "poly"])
def test_kernel_values_beyond_float64_say_so(kernel):
    with pytest.raises(OverflowError, match="scale the columns"):
        Gram(kernel, 1, 1 << 20).place(np.array([[1e200]]))


def test_gamma_of_zero_is_one_at_any_distance():
    A = np.array([[1e300], [-1e300], [0.0]])
    assert (Kernel("rbf", gamma=0.0).values(A, A) == 1.0).all()


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda A, B: np.zeros((1, 1)), r"shape \(4, 4\)"),
        (lambda A, B: np.full((len(A), len(B)), np.nan), "NaN"),
    ],
)
def test_what_a_kernel_function_returns_is_checked(function, words, rng):
    A = rng.normal(size=(4, 2))
    with pytest.raises(ValueError, match=words):
        Kernel("callable", function=function).values(A, A)


def test_a_kernel_function_cannot_change_rows(rng):
    def vandal(A, B):
        out = A @ B.T
        A[:] = B[:] = 0.0
        return out

    A = rng.normal(size=(4, 2))
    before = A.copy()
    Kernel("callable", function=vandal).values(A, A)
    assert np.array_equal(A, before)
