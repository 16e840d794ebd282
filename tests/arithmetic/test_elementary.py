import numpy as np
from scipy.special import ndtr
from scipy.stats import kstest

from traceless.arithmetic import elementary


def test_cosine_in_turns():
    turns = np.linspace(-3, 3, 100_001)
    assert np.abs(elementary.cosine(turns) - np.cos(2 * np.pi * turns)).max() < 2e-11
    assert np.abs(elementary.cosine(turns, 7.0) - 7 * np.cos(2 * np.pi * turns)).max() < 2e-10
    assert elementary.cosine(np.array([0.25, -0.75])).tolist() == [0.0, 0.0]


def test_exponential():
    x = np.linspace(-690, 690, 200_001)
    assert np.abs(elementary.exponential(x) / np.exp(x) - 1).max() < 1e-14
    assert elementary.exponential(np.array([0.0, -1e300])).tolist() == [1.0, 0.0]
    assert np.isfinite(elementary.exponential(np.array([1e300]))).all()


def test_logarithm():
    x = np.concatenate([np.linspace(1e-9, 0.999, 99_999), 2.0 ** -np.arange(1, 1000.0)])
    assert np.abs(elementary.logarithm(x) / np.log(x) - 1).max() < 1e-13


def test_uniform_is_open_and_reproducible():
    u = elementary.uniform(5, "a", 100_000)
    assert 0 < u.min() < 1e-3
    assert 1 - 1e-3 < u.max() < 1
    assert (u == elementary.uniform(5, "a", 100_000)).all()
    assert not np.isclose(u[:9], elementary.uniform(5, "b", 9)).any()
    assert not np.isclose(u[:9], elementary.uniform(6, "a", 9)).any()
    assert kstest(u, "uniform").pvalue > 1e-3


def test_normal():
    z = elementary.normal(1, "z", 100_000)
    assert kstest(z, ndtr).pvalue > 1e-3
    assert abs(np.corrcoef(z[:-1], z[1:])[0, 1]) < 0.01


def test_results_do_not_depend_on_length_or_alignment():
    x = np.linspace(-5, 5, 1003)
    for f in (elementary.cosine, elementary.exponential):
        assert (f(x)[1:] == f(x[1:].copy())).all()
        assert (f(x) == np.array([f(x[i : i + 1])[0] for i in range(len(x))])).all()
