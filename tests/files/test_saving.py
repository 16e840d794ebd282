"""Saved and loaded: the same digest, the same bits, and life goes on; nothing else gets in."""

import copy
import json
import subprocess
import sys
import tracemalloc
from contextlib import contextmanager
from functools import reduce
from operator import getitem
from pathlib import Path

import numpy as np
import pytest
from forge import Forged
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import traceless
from cases import MAPS, PAPER, PENALTIES, Cubes, examples, name, penalty_name
from test_history import played
from traceless import LSSVC, LSSVR, Knowledge, PathSVC, SlidingWindow
from traceless.estimators.loading import from_description
from traceless.exceptions import FileError, UnsealableError
from traceless.features import Linear, RandomFourier, RandomLayer
from traceless.files.saving import described

NAMES = [["a", "bb", "c"], [3, -5, 2**40], [False, True], [b"x", b"\xff"], ["ä", "\ud800"]]


def rows(rng, n=60):
    return rng.normal(size=(n, 3))


def labels(X, names):
    return np.array(names)[(np.abs(X).sum(axis=1) * 2).astype(int) % len(names)]


def answers(model, X):
    return getattr(model, "decision_function", model.predict)(X).tobytes()


@pytest.fixture
def there_and_back(tmp_path):
    """Save, load, check that the file of what was loaded is the same; returns it."""

    def check(model):
        sha256 = model.save(tmp_path / "a")
        again = traceless.load(tmp_path / "a")
        assert again.save(tmp_path / "b") == sha256
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
        assert type(again) is type(model)
        return again

    return check


