import copy
import hashlib
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from cases import exact_gram
from traceless import Knowledge, MismatchError, NotLearnedError
from traceless.features import Linear, RandomFourier
from traceless.features.bound_map import specification_digest

PHI = Linear()


@st.composite
def pieces(draw, largest=100.0, classwise=False):
    n = draw(st.integers(1, 5))
    X = draw(npst.arrays(np.float64, (n, 2), elements=st.floats(-largest, largest)))
    y = draw(st.lists(st.sampled_from(["a", "b", "c"]), min_size=n, max_size=n))
    weights = draw(
        st.none()
        | st.lists(st.integers(0, 5), min_size=n, max_size=n)
        | st.lists(st.integers(0, 2**18).map(lambda v: v / 2**16), min_size=n, max_size=n)
    )
    return Knowledge.of(PHI, X, y, weights, classwise=classwise)


KINDS = st.booleans().flatmap(
    lambda kind: st.tuples(*(pieces(largest, kind) for largest in (100.0, 1e9, 100.0)))
)


@given(KINDS)
def test_a_commutative_group(abc):
    a, b, c = abc
    zero = a - a
    assert zero.n_samples == 0
    assert not zero.gram.any()
    assert zero.responses == ()
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert a + zero == a
    assert (a + b) - b == a
    minus = -a
    assert -minus == a
    assert a - b == a + (-b)
    assert sum([a, b, c]) == a + b + c
    assert hash(a + b) == hash(b + a)
    assert pickle.loads(pickle.dumps(a + b)) == a + b
    assert (a + b).pooled() == a.pooled() + b.pooled()


@given(pieces(), pieces())
def test_equal_digests_mean_equal_knowledge(a, b):
    assert (a.digest() == b.digest()) == (a == b)


LABELS = [[1, 2], [True, False], ["1", "2"], [b"1", b"2"], ["\U0001fae8", "ä"], ["\ud800", "a,1:b"]]


def test_a_digest_is_a_function_of_bytes_that_are_written_down_here():
    """Neither Python's repr nor its Unicode tables, which differ by version, are in it."""
    k = Knowledge.of(Linear(bias=False), [[2.0**-14], [2.0**-13]], ["\U0001fae8", "ä"])
    spec = specification_digest(k.specification)
    labels = b"6:str:\xc3\xa4,8:str:\xf0\x9f\xab\xa8,"
    header = b"21:traceless knowledge 2,64:%b,14:classification,%d:%b,8:1:1,1:1,,1:0,0:," % (
        spec.encode(),
        len(labels),
        labels,
    )
    rows = [[5], [2, 1], [1, 0, 1]]
    sums = b"".join(b"int64" + np.array(row, dtype="<i8").tobytes() for row in rows)
    assert k.digest() == hashlib.sha256(header + sums).hexdigest()


def test_labels_of_any_type_are_told_apart():
    known = [Knowledge.of(PHI, [[0.5], [1.0]], y) for y in LABELS]
    assert len({k.digest() for k in known}) == len(known)
    joined = [Knowledge.of(PHI, [[0.5], [0.5]], y) for y in (["a", "b,1:c"], ["a,5:b", "c"])]
    assert len({k.digest() for k in joined}) == 2


def test_of_classes_is_the_sum_of_outer_products(rng):
    X, y = rng.normal(size=(50, 3)), rng.integers(0, 3, 50)
    k = Knowledge.of(PHI, X, y)
    codes = PHI.bind(3).codes(X)
    assert (k.gram == exact_gram(np.hstack([codes, y[:, None] == np.arange(3)]))).all()
    assert k.responses == (0, 1, 2)
    assert k.class_counts == dict(enumerate(np.bincount(y).tolist()))
    assert (k.response_sums[:, 1] == codes[y == 1].sum(axis=0)).all()
    assert (k.feature_gram == exact_gram(codes)).all()
    assert (k.n_samples, k.n_outputs) == (50, 4)
    assert k.gram[3, 3] == 50  # the corner of the constant feature counts the rows


def test_of_targets(rng):
    X, y = rng.normal(size=(50, 3)), rng.normal(size=(50, 2)) * 1000
    k = Knowledge.of(PHI, X, y, task="regression", target_resolution=2**-4)
    codes = np.hstack([PHI.bind(3).codes(X), np.rint(y * 16)])
    assert (k.gram == exact_gram(codes)).all()
    assert (k.n_samples, k.responses) == (50, (0, 1))
    with pytest.raises(AttributeError, match="no classes"):
        _ = k.class_counts


def test_it_cannot_be_written_to(rng):
    k = Knowledge.of(PHI, rng.normal(size=(5, 2)), [0, 1, 0, 1, 0])
    for other in (k, k + k, -k, k - k, pickle.loads(pickle.dumps(k)), copy.deepcopy(k)):
        with pytest.raises(ValueError, match="read-only"):
            other.gram[0, 0] = 1
    with pytest.raises(AttributeError):
        k.counts = (1,)


def test_what_travels_is_a_triangle(rng):
    for classwise in (False, True):
        k = Knowledge.of(Linear(), rng.normal(size=(9, 300)), np.arange(9) % 3, classwise=classwise)
        assert len(pickle.dumps(k)) < 0.51 * k.sums.nbytes


