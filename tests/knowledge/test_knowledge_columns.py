"""Knowledge without some columns is that of rows that never had them, to the bit."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from cases import Cubes, exact_gram, examples
from traceless import Knowledge, MismatchError
from traceless.features import (
    Linear,
    Polynomial,
    RandomFourier,
    RandomLayer,
)
from traceless.knowledge.columns import column_numbers

N = 4  # columns
STEPS = [2.0**-3, 2.0**-14, 2.0**-8, 0.5]
SCALARS = [
    Linear(),
    Linear(bias=False, resolution=2**-4),
    Polynomial(),
    Polynomial(3, gamma=0.5, coef0=0.0, resolution=2**-6),
    Polynomial(2, gamma=3.0, coef0=0.25, bias=False, resolution=2**-6),
]


def maps():
    """Maps for N columns, and how each is written for some of the columns."""
    for phi in SCALARS:
        yield phi, lambda kept, phi=phi: phi
    yield Linear(resolution=STEPS), lambda kept: Linear(resolution=[STEPS[k] for k in kept])
    yield (
        Linear(bias=False, resolution=np.array(STEPS)),
        lambda kept: Linear(bias=False, resolution=np.array(STEPS)[kept]),
    )
    yield Linear(resolution=tuple(STEPS)), lambda kept: Linear(resolution=np.array(STEPS)[kept])
    # x_i x_j is at place (i, j) of the upper triangle, on a grid of its own
    pairs = [(i, j) for i in range(N) for j in range(i, N)]
    grids = {pair: 2.0 ** -(4 + k) for k, pair in enumerate(pairs)}
    yield (
        Polynomial(2, coef0=0.0, resolution=[grids[pair] for pair in pairs]),
        lambda kept: Polynomial(
            2,
            coef0=0.0,
            resolution=[grids[i, j] for i, j in pairs if i in kept and j in kept],
        ),
    )


MAPS = list(maps())


@st.composite
def gathered(draw):
    n = draw(st.integers(0, 6))
    largest = draw(st.sampled_from([3.0, 3e4]))  # the larger needs Python integers
    X = draw(npst.arrays(np.float64, (n, N), elements=st.floats(-largest, largest, width=32)))
    weights = draw(
        st.none()
        | st.lists(st.integers(0, 4), min_size=n, max_size=n)
        | st.lists(st.sampled_from([0.0, 0.25, 0.3, 0.75, 1.0]), min_size=n, max_size=n)
    )
    task = draw(st.sampled_from(["classification", "classwise", "regression"]))
    if task == "regression":
        y = draw(npst.arrays(np.float64, (n, 2), elements=st.floats(-9, 9, width=32)))
        return X, y, weights, {"task": task}
    y = np.array(draw(st.lists(st.sampled_from(["a", "b", "c"]), min_size=n, max_size=n)))
    return X, y, weights, {"classwise": task == "classwise"}


COLUMNS = st.sets(st.integers(0, N - 1), min_size=1, max_size=N - 1)


@given(st.sampled_from(MAPS), gathered(), COLUMNS)
@examples(200)
def test_equal_to_the_knowledge_of_rows_without_the_columns(maps, rows, gone):
    (phi, left), (X, y, weights, options) = maps, rows
    kept = [k for k in range(N) if k not in gone]
    known = Knowledge.of(phi, X, y, weights, **options)
    fewer = Knowledge.of(left(kept), X[:, kept], y, weights, **options)
    ours = known.forget_columns(sorted(gone), phi)
    assert ours == fewer
    assert ours.digest() == fewer.digest()
    assert ours.sums.dtype == fewer.sums.dtype
    assert dict(ours.specification) == dict(fewer.specification)
    assert not ours.sums.flags.writeable
    if phi in SCALARS:  # whose specification says everything
        assert known.forget_columns(sorted(gone)) == fewer
    assert -ours == (-known).forget_columns(sorted(gone), phi)


@given(st.sampled_from(MAPS), gathered(), st.permutations(range(N)), st.integers(1, N - 2))
def test_one_after_another_is_all_at_once(maps, rows, order, cut):
    first, second = set(order[:cut]), set(order[cut : N - 1])
    (phi, left), (X, y, weights, options) = maps, rows
    known = Knowledge.of(phi, X, y, weights, **options)
    kept = [k for k in range(N) if k not in first]
    later = [kept.index(k) for k in sorted(second)]
    twice = known.forget_columns(sorted(first), phi).forget_columns(later, left(kept))
    assert twice == known.forget_columns(sorted(first | second), phi)


def test_the_integers_against_python(rng):
    """The monomials that stay, multiplied in Python integers from the rows themselves."""
    X, y = rng.integers(-5, 6, size=(30, N)) * 1.0, rng.integers(0, 2, size=30)
    phi = Polynomial(2, coef0=0.0, bias=False, gamma=1.0, resolution=2**-10)
    known = Knowledge.of(phi, X, y).forget_columns([0, 2])
    a, b = X[:, 1], X[:, 3]
    F = np.rint(np.column_stack([a * a, np.sqrt(2) * (a * b), b * b]) * 2**10)
    Z = np.column_stack([F, y == 0, y == 1])
    assert np.array_equal(known.sums, exact_gram(Z))


def test_a_difference_stays_one(rng):
    """Forgetting rows and forgetting columns commute."""
    X, y = rng.normal(size=(20, N)), rng.integers(0, 3, size=20)
    phi = Polynomial()
    every, some = Knowledge.of(phi, X, y), Knowledge.of(phi, X[:7], y[:7])
    assert (every - some).forget_columns(1) == every.forget_columns(1) - some.forget_columns(1)


@pytest.mark.parametrize("phi", [RandomFourier(5), RandomLayer(5)])
def test_maps_that_mix_columns_refuse(phi):
    known = Knowledge.of(phi, np.ones((2, N)), [0, 1])
    for options in ({}, {"feature_map": phi}):
        with pytest.raises(TypeError, match=f"every feature of {type(phi).__name__} is made of"):
            known.forget_columns(0, **options)


class Signs(Linear):
    """A subclass that makes something else of its columns."""

    def bind(self, n_features):
        return super().bind(n_features)


class Honest(Cubes):
    """A map of somebody else's that says what is left."""

    def without_columns(self, columns, n_features):
        kept = np.delete(np.arange(n_features), columns)
        return self, np.append(kept, n_features)


