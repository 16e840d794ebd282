from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.utils.class_weight import compute_class_weight

from cases import PAPER, PENALTIES, exact_model, examples, penalty_name, whole
from traceless import LSSVC, Knowledge, MismatchError, NotLearnedError, RangeError
from traceless.features import Linear
from traceless.solvers.class_weights import class_weights

RULES = ["balanced", "inverse", "golden", {0: 2.5, 2: 0.1}, lambda n: n**-0.5]
LABELS = [0, 1, 2]


def names(rule):
    return rule if isinstance(rule, str) else type(rule).__name__


def imbalanced(rng, counts=(60, 25, 8), d=4):
    y = np.repeat(np.arange(len(counts)), counts)
    X = rng.normal(size=(len(y), d)) + y[:, None]
    order = rng.permutation(len(y))
    return X[order], y[order]


# --- the weights ---------------------------------------------------------------------------


def test_rules_of_the_counts():
    counts = (60, 30, 10)
    (balanced,) = class_weights("balanced", "shared", LABELS, counts)
    y = np.repeat(LABELS, counts)
    assert balanced == tuple(compute_class_weight("balanced", classes=np.unique(y), y=y))
    assert class_weights("inverse", "shared", LABELS, counts) == ((1 / 60, 1 / 30, 1 / 10),)
    assert class_weights("golden", "shared", LABELS, counts) == ((0.618 / 60, 1 / 30, 1 / 10),)
    assert class_weights({1: 3.0}, "shared", LABELS, counts) == ((1.0, 3.0, 1.0),)
    assert class_weights(lambda n: n / 10, "shared", LABELS, counts) == ((6.0, 3.0, 1.0),)
    assert class_weights(None, "shared", LABELS, counts) is None
    assert class_weights("golden", "shared", [0, 1], (5, 5)) == ((0.2, 0.2),)  # not above the mean


def test_each_problem_has_its_own_two_counts():
    found = class_weights("inverse", "one_vs_rest", LABELS, (60, 30, 10))
    assert found == ((1 / 40, 1 / 60), (1 / 70, 1 / 30), (1 / 90, 1 / 10))
    numbers = class_weights({0: 2.0}, "one_vs_rest", LABELS, (60, 30, 10))
    assert numbers == ((2.0, 1.0, 1.0),)  # a weight for each class is the same in all problems
    two = class_weights("golden", "one_vs_rest", [0, 1], (60, 10))
    assert two == class_weights("golden", "shared", [0, 1], (60, 10))  # one problem only


@pytest.mark.parametrize(
    ("rule", "scope", "error", "message"),
    [
        ("even", "shared", ValueError, "class_weight must be None, 'balanced'.*got 'even'"),
        ("balanced", "each", ValueError, "weighting must be 'shared' or 'one_vs_rest', got 'each'"),
        ({0: -1.0}, "shared", ValueError, "3 finite numbers ≥ 0"),
        ({0: np.nan}, "shared", ValueError, "3 finite numbers ≥ 0"),
        (lambda n: n[:2], "shared", ValueError, "3 finite numbers ≥ 0"),
        ({0: 1e-40}, "shared", RangeError, "between 1e-30 and 1e30"),
    ],
)
def test_what_is_no_weight(rule, scope, error, message, rng):
    with pytest.raises(error, match=message):
        class_weights(rule, scope, LABELS, (1, 2, 3))
    model = LSSVC(class_weight=rule, weighting=scope)
    with pytest.raises(error, match=message):
        model.fit(*imbalanced(rng))
    assert not hasattr(model, "classes_")


# --- the solution ----------------------------------------------------------------------------


@pytest.mark.parametrize("penalty", PENALTIES, ids=penalty_name)
@pytest.mark.parametrize("rule", ["balanced", "inverse", "golden", RULES[-1]], ids=names)
def test_weights_of_each_problem_are_those_of_the_binary_one(rule, penalty, rng):
    X, y = imbalanced(rng)
    model = LSSVC(rho=0.01, class_weight=rule, weighting="one_vs_rest", **penalty).fit(X, y)
    for k in LABELS:
        binary = LSSVC(rho=0.01, class_weight=rule, **penalty).fit(X, y == k)
        assert (binary.coef_[0] == model.coef_[k]).all()
        assert binary.intercept_[0] == model.intercept_[k]


@pytest.mark.parametrize("penalty", PENALTIES, ids=penalty_name)
@pytest.mark.parametrize("scope", ["shared", "one_vs_rest"])
@given(
    st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9), st.integers(0, 2)), min_size=1),
    st.sampled_from(["balanced", "inverse", "golden", {0: 0.3, 1: 0.0}]),
    st.sampled_from([1.0, 0.1, 2.0**-30]),
    st.sampled_from([0.0, 0.0, 1e6]),
)
@examples(20)
def test_coefficients_are_the_nearest_floats_to_the_exact_ones(
    penalty, scope, rows, rule, rho, far
):
    X, y = np.array([(a + far, b) for a, b, _ in rows]), np.array([label for *_, label in rows])
    model = LSSVC(
        Linear(resolution=1.0), rho=rho, class_weight=rule, weighting=scope, **penalty
    ).fit(X, y)
    labels, counts = np.unique(y, return_counts=True)
    groups = class_weights(rule, scope, labels.tolist(), [Fraction(n) for n in counts.tolist()])
    code = model._code(whole(y[:, None] == labels))
    for k in range(code.shape[1]):
        shared = len(groups) == 1
        of_rows = np.searchsorted(labels, y) if shared else (y == labels[k]).astype(int)
        omega = np.array(groups[0 if shared else k])[of_rows]
        Z, b = exact_model(X, code[:, [k]], rho, penalty, [1.0, 1.0], class_weights=omega)
        assert np.array_equal(model.coef_[k], Z[:, 0])
        assert model.intercept_[k] == b[0]


