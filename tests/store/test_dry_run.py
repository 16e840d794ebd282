"""A dry run says what would be, and leaves nothing behind."""

import numpy as np
import pytest

from traceless import LSSVC
from traceless.store import Store

pytestmark = pytest.mark.filterwarnings("ignore::traceless.RevealingWarning")


def test_the_next_change_starts_from_what_is_there(store, rows):
    X, y = rows
    store.learn(X[200:], y[200:], dry_run=True)
    store.forget(X[:50], y[:50], dry_run=True)
    digest = LSSVC(fingerprint=True).fit(X[100:200], y[100:200]).digest()
    assert store.forget(X[:100], y[:100]).digest_after == digest


def test_no_row_goes_into_the_log(tmp_path):
    """A request that waits has its rows in the ledger; one that is only tried has not."""
    X = np.full((30, 4), 1234.5678)
    store = Store.new(tmp_path / "store", LSSVC())
    store.learn(np.r_[X, -X], ["a"] * 30 + ["b"] * 30)
    store.forget(X[:1], ["a"], batch=True, dry_run=True)
    for path in store.path.rglob("*"):
        assert path.is_dir() or X[:1].tobytes() not in path.read_bytes()