def test_whole_weights_are_repetitions_except_for_the_count(rng):
    X, y = rng.normal(size=(6, 2)), np.array([0, 1, 0, 1, 1, 0])
    weights = np.array([1, 2, 3, 1, 0, 2])
    a, b = (
        Knowledge.of(PHI, X, y, weights),
        Knowledge.of(PHI, X.repeat(weights, axis=0), y.repeat(weights)),
    )
    assert (a.gram == b.gram).all()
    assert (a.n_samples, b.n_samples) == (5, 9)  # a row of weight 0 is no row
    assert Knowledge.of(PHI, X, y, np.ones(6)) == Knowledge.of(PHI, X, y)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (RandomFourier(10), "map is Linear here and RandomFourier there"),
        (Linear(resolution=2**-8), r"resolution is 6\.1.*e-05 here and 0\.00390625 there"),
        (Linear(bias=False), "bias is True here and False there"),
    ],
)
def test_other_feature_maps_are_named(other, message):
    a, b = (Knowledge.of(phi, [[0.5, 1.0]], ["x"]) for phi in (PHI, other))
    with pytest.raises(MismatchError, match=message):
        a + b
    assert a != b


def test_what_else_cannot_be_combined():
    a = Knowledge.of(PHI, [[0.5, 1.0]], [1])
    with pytest.raises(MismatchError, match="n_features is 2 here and 1 there"):
        a + Knowledge.of(PHI, [[0.5]], [1])
    with pytest.raises(MismatchError, match=r"classification .* regression"):
        a + Knowledge.of(PHI, [[0.5, 1.0]], [1.0], task="regression")
    with pytest.raises(MismatchError, match="int and str"):
        a + Knowledge.of(PHI, [[0.5, 1.0]], ["1"])
    with pytest.raises(MismatchError, match="bool and int"):
        a + Knowledge.of(PHI, [[0.5, 1.0]], [True])
    one, two = (Knowledge.of(PHI, [[0.5]], y, task="regression") for y in ([1.0], [[1.0, 2.0]]))
    with pytest.raises(MismatchError, match="1 targets on one side and 2"):
        one + two
    with pytest.raises(MismatchError, match="target_resolution"):
        one + Knowledge.of(PHI, [[0.5]], [1.0], task="regression", target_resolution=1.0)
    for nonsense in (lambda: a + 1, lambda: a - 0.5, lambda: a + "x"):
        with pytest.raises(TypeError):
            nonsense()
    assert a != "x"


def test_printing_says_what_it_knows():
    k = Knowledge.of(PHI, [[0.5], [1.0]], ["no", "yes"])
    assert repr(k).startswith(
        "<Knowledge of 2 rows, 2 features, classes {'no': 1, 'yes': 1}, digest "
    )
    assert "targets 1" in repr(Knowledge.of(PHI, [[0.5]], [2.0], task="regression"))


FOUR, TWO = np.array([[1.0], [2.0], [3.0], [4.0]]), np.array(["a", "a", "b", "b"])


@pytest.mark.parametrize(
    ("gone", "message"),
    [
        ((FOUR[[0, 1, 1]], ["a"] * 3), "class 'a': 1 too many"),
        ((FOUR[:1], ["c"]), "class 'c': 1 too many"),
        (([[1.0], [2.5]], ["a", "a"]), "sums without rows for class 'a'"),
        ((FOUR + 1.0, TWO), "sums without rows"),
        ((FOUR[:2], TWO[:2], [1, 2]), "sums without rows for class 'a'"),
        (([[100.0]], ["a"]), "not those of any data set"),
    ],
)
def test_rows_that_were_never_learned_are_refused(gone, message):
    known = Knowledge.of(PHI, FOUR, TWO)
    assert known.check_possible() is known
    (known - Knowledge.of(PHI, FOUR[:3], TWO[:3])).check_possible()
    with pytest.raises(NotLearnedError, match=message):
        (known - Knowledge.of(PHI, *gone)).check_possible()


def test_targets_that_were_never_learned_are_refused():
    a, b = (Knowledge.of(PHI, FOUR, t, task="regression") for t in ([1, 2, 3, 4], [1, 2, 3, 5]))
    with pytest.raises(NotLearnedError, match="sums without rows for rows"):
        (a - b).check_possible()
    with pytest.raises(NotLearnedError, match="rows: 4 too many"):
        (-a).check_possible()


def test_an_entry_larger_than_the_diagonal_allows():
    k = Knowledge.of(PHI, [[1.0, 1.0], [1.0, -1.0], [1.0, 1.0]], ["a"] * 3)
    k = k - Knowledge.of(PHI, [[1.0, -1.0]], ["a"]) - Knowledge.of(PHI, [[1.0, -1.0]], ["a"])
    with pytest.raises(NotLearnedError, match="not those of any data set"):
        k.check_possible()


def test_an_unknown_row_while_there_are_fewer_rows_than_features(rng):
    X, y = rng.normal(size=(20, 40)), rng.integers(0, 2, 20)
    k = Knowledge.of(PHI, X, y)
    (k - Knowledge.of(PHI, X[:1], y[:1])).check_possible()
    for row in ((X[:1] + 1.0, y[:1]), (X[:1], 1 - y[:1]), (X[:1], y[:1], [1.01])):
        with pytest.raises(NotLearnedError, match="not those of any data set"):
            (k - Knowledge.of(PHI, *row)).check_possible()


def test_there_is_no_such_task():
    with pytest.raises(ValueError, match="task must be one of 'classification', 'regression'"):
        Knowledge.of(PHI, [[1.0]], [1], task="labels")
