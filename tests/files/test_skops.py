"""The format in which mlflow logs models: no code in it, and the types that it needs are few."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from traceless import LSSVC, LSSVR, PathSVC, SlidingWindow
from traceless.features import Category, Number, RandomFourier, Table

io = pytest.importorskip("skops.io")

RNG = np.random.default_rng(0)
DF = pd.DataFrame({"a": RNG.normal(size=40), "c": RNG.choice(["u", "v"], 40)})
Y = (DF.a > 0).map({True: "yes", False: "no"})
TABLE = Table([Number("a"), Category("c", ["u", "v"])])
SUMS = {
    "arithmetic.products.Coefficients",
    "estimators.lssvm.LSSVC",
    "features.bound_map.BoundMap",
    "knowledge.sums.Knowledge",
    "knowledge.sums.Recipe",
    "solvers.cholesky.Cholesky",
    "solvers.ridge.Penalty",
}
ROWS = {
    "estimators.path_svc.PathSVC",
    "hinge.machines.Classifier",
    "hinge.model.HingeModel",
    "hinge.settings.Settings",
}
COLUMNS = {"features.table.Table", "features.kinds.Number", "features.kinds.Category"}
FOURIER, LINEAR = {"features.random_fourier.RandomFourier"}, {"features.linear.Linear"}
CASES = {
    "columns of numbers": (LSSVC(), SUMS | LINEAR),
    "guarded": (LSSVC(guard=True), SUMS | LINEAR | {"estimators.row_guard.Guard"}),
    "a table": (LSSVC(TABLE), SUMS | COLUMNS),
    "a map of a table": (LSSVC(RandomFourier(9, table=TABLE)), SUMS | COLUMNS | FOURIER),
    "a path": (PathSVC(table=TABLE), ROWS | COLUMNS),
}


@pytest.mark.parametrize(("model", "types"), CASES.values(), ids=CASES)
def test_few_types_and_no_function(model, types):
    X = DF if types & COLUMNS else DF[["a"]]
    model = clone(model).fit(X, Y)
    data = io.dumps(model)
    needed = io.get_untrusted_types(data=data)
    assert needed == sorted(f"traceless.{name}" for name in types)
    back = io.loads(data, trusted=needed)
    assert back.digest() == model.digest()
    assert back.predict(X).tolist() == model.predict(X).tolist()
    for one in (back, model):  # both go on
        one.forget(X[:9], Y[:9])
    assert back.digest() == model.digest() == clone(model).fit(X[9:], Y[9:]).digest()


def test_others_come_back_too():
    window = SlidingWindow(LSSVR(solver="woodbury"), 20).fit(DF[["a"]], DF.a)
    pipe = make_pipeline(TABLE, LSSVC()).fit(DF, Y)
    for model, X in ((window, DF[["a"]]), (pipe, DF)):
        data = io.dumps(model)
        needed = io.get_untrusted_types(data=data)
        assert all(name.startswith("traceless.") for name in needed)
        found = io.loads(data, trusted=needed).predict(X)
        np.testing.assert_array_equal(found, model.predict(X))


def test_a_map_whose_array_was_changed_is_kept_as_it_was_bound():
    steps = np.array([2.0**-4, 2.0**-5])
    bound = Table([Number("a", required=True), Number("b", required=True)], resolution=steps).bind(
        2
    )
    expected = bound.codes(np.eye(2))
    state = bound.__getstate__()
    assert set(state) == {"map", "n_features"}
    steps[:] = 1.0
    changed = object.__new__(type(bound))
    changed.__setstate__(bound.__getstate__())
    np.testing.assert_array_equal(changed.codes(np.eye(2)), expected)
