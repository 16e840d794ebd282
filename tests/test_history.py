"""The promise: the same data gives the same bits, whatever the history."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from sklearn.base import clone
from threadpoolctl import ThreadpoolController

from cases import MAPS, PENALTIES, Cubes, examples, name, penalty_name, slow_plainly
from traceless import LSSVC, LSSVR, Knowledge, features
from traceless.features import Linear, Polynomial, RandomFourier, RandomLayer, Table
from traceless.knowledge import gathering

POOL = 10
BLAS = ThreadpoolController()


VALUES = st.floats(-2, 2) | st.integers(-2, 2).map(float) | st.floats(-1000, 1000)
ROWS = npst.arrays(np.float64, (POOL, 2), elements=VALUES)


def responses_of(model):
    if isinstance(model, LSSVC):
        return npst.arrays(np.int64, POOL, elements=st.integers(0, 3))
    return npst.arrays(np.float64, (POOL, 2), elements=st.floats(-100, 100))


weights_strategy = (
    st.none()
    | npst.arrays(np.float64, POOL, elements=st.integers(1, 4).map(float))
    | npst.arrays(np.float64, POOL, elements=st.floats(0.01, 8))
)
some = st.lists(st.integers(0, POOL - 1), min_size=1, max_size=5)  # rows may be taken repeatedly


@st.composite
def histories(draw):
    """(verb, rows added, rows forgotten, BLAS threads, chunk): forgets only what is held."""
    held, steps = [], []
    for _ in range(draw(st.integers(1, 6))):
        verb = draw(st.sampled_from(["partial_fit", "forget", "update", "merge", "one by one"]))
        gone = []
        if verb in ("forget", "update") and held:
            gone = draw(st.lists(st.sampled_from(range(len(held))), unique=True, min_size=1))
            gone = [held[i] for i in gone]
        added = [] if verb == "forget" and gone else draw(some)
        for row in gone:
            held.remove(row)
        held += added
        steps.append(
            (verb, added, gone, draw(st.integers(1, 2)), draw(st.sampled_from([1, 3, 1024])))
        )
    return steps, held


def play(model, steps, take):
    """Run a history on a model; `take` turns row numbers into (X, y, weight)."""
    for verb, added, gone, threads, chunk in steps:
        with BLAS.limit(limits=threads), pytest.MonkeyPatch.context() as patch:
            patch.setattr(gathering, "_chunk_rows", lambda _, chunk=chunk: chunk)
            if verb == "merge":
                model.merge(clone(model).fit(*take(added)), again=True)
            elif verb == "one by one":
                for row in added:
                    model.update(add=take([row]))
            elif verb == "forget" and gone:
                model.forget(*take(gone))
            elif verb == "update" and gone:
                model.update(add=take(added), forget=take(gone))
            else:
                X, y, weight = take(added)
                model.partial_fit(X, y, sample_weight=weight)


def played(model, data):
    """Draw rows and a history, and play it; returns (X, take, the rows held in the end)."""
    X, y = (
        data.draw(npst.arrays(np.float64, (POOL, 2), elements=VALUES)),
        data.draw(responses_of(model)),
    )
    weights = data.draw(weights_strategy)
    steps, held = data.draw(histories())

    def take(rows):
        return X[rows], y[rows], None if weights is None else weights[rows]

    play(model, steps, take)
    return X, take, held


def assert_same_bits(a, b, X):
    assert a.knowledge_ == b.knowledge_
    assert a.digest() == b.digest()
    assert a.n_samples_ == b.n_samples_
    assert np.array_equal(a.feature_coef_, b.feature_coef_)
    assert np.array_equal(a.intercept_, b.intercept_)
    together = b.predict(X)
    alone = [a.predict(X[i : i + 1])[0] for i in range(len(X))]
    assert np.array_equal(together, alone)
    if isinstance(a, LSSVC):
        assert np.array_equal(a.classes_, b.classes_)
        assert np.array_equal(a.decision_function(X[::-1])[::-1], b.decision_function(X))


@pytest.mark.filterwarnings("ignore::traceless.ResolutionWarning")
@pytest.mark.parametrize("phi", MAPS, ids=name)
@pytest.mark.parametrize("kind", [LSSVC, LSSVR])
@settings(max_examples=50)
@given(data=st.data())
def test_any_history_equals_a_fit_from_scratch(kind, phi, data):
    penalty = data.draw(st.sampled_from(PENALTIES))
    model = kind(phi, rho=data.draw(st.sampled_from([1.0, 0.1, 100.0])), **penalty)
    X, take, held = played(model, data)
    if not held:
        assert model.n_samples_ == 0
        assert not model.knowledge_.gram.any()
        return
    fresh = kind(phi, rho=model.rho, **penalty).fit(*take(sorted(held)))
    assert_same_bits(model, fresh, X)


@pytest.mark.filterwarnings("ignore::traceless.ResolutionWarning")
@pytest.mark.parametrize("weighting", ["shared", "one_vs_rest"])
@given(data=st.data())
def test_class_weights_leave_no_trace_either(weighting, data):
    rule = data.draw(st.sampled_from(["balanced", "inverse", "golden", None]))
    penalty = data.draw(st.sampled_from(PENALTIES))
    model = LSSVC(class_weight=rule, weighting=weighting, classwise=True, **penalty)
    X, take, held = played(model, data)
    if held:
        assert_same_bits(model, clone(model).fit(*take(sorted(held))), X)


@pytest.mark.filterwarnings("ignore::traceless.ResolutionWarning")
@pytest.mark.parametrize("penalty", PENALTIES, ids=penalty_name)
@pytest.mark.parametrize("kind", [LSSVC, LSSVR])
@examples(40)
@given(data=st.data())
def test_a_live_history_is_close_and_once_sealed_the_same(kind, penalty, data):
    model = kind(Linear(), solver="woodbury", **penalty)
    X, take, held = played(model, data)
    if held:
        fresh = kind(Linear(), **penalty).fit(*take(sorted(held)))
        np.testing.assert_allclose(model.coef_, fresh.coef_, rtol=1e-4, atol=1e-7)
        assert_same_bits(model.seal(), fresh, X)


@slow_plainly
@pytest.mark.parametrize("phi", [Linear(), RandomFourier(256, gamma=0.05)], ids=name)
def test_a_history_large_enough_for_threads_and_blocks(phi, rng):
    X, y = rng.normal(size=(6000, 40)), rng.integers(0, 5, 6000)
    weights = rng.uniform(0.5, 2, size=6000)
    model = LSSVC(phi)
    for start in range(0, 6000, 1700):
        part = slice(start, start + 1700)
        with BLAS.limit(limits=1 + start % 2):
            model.partial_fit(X[part], y[part], sample_weight=weights[part])
    gone = rng.permutation(6000)[:2500]
    with BLAS.limit(limits=2):
        model.forget(X[gone], y[gone], weights[gone])
    kept = np.setdiff1d(np.arange(6000), gone)[::-1]
    with BLAS.limit(limits=1):
        fresh = LSSVC(phi).fit(X[kept], y[kept], weights[kept])
    assert_same_bits(model, fresh, X[:100])


def test_sites_that_pool_their_models_equal_the_whole(rng):
    X, y = rng.normal(size=(400, 5)), rng.integers(0, 3, 400)
    sites = [LSSVC().fit(X[i::4], y[i::4]) for i in range(4)]
    pooled = LSSVC().merge(sum(site.knowledge_ for site in sites))
    chain = LSSVC()
    for site in reversed(sites):
        chain.merge(site)
    central = LSSVC().fit(X, y)
    assert_same_bits(pooled, central, X[:20])
    assert_same_bits(chain, central, X[:20])
    chain.merge(-sites[2].knowledge_)
    rest = np.setdiff1d(np.arange(400), np.arange(2, 400, 4))
    assert_same_bits(chain, LSSVC().fit(X[rest], y[rest]), X[:20])


def test_mnist_learned_in_parts_and_half_forgotten(mnist):
    X, y, X_test, _ = mnist
    X, y = X[:6000], y[:6000]
    model = LSSVC(rho=1.0)
    for part in np.array_split(np.arange(6000), 5):
        model.partial_fit(X[part], y[part])
    model.forget(X[::2], y[::2])
    assert_same_bits(model, LSSVC(rho=1.0).fit(X[1::2], y[1::2]), X_test[:50])


# Digests of small fixed data, as first computed: they must be the same on every machine, BLAS
# and version. If one changes, models made before can no longer be compared with models made after.
GOLDEN = {
    "Linear": (Linear(), "5da72eed7a23c4d2fdb83dcc8d7f221c4ac51d3306c6d436d4f8c2f5f916541a"),
    "Polynomial": (
        Polynomial(degree=2),
        "c16a9c09a113b541a08be350d37e95da066c050b7416f577bf69daee6f3d4d9f",
    ),
    "RandomFourier": (
        RandomFourier(50, gamma=0.1, random_state=3),
        "2f6dc3d7d68f8fee3bdbeb4bfa7641c077a3bd48342ec19f28b4cdf00d1c76ca",
    ),
    "RandomLayer": (
        RandomLayer(40, random_state=1),
        "caa9e44db95737c431420e5ee74baca6b32ea8719d97380e817a80a10e92891e",
    ),
    "Table": (Table(), "3dc38d1be85a40a9162b0fde508ae334d155fa5b0d683a8d38cc3d157b097166"),
    "Cubes": (Cubes(), "421f18b9e34a4098a0bffd55e62b8b035b0ab77a6a1d86e4a5e8c0357a438573"),
}
CLASSWISE = "77961f2deade472e5477f08388792b54d35f2e0a1fc1cf84e5204d38f1bd93ff"  # of Linear


@pytest.mark.parametrize("kind", [*features.MAPS, "Cubes"])
def test_digests_are_those_of_other_machines(kind):
    phi, digest = GOLDEN[kind]
    X = np.array([[((7 * i + 3 * j) % 11 - 5) / 3 for j in range(3)] for i in range(20)])
    y = [["cat", "dog", "owl"][i % 3] for i in range(20)]
    assert Knowledge.of(phi, X, y).digest() == digest
    if kind == "Linear":
        assert Knowledge.of(phi, X, y, classwise=True).digest() == CLASSWISE
