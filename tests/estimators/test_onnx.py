"""ONNX models answer as the estimators they are made of, in onnxruntime."""

import numpy as np
import onnx
import onnxruntime
import pytest

from cases import MAPS, Cubes, name
from ours import NUMBERS
from traceless import LPSVM, LSSVC, LSSVR, SlidingWindow
from traceless.arithmetic.products import Coefficients
from traceless.estimators.onnx import to_onnx
from traceless.features import Linear, Polynomial, RandomFourier, RandomLayer, Table

OURS = [
    *(phi for phi in MAPS if not isinstance(phi, Cubes)),
    Linear(resolution=[2**-4, 2**-14, 2**-20]),
    Polynomial(degree=3, gamma=0.5, coef0=0.0, bias=False),
    RandomFourier(51, gamma=2.0),
    RandomFourier(5, gamma=0.5, resolution=2.0 ** -np.arange(10, 15)),
    RandomFourier(6, input_resolution=[2**-4, 2**-14, 2**-20]),
    Table(NUMBERS, resolution=2**-12),
    Polynomial(table=Table(NUMBERS)),
    RandomFourier(8, gamma=0.1, table=Table(NUMBERS)),
    RandomLayer(9, table=Table(NUMBERS)),
    RandomLayer(2, resolution=[2**-8, 2**-14], input_resolution=[2**-6, 2**-20, 2**-5]),
]


def answers(model, X):
    session = onnxruntime.InferenceSession(
        model if isinstance(model, str) else model.SerializeToString(),
        providers=["CPUExecutionProvider"],
    )
    found = session.run(None, {"X": X})
    return dict(zip([o.name for o in session.get_outputs()], found, strict=True))


def rows(rng, n=200, spread=1.0):
    return spread * rng.normal(size=(n, 3))


def labels(X, names):
    return np.array(names)[(np.abs(X).sum(axis=1) * 2).astype(int) % len(names)]


def close(found, expected):
    """Within a few units in the last place of the largest."""
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= 1e-13 * max(1.0, np.abs(expected).max())


@pytest.mark.parametrize("phi", OURS, ids=name)
@pytest.mark.parametrize("names", [["a", "bb"], [3, -5, 2**40], [False, True]], ids=str)
def test_classifiers(rng, phi, names):
    X = rows(rng)
    clf = LSSVC(phi, rho=0.1).fit(X, labels(X, names))
    T = rows(rng, 500, 2.0)
    found = answers(to_onnx(clf), T)
    assert found["label"].tolist() == clf.predict(T).tolist()
    close(found["scores"], clf.decision_function(T))
    assert np.abs(found["probabilities"] - clf.predict_proba(T)).max() < 1e-9


@pytest.mark.parametrize("n_classes", [1, 2, 3, 6])
@pytest.mark.parametrize("decision", ["scores", "posterior"])
@pytest.mark.parametrize("classwise", [False, True])
def test_probabilities(rng, n_classes, decision, classwise):
    X = rows(rng, 400)
    y = labels(X, list("abcdef"[:n_classes]))
    clf = LSSVC(Polynomial(2), decision=decision, classwise=classwise).fit(X, y)
    T = rows(rng, 500, 2.0)
    for priors in (
        None,
        np.arange(1, n_classes + 1) / sum(range(n_classes + 1)),
        [0.0] * 5 + [1.0],
    ):
        if priors is not None and len(priors) != n_classes:
            continue
        found = answers(to_onnx(clf.set_params(priors=priors)), T)
        assert np.abs(found["probabilities"] - clf.predict_proba(T)).max() < 1e-11
        assert found["label"].tolist() == clf.predict(T).tolist()


def test_who_has_no_probabilities(rng):
    X = rows(rng)
    y = labels(X, ["a", "b", "c"])
    apart = LSSVC(class_weight="balanced", weighting="one_vs_rest").fit(X, y)
    assert "probabilities" not in answers(to_onnx(apart), X)
    with pytest.raises(ValueError, match="needs the probabilities that this model lacks"):
        to_onnx(apart.set_params(decision="posterior"))


