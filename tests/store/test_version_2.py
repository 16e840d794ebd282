"""Stores from before there was a choice of the penalty: they have the papers', and go on with it.

The store was made with version 2 of the files by `Store.new(..., LSSVC(solver="woodbury"))`,
`learn` of all rows, `forget` of the first 60, and `seal`.
"""

import shutil
from pathlib import Path

import pytest

from cases import PAPER
from fixtures.make_stores import rows
from traceless import LSSVC, Store

V2 = Path(__file__).parents[1] / "fixtures" / "stores-v2"
ANSWERS = [
    [-0.26391204612597574, 0.009574665134364734, -0.7273273929398605],
    [-0.20083977222916677, -0.1654068185559032, -0.6185111495439818],
]  # of the first two rows, as they were then
pytestmark = pytest.mark.filterwarnings("ignore::traceless.RevealingWarning")


def test_an_old_store_keeps_its_penalty(tmp_path):
    store = Store(shutil.copytree(V2 / "lssvc", tmp_path / "lssvc"))
    X, y = rows()
    model = store.model()
    assert (model.free_intercept, model.standardize) == (False, False)
    assert model.decision_function(X[:2]).tolist() == ANSWERS
    assert store.verify(X[60:], y[60:]).ok, str(store.verify(X[60:], y[60:]))
    store.upgrade()
    store.learn(X[:30], y[:30])
    store.forget(X[60:90], y[60:90])
    store.seal()
    again = Store(tmp_path / "lssvc").model()
    fresh = LSSVC(fingerprint=True, **PAPER)
    fresh.fit(X[60:], y[60:]).partial_fit(X[:30], y[:30]).forget(X[60:90], y[60:90])
    assert again.digest() == fresh.digest()
    assert (again.coef_ == fresh.coef_).all()
    assert (again.free_intercept, again.standardize) == (False, False)