class Liar(Cubes):
    def without_columns(self, columns, n_features):  # noqa: ARG002
        return self, np.arange(n_features + 1)


def test_maps_of_users():
    X, y = np.arange(12.0).reshape(3, N) / 4, [0, 1, 1]
    for phi in (Cubes(), Signs()):
        known = Knowledge.of(phi, X, y)
        with pytest.raises(TypeError, match=r"pass the map .* as feature_map"):
            known.forget_columns(0)
        with pytest.raises(TypeError, match=r"Define without_columns in that class"):
            known.forget_columns(0, phi)
    known = Knowledge.of(Honest(), X, y)
    assert known.forget_columns([0, 2], Honest()) == Knowledge.of(Honest(), X[:, [1, 3]], y)
    with pytest.raises(ValueError, match=r"keeps 5 features, and the map that it leaves makes 4"):
        Knowledge.of(Liar(), X, y).forget_columns(0, Liar())


def test_an_array_needs_its_map():
    phi = Linear(resolution=STEPS)
    known = Knowledge.of(phi, np.ones((2, N)), [0, 1])
    with pytest.raises(TypeError, match=r"only a hash of its resolution: pass the map"):
        known.forget_columns(0)
    with pytest.raises(MismatchError, match="resolution is"):
        known.forget_columns(0, Linear(resolution=STEPS[::-1]))
    with pytest.raises(MismatchError, match="resolution is"):
        known.forget_columns(0, Linear())


def test_a_fingerprint_is_given_up_first():
    pytest.importorskip("blake3")
    X, y = np.ones((2, N)), [0, 1]
    known = Knowledge.of(Linear(), X, y, fingerprint=True)
    with pytest.raises(ValueError, match=r"without_fingerprint\(\)\.forget_columns"):
        known.forget_columns(0)
    left = known.without_fingerprint().forget_columns(0)
    assert left == Knowledge.of(Linear(), X[:, 1:], y)


# --- how columns are given ---------------------------------------------------------------------

NAMES = np.array(["age", "city", "income", "x"], dtype=object)


@pytest.mark.parametrize(
    "columns",
    [
        [0, 2],
        (2, 0),
        {0, 2},
        range(0, 4, 2),
        [-4, -2],
        np.array([2, 0], dtype=np.uint8),
        [np.int64(0), 2],
        [True, False, True, False],
        np.array([True, False, True, False]),
        ["age", "income"],
        ("income", np.str_("age")),
        np.array(["age", "income"]),
        pd.Index(["age", "income"]),
        pd.Series([0, 2]),
    ],
    ids=repr,
)
def test_numbers_names_and_masks(columns):
    assert column_numbers(columns, N, NAMES) == (0, 2)


def test_one_column():
    assert column_numbers(-1, N) == column_numbers(np.int8(3), N) == (3,)
    assert column_numbers("city", N, NAMES) == (1,)


@pytest.mark.parametrize(
    ("columns", "names", "said"),
    [
        ([4], None, r"There is no column 4: there are 4, counted from 0"),
        ([-5], None, r"There is no column -5"),
        ([1, 1], None, r"Column 1 is given twice"),
        ([1, -3], NAMES, r"Column 'city' is given twice"),
        ([0, 1, 2, 3], None, r"All 4 columns would be forgotten"),
        ([True] * 4, None, r"All 4 columns would be forgotten"),
        ([], None, r"There are no columns to forget"),
        ([False] * 4, None, r"There are no columns to forget"),
        ([True, False], None, r"one entry for each of the 4 columns, got 2"),
        (True, None, r"one entry for each of the 4 columns, got 1"),
        (["agee"], NAMES, r"There is no column 'agee'; the columns are age, city, income, x"),
        (["age"], None, r"no column 'age': the rows had no column names.* from 0 to 3"),
        (["age"], ["age", "age", "b", "c"], r"2 columns are called 'age'"),
        (["age", 1], NAMES, r"whole numbers, names, or a mask .* got 'age'"),
        ([1, True], NAMES, r"got True"),
        ([1.0], None, r"got 1\.0"),
        (None, None, r"got None"),
        (slice(2), None, r"got slice"),
        ([[0, 1]], None, r"got \[0, 1\]"),
    ],
)
def test_what_cannot_be(columns, names, said):
    with pytest.raises(ValueError, match=said):
        column_numbers(columns, N, names)