@pytest.mark.parametrize("phi", OURS, ids=name)
@pytest.mark.parametrize("n_targets", [1, 3])
def test_regressors(rng, phi, n_targets):
    X = rows(rng)
    reg = LSSVR(phi, rho=0.1).fit(X, np.sin(X[:, :n_targets]).squeeze())
    T = rows(rng, 500, 2.0)
    close(answers(to_onnx(reg), T)["prediction"], reg.predict(T))


@pytest.mark.parametrize("phi", OURS, ids=name)
def test_features_are_those_of_the_model_to_the_bit(rng, phi):
    """Weights that pick one feature show its codes."""
    X = rows(rng)
    reg = LSSVR(phi, rho=0.1).fit(X, X[:, 0])
    weights, bound = reg._weights()
    J = len(bound.steps) - bound.has_bias
    only = np.zeros_like(weights.Z)
    T = np.concatenate([rows(rng, 50, size) for size in (1e-3, 1.0, 30.0, 500.0)])
    codes = bound.codes(T)
    for j in range(0, J, max(1, J // 5)):
        only[:], only[j] = 0.0, 1.0
        reg._weights = lambda: (Coefficients(only), bound)
        found = answers(to_onnx(reg), T)["prediction"]
        assert (found == codes[:, j] * reg.target_resolution).all()


def test_the_batch_may_have_any_size(rng):
    X = rows(rng)
    clf = LSSVC(RandomLayer(20)).fit(X, labels(X, ["a", "b", "c"]))
    model = to_onnx(clf)
    expected = clf.predict(X).tolist()
    for n in (0, 1, 7, 200):
        found = answers(model, X[:n])
        assert found["label"].tolist() == expected[:n]
        assert found["scores"].shape == (n, 3)


def test_weights_and_live_models(rng):
    X = rows(rng)
    y = labels(X, ["a", "b", "c"])
    for clf in (LSSVC(class_weight="balanced"), LSSVC(solver="woodbury")):
        clf.fit(X, y).forget(X[:5], y[:5])
        close(answers(to_onnx(clf), X)["scores"], clf.decision_function(X))


def test_the_file_says_which_model_it_is(rng, tmp_path):
    X = rows(rng)
    clf = LSSVC().fit(X, labels(X, ["a", "b"]))
    path = str(tmp_path / "model.onnx")
    to_onnx(clf, path)
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    assert {p.key: p.value for p in model.metadata_props} == {"digest": clf.digest()}
    assert answers(path, X)["label"].tolist() == clf.predict(X).tolist()
    assert [p.name for p in tmp_path.iterdir()] == ["model.onnx"]


def test_a_state_without_knowledge_has_no_digest(rng):
    X = rows(rng)
    y = labels(X, ["a", "b"])
    state = LPSVM(solver="woodbury").fit(X, y).export_state()
    clf = LPSVM(solver="woodbury").import_state(state)
    model = to_onnx(clf)
    assert not model.metadata_props
    found = answers(model, X)
    close(found["scores"], clf.decision_function(X))
    assert "probabilities" not in found


def test_what_has_no_form_is_refused(rng):
    X = rows(rng)
    y = labels(X, ["a", "b"])
    with pytest.raises(TypeError, match="LSSVC or LSSVR, got SlidingWindow"):
        to_onnx(SlidingWindow(LSSVC()).fit(X, y))
    with pytest.raises(TypeError, match="Cubes has no ONNX form"):
        to_onnx(LSSVC(Cubes()).fit(X, y))
    with pytest.raises(TypeError, match="no labels of"):
        to_onnx(LSSVC().fit(X, y.astype("S")))
    with pytest.raises(ValueError, match="not fitted"):
        to_onnx(LSSVC())