@contextmanager
def little_memory(more=0):
    """Less than a megabyte, and what a larger file needs."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < 2**20 + more
    finally:
        tracemalloc.stop()


def forged(path, change):
    """Load a file whose facts were changed, with a right hash."""
    file = Forged(path)
    facts = file.facts
    change(facts, file)
    file.facts = facts
    file.write(path)
    return traceless.load(path)


# --- every form of every estimator -------------------------------------------------------------


def forms():
    """(id, estimator, labels or number of targets) of every form that a file can have."""
    maps = [phi for phi in MAPS if not isinstance(phi, Cubes)] + [
        None,
        Linear(resolution=[2**-4, 2**-14, 2**-20]),
        Linear(resolution=np.full(3, 2**-6)),
        RandomFourier(3, resolution=[2**-12, 2**-13, 2**-14], input_resolution=np.full(3, 2**-6)),
        RandomLayer(2, resolution=np.full(2, 2**-6), input_resolution=[2**-5, 2**-6, 2**-14]),
    ]
    for solver in ("cholesky", "woodbury"):
        for k, phi in enumerate(maps):
            model = LSSVC(phi, rho=0.1, solver=solver)
            yield f"LSSVC-{name(phi)}-{solver}", model, NAMES[k % len(NAMES)]
        for penalty in PENALTIES:
            model = LSSVC(solver=solver, **penalty)
            yield f"LSSVC-{penalty_name(penalty)}-{solver}", model, NAMES[0]
        for phi in (None, RandomLayer(7), Linear(resolution=2**-40)):
            for n in (1, 3):
                yield f"LSSVR-{name(phi)}-{n}-{solver}", LSSVR(phi, solver=solver), n
    weighted = {np.int64(3): 2, -5.0: np.float64(0.5), 2**40: 1}
    yield "LSSVC-weights", LSSVC(rho=np.float32(0.5), class_weight=weighted), NAMES[1]
    yield "LSSVC-bytes", LSSVC(class_weight={b"x": 1.0, b"\xff": 2.0}, n_jobs=1), NAMES[3]
    for k, kernel in enumerate(("rbf", "linear", "poly")):
        for strategy in ("ovo", "ovr"):
            model = PathSVC(kernel=kernel, gamma=0.3, strategy=strategy, class_weight="balanced")
            yield f"PathSVC-{kernel}-{strategy}", model, NAMES[k]
    for inner, y in (
        (LSSVC(), NAMES[0]),
        (LSSVC(solver="woodbury"), NAMES[0]),
        (LSSVR(), 2),
        (PathSVC(gamma=0.3), NAMES[0]),
    ):
        yield f"window-{name(inner)}", SlidingWindow(inner, size=40), y


def assert_same(again, model, X):
    assert described(again) == described(model)
    assert answers(again, X) == answers(model, X)
    assert again.digest() == model.digest()
    for attribute in ("n_samples_", "classes_", "ids_"):
        ours, theirs = (getattr(one, attribute, None) for one in (model, again))
        assert np.array_equal(ours, theirs), attribute


def change(model, X, y):
    """Rows come, and others go where these are not chosen by a window."""
    if isinstance(model, SlidingWindow):
        model.partial_fit(X[:20], y[:20], None, np.arange(1.0, 21.0))
    else:
        model.update(add=(X[20:30], y[20:30]), forget=(X[:3], y[:3]))


@pytest.mark.filterwarnings("ignore::traceless.ResolutionWarning")
@pytest.mark.parametrize("form", [*forms()], ids=lambda form: form[0])
def test_every_form_comes_back_and_goes_on(rng, there_and_back, form):
    _, estimator, names = form
    X = rows(rng, 90)
    y = np.sin(X[:, :names]).squeeze() if isinstance(names, int) else labels(X, names)
    description = described(estimator)
    assert described(from_description(json.loads(json.dumps(description)))) == description
    assert described(there_and_back(estimator)) == description
    model = clone(estimator).partial_fit(X[:60], y[:60])
    change(model, X, y)
    before = answers(model, X)
    again = there_and_back(model)
    assert answers(model, X) == before
    assert_same(again, model, X)
    if isinstance(model, PathSVC):
        for attribute in ("last_ids_", "support_", "dual_coef_", "gamma_", "n_breakpoints_"):
            assert np.array_equal(getattr(again, attribute), getattr(model, attribute)), attribute
    for one in (model, again):
        change(one, X[30:], y[30:])
    if not getattr(model, "ambiguous_", False):
        assert_same(again, model, X)


@pytest.mark.parametrize("form", [sparse.csr_matrix, np.float32], ids=["sparse", "float32"])
def test_windows_keep_the_form_of_their_rows(rng, there_and_back, form):
    X = form(np.where((X := rows(rng, 90)) > 0, X, 0.0))
    y = np.arange(90) % 2
    window = SlidingWindow(LSSVC(), size=40).fit(X[:60], y[:60])
    again = there_and_back(window)
    for one in (window, again):
        one.partial_fit(X[60:], y[60:])
    assert_same(again, window, X)


@pytest.mark.filterwarnings("ignore::traceless.ResolutionWarning")
@examples(40)
@given(data=st.data())
def test_any_history_comes_back(tmp_path_factory, data):
    """Whatever has been learned and forgotten, with whatever weights, grids and class weights."""
    rules = [
        {"solver": "woodbury"},
        {"feature_map": Linear(resolution=2**-30)},  # sums beyond int64
        {"class_weight": "golden", "weighting": "shared", "classwise": True},
        {"class_weight": {0: 3.0}, "weighting": "one_vs_rest", "classwise": True},
    ]
    model = LSSVC(**data.draw(st.sampled_from(rules)))
    X, take, held = played(model, data)
    path = tmp_path_factory.mktemp("files") / "x"
    model.save(path)
    again = traceless.load(path)
    assert again.digest() == model.digest()
    if held:
        assert_same(again, model, X)
        for one in (model, again):
            one.partial_fit(*take([0])[:2])
        assert_same(again, model, X)


def test_slices_names_and_counts_come_along(rng, there_and_back):
    pd = pytest.importorskip("pandas")
    X = pd.DataFrame(rows(rng), columns=["a", "b", "c"])
    y = labels(X.to_numpy(), ["x", "y"])
    clf = LSSVC().fit(X[:30], y[:30]).merge(LSSVC().fit(X[30:], y[30:]), name="north")
    again = there_and_back(clf)
    assert again.merged_ == {"north": 1}
    outer = there_and_back(LSSVC().merge(again, name="all"))
    assert outer.merged_ == {"all": 1, "north": 1}
    assert list(again.feature_names_in_) == ["a", "b", "c"]
    with pytest.raises(traceless.exceptions.AlreadyMergedError):
        again.merge(LSSVC().fit(X[30:], y[30:]), name="north")
    assert again.forget(X[30:], y[30:]).digest() == LSSVC().fit(X[:30], y[:30]).digest()


def test_live_states_are_saved_as_they_stand(rng, there_and_back):
    """Rounding errors of the history, and the seal."""
    X = rows(rng, 100)
    y = labels(X, ["a", "b", "c"])
    clf = LSSVC(RandomFourier(20), rho=1e-4, solver="woodbury").fit(X[:50], y[:50])
    for i in range(50, 100):
        clf.update(
            add=(X[i : i + 1], y[i : i + 1]), forget=(X[i - 50 : i - 49], y[i - 50 : i - 49])
        )
    assert answers(there_and_back(clf), X) == answers(clf, X)
    sealed = there_and_back(clf.seal())
    assert answers(sealed, X) == answers(clf, X)
    assert answers(sealed, X) == answers(LSSVC(RandomFourier(20), rho=1e-4).merge(clf), X)
    assert answers(there_and_back(clf.set_params(rho=0.5)), X) == answers(clf, X)


def test_states_without_knowledge(rng, there_and_back):
    X = rows(rng)
    y = labels(X, ["a", "b", "c"])
    state = LSSVC(solver="woodbury", **PAPER).fit(X, y).export_state()
    clf = LSSVC(solver="woodbury", **PAPER).import_state(state)
    again = there_and_back(clf)
    assert answers(again, X) == answers(clf, X)
    for model in (clf, again):
        model.forget(X[:5], y[:5])
    assert answers(again, X) == answers(clf, X)
    with pytest.raises(UnsealableError):
        again.digest()


def test_all_forgotten(rng, there_and_back):
    X = rows(rng)
    y = labels(X, ["a", "b"])
    for model in (LSSVC(), LSSVC(class_weight="balanced"), LSSVC(solver="woodbury"), PathSVC()):
        again = there_and_back(model.fit(X, y).forget(X, y))
        assert again.n_samples_ == 0
        assert again.partial_fit(X, y).n_samples_ == 60


def test_a_file_is_as_small_as_what_is_known(rng, tmp_path):
    X = rng.normal(size=(500, 100))
    LSSVC().fit(X, X[:, 0] > 0).save(tmp_path / "x")
    assert (tmp_path / "x").stat().st_size < 8 * 103 * 104 / 2 + 1500


# --- knowledge ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("phi", "size", "options"),
    [
        (Cubes(), 1.0, {}),
        (Cubes(), 1.0, {"classwise": True}),
        (Linear(), 2.0**25, {}),
        (Linear(), 2.0**25, {"classwise": True}),
        (Linear(), 1.0, {"task": "regression", "target_resolution": 2**-8}),
    ],
)
def test_knowledge(rng, there_and_back, phi, size, options):
    X = rows(rng)
    y = X[:, :2] if "task" in options else labels(X, ["a", "b", "c"])
    one = Knowledge.of(phi, X * size, y, rng.random(60), **options)
    for known in (one, -one, one - one, one + one):
        again = there_and_back(known)
        assert again == known
        assert again.digest() == known.digest()
        assert again + known == known + known
        assert not again.sums.flags.writeable
    assert (one.sums.dtype == object) == (size > 1)


# --- PathSVC ----------------------------------------------------------------------------------


def test_a_loaded_path_svc_goes_everywhere(rng, there_and_back):
    X = rows(rng, 300)
    y = labels(X, ["a", "b"])

    def new():
        return PathSVC(gamma=0.5).fit(X, y)

    assert there_and_back(new()).set_params(C=3.0).digest() == new().set_params(C=3.0).digest()
    changed = there_and_back(new()).set_params(kernel="linear")
    assert changed.digest() == PathSVC(gamma=0.5, kernel="linear").fit(X, y).digest()
    assert there_and_back(new()).fit(X[:50], y[:50]).n_samples_ == 50
    most = there_and_back(new()).forget(X[:290], y[:290])
    assert most.digest() == PathSVC(gamma=0.5).fit(X[290:], y[290:]).digest()
    assert there_and_back(copy.copy(there_and_back(new()))).digest() == new().digest()
    small = there_and_back(PathSVC(gamma=0.5, cache_size=0.1).fit(X, y))
    assert small.forget(X[:9], y[:9]).digest() == new().forget(X[:9], y[:9]).digest()


@pytest.mark.parametrize("cache_size", [1000.0, 0.01])
def test_a_solution_that_is_none_is_measured_and_mended_by_the_next_change(
    rng, tmp_path, cache_size
):
    """A forger can write any α between the bounds: who loads it is told."""
    X = rows(rng)
    y = labels(X, ["a", "b"])
    PathSVC(gamma=0.5, cache_size=cache_size).fit(X, y).save(tmp_path / "x")
    file = Forged(tmp_path / "x")
    begin, end = file.tensors["alpha"]["data_offsets"]
    file.data[begin:end] = (rng.random((end - begin) // 8)).tobytes()
    file.write(tmp_path / "x")
    with pytest.warns(ConvergenceWarning, match="KKT residual of"):
        svc = traceless.load(tmp_path / "x")
    squares = ((X[:, None] - svc.support_vectors_) ** 2).sum(axis=-1)
    f = np.exp(-0.5 * squares) @ svc.dual_coef_[0] + svc.intercept_
    g = np.where(y == "b", 1.0, -1.0) * f - 1.0
    alpha = np.zeros(len(y))
    alpha[svc.support_] = np.abs(svc.dual_coef_[0])
    wrong = np.where(alpha <= 0.0, -g, np.where(alpha >= 1.0, g, np.abs(g))).max()
    assert svc.kkt_residual_ == pytest.approx(wrong, rel=0.5)
    assert wrong > 0.1
    svc.set_params(cache_size=1000.0)
    svc.forget(X[:1], y[:1])
    assert svc.kkt_residual_ < 1e-9
    assert svc.digest() == PathSVC(gamma=0.5).fit(X[1:], y[1:]).digest()


def test_given_kernels(rng, there_and_back):
    X = rows(rng, 50)
    y = labels(X, ["a", "b", "c"])
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    svc = PathSVC(kernel="precomputed").fit(K[:40, :40], y[:40]).forget(ids=[0, 7])
    again = there_and_back(svc)
    held = np.setdiff1d(np.arange(40), [0, 7])
    assert answers(again, K[:, held]) == answers(svc, K[:, held])
    new = np.r_[held, 40:50]
    for model in (svc, again):
        model.partial_fit(K[np.ix_(np.arange(40, 50), new)], y[40:])
    assert answers(again, K[:, new]) == answers(svc, K[:, new])
    assert (again.ids_ == svc.ids_).all()


# --- descriptions -----------------------------------------------------------------------------


def with_map(said):
    """The description of a model, with that of a feature map put into it."""
    model = described(LSSVC())
    return model | {"parameters": model["parameters"] | {"feature_map": said}}


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        [],
        {},
        {"kind": "LSSVC"},
        {"kind": "os.system", "parameters": {"command": "true"}},
        {"kind": ["LSSVC"], "parameters": {}},
        {"kind": "Linear", "parameters": {"bias": True, "resolution": 1}},
        described(LSSVC()) | {"more": 1},
        with_map({}),
        with_map({"kind": None, "parameters": {}}),
        with_map({"kind": "Linear"}),
        described(SlidingWindow(SlidingWindow(LSSVC()))),
    ],
    ids=repr,
)
def test_descriptions_that_are_none(wrong):
    with pytest.raises(ValueError, match=r"expected|is none of"):
        from_description(wrong)


# --- what is refused ---------------------------------------------------------------------------


class Mine(LSSVC):
    pass


def test_what_needs_code_is_not_saved(rng, tmp_path):
    X = rows(rng)
    y = labels(X, ["a", "b"])
    for model, why in [
        (LSSVC(class_weight=lambda n: 1 / n), r"class_weight of LSSVC: a function .* no code"),
        (PathSVC(kernel=lambda a, b: a @ b.T), "kernel of PathSVC: a function"),
        (LSSVC(Cubes()), "feature_map of LSSVC: Cubes cannot be written"),
        (SlidingWindow(LSSVC(Cubes())), "Cubes cannot be written"),
        (Mine(), "Mine cannot be written"),
        (LSSVC(rho=complex(1)), "a complex cannot"),
    ]:
        with pytest.raises(TypeError, match=why):
            model.save(tmp_path / "x")
    with pytest.raises(ValueError, match="a finite number is needed"):
        LSSVC(rho=np.inf).save(tmp_path / "x")
    with pytest.raises(traceless.MismatchError, match="feature maps differ"):
        LSSVC().fit(X, y).set_params(feature_map=RandomLayer(3)).save(tmp_path / "x")
    assert not list(tmp_path.iterdir())


def test_knowledge_of_a_users_map_has_a_file(rng, there_and_back):
    X = rows(rng)
    clf = LSSVC(Cubes()).fit(X, labels(X, ["a", "b"]))
    again = LSSVC(Cubes()).merge(there_and_back(clf.knowledge_))
    assert again.digest() == clf.digest()


def at(*path):
    """A function that makes changes of the facts at this place."""

    def changed(**changes):
        return lambda facts, file: reduce(getitem, path, facts).update(changes)

    return changed


parameter, columns, state = at("parameters"), at("columns"), at("state")
in_map, known = at("parameters", "feature_map", "parameters"), at("state", "knowledge")


def merged(pieces):
    return lambda facts, file: facts.update(merged=pieces)


def put(tensor, place, value):
    """Another number in a tensor."""

    def forge(facts, file):
        spec = file.tensors[tensor]
        begin, end = spec["data_offsets"]
        a = np.frombuffer(bytes(file.data[begin:end]), {"F64": "<f8", "I64": "<i8"}[spec["dtype"]])
        a = a.copy()
        a[place] = value
        file.data[begin:end] = a.tobytes()

    return forge


LEAST_SQUARES = {
    "absurd components": in_map(n_components=10**12),
    "another map": parameter(feature_map=None),
    "another seed": in_map(random_state=1),
    "a huge number": parameter(rho=10**400),
    "another solver": parameter(solver="magic"),
    "a solver without its state": parameter(solver="woodbury"),
    "an unknown parameter": parameter(code="import os"),
    "absurd columns": columns(n=10**12),
    "negative columns": columns(n=-1),
    "names for other columns": columns(names=["a"]),
    "no names": columns(names=[1, 2, 3]),
    "counts that do not fit": known(counts=[1, 2]),
    "counts below zero": known(counts=[-1, 20, 20]),
    "huge counts": known(counts=[2**70, 20, 20]),
    "labels of two types": known(responses=["a", 1, "c"]),
    "labels twice": known(responses=["a", "a", "c"]),
    "units below one": known(weight_bits=-1),
    "units finer than weights": known(weight_bits=221),
    "weights of no kind": known(weight_bits=0.5),
    "another task": known(task="regression"),
    "merged and not merged": merged({"x": {"times": 0, "brought": {}}}),
    "brought less than once": merged({"x": {"times": 1, "brought": {"y": 0}}}),
    "merged as a number": merged({"x": 1}),
    "merged as a list": merged(["x"]),
    "sums of no triangle": lambda facts, file: file.tensors["sums"].update(shape=[39, 2]),
    "a row of two classes": put("sums", -2, 1),
    "a negative diagonal": put("sums", 0, -1),
    "not what data could be": put("sums", 1, 2**60),
    "a sum that wraps": put("sums", 4, -(2**63)),
    "another constant": put("sums", 44, 61),
}
HINGE = {
    "ids twice": put("ids", 1, 0),
    "ids to come": put("ids", -1, 10**9),
    "NaN in rows": put("rows", 3, np.nan),
    "a zero with a sign": put("rows", 3, -0.0),
    "no weight": put("weights", 3, 0.0),
    "a class that is not": put("labels", 3, 3),
    "a class below zero": put("labels", 3, -1),
    "a class without rows": put("labels", slice(None), 0),
    "alpha below zero": put("alpha", 0, -1.0),
    "alpha above its bound": put("alpha", 0, 1.5),
    "NaN in alpha": put("alpha", 0, np.nan),
    "NaN in intercepts": put("intercepts", 0, np.nan),
    "an id that was never given": put("last_ids", 0, 10**9),
    "absurd next id": state(next_id=2**63),
    "an absurd degree": parameter(kernel="poly", degree=10**12),
    "another kernel": parameter(kernel="precomputed"),
    "another strategy": parameter(strategy="ovr"),
    "an endless C": parameter(C=1e308, class_weight={"kind": "by label", "pairs": [["a", 1e9]]}),
    "a negative gamma": state(gamma=-1.0),
    "other columns": columns(n=2),
}


@pytest.fixture
def fourier(rng, tmp_path):
    X = rows(rng)
    LSSVC(RandomFourier(8)).fit(X, labels(X, ["a", "b", "c"])).save(tmp_path / "x")
    return tmp_path / "x"


@pytest.fixture
def path_svc(rng, tmp_path):
    X = rows(rng)
    PathSVC(gamma=0.5).fit(X, labels(X, ["a", "b", "c"])).save(tmp_path / "x")
    return tmp_path / "x"


@pytest.mark.parametrize(
    ("file", "how"),
    [*(("fourier", how) for how in LEAST_SQUARES), *(("path_svc", how) for how in HINGE)],
)
def test_forged_facts_are_refused(request, file, how):
    path = request.getfixturevalue(file)
    traceless.load(path)  # so that everything is imported
    with little_memory(), pytest.raises(FileError, match="what the file says cannot be"):
        forged(path, (LEAST_SQUARES | HINGE)[how])


def reshaped(name, shape, dtype=None, data=b""):
    return lambda facts, file: file.reshape(name, shape, dtype, data)


def triangle(n):
    return n * (n + 1) // 2


NO_BYTES = {"kind": "array", "float64": ""}
HOLLOW = {  # sizes that no byte of the file stands behind
    "endless rows of no bytes": reshaped("sums", [2**47, 0], "U8"),
    "no bytes": reshaped("sums", [0, 9], "U8"),
    "no class, of endless features": reshaped("sums", [0, triangle(2**24)]),
    "integers that int64 can hold": reshaped("sums", [66, 8], "U8", b"\1" * 66 * 8),
    "integers of a million bytes": reshaped("sums", [66, 10**6], "U8", b"\1" * 66 * 10**6),
    "steps without columns": in_map(
        resolution={"kind": "array", "shape": [2**40, 0], "float64": ""}
    ),
}


@pytest.mark.parametrize("how", HOLLOW)
def test_a_size_needs_bytes_behind_it(fourier, how):
    """What a header says is compared with what is there before anything is made or counted."""
    traceless.load(fourier)
    size = fourier.stat().st_size
    for kind in ("LSSVC", "Knowledge"):
        if kind == "Knowledge" and "steps" in how:
            continue
        file = Forged(fourier)
        facts = file.facts
        HOLLOW[how](facts, file)
        if kind == "Knowledge":
            file.metadata["kind"], facts = kind, facts["state"]["knowledge"]
            facts |= {"responses": [], "counts": []} if "no class" in how else {}
        file.facts = facts
        file.write(fourier.with_name("hollow"))
        allowed = fourier.with_name("hollow").stat().st_size - size
        with little_memory(4 * max(allowed, 0)), pytest.raises(FileError):
            traceless.load(fourier.with_name("hollow"))


def test_knowledge_of_no_rows_may_be_wide(tmp_path):
    """There are no classes to keep apart, so that no bytes stand behind its width."""
    none = Knowledge.of(Linear(), np.zeros((0, 2000)), np.zeros(0, int), classwise=True)
    none.save(tmp_path / "x")
    assert traceless.load(tmp_path / "x") == none


def test_a_long_label_is_not_made_once_for_each_row(tmp_path, rng):
    X = rows(rng, 500)
    for model in (PathSVC(gamma=0.5), SlidingWindow(LSSVC(), size=500)):
        model.fit(X, labels(X, ["a", "b"])).save(tmp_path / "x")
        traceless.load(tmp_path / "x")

        def longer(facts, file):
            state, long = facts["state"], "b" + "z" * 10**5
            state["classes"] = ["a", long]
            if "estimator" in state:
                state["estimator"]["state"]["knowledge"]["responses"] = ["a", long]

        with little_memory(20 * 10**5):  # as an array of one width for all: 200 MB
            again = forged(tmp_path / "x", longer)
        assert len(again.classes_[1]) == 10**5 + 1


def test_another_kind(fourier):
    for kind in ("LSSVR", "PathSVC", "SlidingWindow", "Knowledge", "builtins.eval", ""):
        with pytest.raises(FileError):
            forged(fourier, lambda facts, file, kind=kind: file.metadata.update(kind=kind))


def test_a_map_whose_codes_have_changed_is_not_taken_for_the_old_one(fourier, monkeypatch):
    monkeypatch.setattr(RandomFourier, "version", 2)
    with pytest.raises(FileError, match="version is 2 here and 1 there"):
        traceless.load(fourier)


def test_tables_of_a_map_are_made_for_who_has_such_rows(rng, tmp_path):
    """A small file may speak of very wide rows; it costs nothing until they come."""
    X = sparse.random(20, 10**5, density=1e-4, random_state=0, format="csr")
    X.data[:] = 1.0
    LSSVC(RandomFourier(4)).fit(X, np.arange(20) % 2).save(tmp_path / "x")
    with little_memory():
        clf = traceless.load(tmp_path / "x")
    assert clf.n_features_in_ == 10**5


def test_loading_least_squares_needs_no_extra(fourier):
    code = """
import sys
for name in ("numba", "safetensors", "onnx", "pandas", "click"):
    sys.modules[name] = None
import traceless
print(traceless.load(sys.argv[1]).n_samples_)
"""
    command = [sys.executable, "-c", code, str(fourier)]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "60"


def test_mutated_files():
    """In a process of its own, whose memory is limited."""
    script = Path(__file__).parent / "fuzz_files.py"
    command = [sys.executable, str(script), "--count", "500", "--seed", "6"]
    shown = subprocess.run(command, capture_output=True, text=True, check=False)
    assert shown.returncode == 0, shown.stderr
    assert sum(json.loads(shown.stdout.splitlines()[-1]).values()) == 500