@pytest.mark.parametrize("largest", [10, 2**25])  # sums of 32 and of 60 bits
def test_many_classes_of_unequal_size(largest, rng):
    X = rng.integers(1 - largest, largest, size=(400, 3)).astype(float)
    y = np.sort(rng.integers(0, 60, 400) ** 2 // 60)  # 60 classes of unequal size
    labels, counts = np.unique(y, return_counts=True)
    (weights,) = class_weights(
        "golden", "shared", labels.tolist(), [Fraction(n) for n in counts.tolist()]
    )
    omega = np.array(weights)[np.searchsorted(labels, y)]
    for penalty in (PENALTIES[0], PAPER):
        model = LSSVC(Linear(resolution=1.0), rho=0.5, class_weight="golden", **penalty).fit(X, y)
        code = model._code(whole(y[:, None] == labels))[:, :2]
        Z, b = exact_model(X, code, 0.5, penalty, [1.0] * 3, None, omega)
        assert np.array_equal(model.coef_[:2], Z.T)
        assert np.array_equal(model.intercept_[:2], b)


# --- weights follow the data, and may change -----------------------------------------------------


def test_weights_change_without_the_data(rng):
    X, y = imbalanced(rng)
    model = LSSVC(classwise=True).fit(X, y)
    plain = LSSVC().fit(X, y)
    assert np.array_equal(model.coef_, plain.coef_)
    for rule in RULES:
        model.set_params(class_weight=rule)
        assert np.array_equal(model.coef_, LSSVC(class_weight=rule).fit(X, y).coef_)
    model.set_params(class_weight="golden", weighting="one_vs_rest", rho=0.5)
    fresh = LSSVC(class_weight="golden", weighting="one_vs_rest", rho=0.5).fit(X, y)
    assert np.array_equal(model.coef_, fresh.coef_)
    model.set_params(class_weight=None, rho=1.0)
    assert np.array_equal(model.coef_, plain.coef_)


def test_pooled_knowledge_says_what_to_keep(rng):
    X, y = imbalanced(rng)
    model = LSSVC().fit(X, y)
    digest = model.digest()
    model.set_params(class_weight="balanced")
    with pytest.raises(MismatchError, match="classwise=True"):
        model.predict(X)
    model.set_params(class_weight=None)
    assert model.digest() == digest
    assert model.score(X, y) > 0.5


def test_a_live_model_solves_its_knowledge_where_classes_are_weighted(rng):
    X, y = imbalanced(rng)
    live = LSSVC(solver="woodbury", class_weight="balanced").fit(X, y)
    live.forget(X[:9], y[:9])
    fresh = LSSVC(class_weight="balanced").fit(X[9:], y[9:])
    assert np.array_equal(live.coef_, fresh.coef_)
    live.set_params(class_weight=None).partial_fit(X[:9], y[:9])
    np.testing.assert_allclose(live.coef_, LSSVC().fit(X, y).coef_, rtol=1e-9)


def test_rows_with_weights_count_as_much(rng):
    X, y = imbalanced(rng)
    weight = rng.integers(0, 4, len(y))
    for rule in ("balanced", "inverse", "golden", lambda n: 1 / n):
        a = LSSVC(class_weight=rule).fit(X, y, weight)
        b = LSSVC(class_weight=rule).fit(X.repeat(weight, axis=0), y.repeat(weight))
        assert np.array_equal(a.coef_, b.coef_)


def test_one_class_is_predicted():
    one = LSSVC(class_weight="balanced", weighting="one_vs_rest").fit([[1.0], [2.0]], [7, 7])
    assert one.predict([[3.0]]).tolist() == [7]


# --- class-wise knowledge ----------------------------------------------------------------------


def test_pooling_gives_the_pooled_digest(rng):
    X, y = imbalanced(rng)
    weights = rng.integers(0, 3, len(y)) / 2
    for w in (None, weights):
        by_class = Knowledge.of(Linear(), X, y, w, classwise=True)
        pooled = Knowledge.of(Linear(), X, y, w)
        assert by_class.pooled() == pooled
        assert by_class.pooled().digest() == pooled.digest() != by_class.digest()
        assert (by_class.response_sums == pooled.response_sums).all()
        assert "class-wise" in repr(by_class)


def test_a_row_with_another_label_is_seen_where_pooled_knowledge_cannot(rng):
    X, y = imbalanced(rng, (300, 5), d=2)
    i = np.flatnonzero(y == 0)[np.abs(X[y == 0]).sum(axis=1).argmax()]
    for classwise in (True, False):
        model = LSSVC(classwise=classwise).fit(X, y)
        if classwise:
            with pytest.raises(NotLearnedError, match="not those of any data set"):
                model.forget(X[[i]] * 3, [1])
        else:
            model.forget(X[[i]] * 3, [1])


def test_pooled_and_class_wise_do_not_mix(rng):
    X, y = imbalanced(rng)
    pooled, by_class = (Knowledge.of(Linear(), X, y, classwise=c) for c in (False, True))
    with pytest.raises(MismatchError, match="classwise=True"):
        pooled + by_class
    kept = LSSVC(classwise=True).fit(X, y)
    with pytest.raises(MismatchError, match="classwise=True"):
        kept.merge(pooled)
    assert LSSVC().fit(X, y).merge(by_class).knowledge_ == pooled + pooled
    assert LSSVC().merge(by_class).knowledge_ == by_class  # what comes first decides
    assert LSSVC(classwise=False).merge(by_class).knowledge_ == pooled
    with pytest.raises(ValueError, match="no classes to keep apart"):
        Knowledge.of(Linear(), X, X[:, 0], task="regression", classwise=True)
