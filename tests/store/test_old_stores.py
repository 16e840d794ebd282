"""Stores and receipts of older versions open, verify for what they claim, and go on."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from fixtures.make_stores import NAMES, remaining, rows
from traceless import Knowledge, Store
from traceless.exceptions import NotLearnedError
from traceless.features import Linear
from traceless.store import Receipt, verify_receipt

V1 = Path(__file__).parents[1] / "fixtures" / "stores-v1"


@pytest.fixture
def old(tmp_path):
    """A copy of an old store, to be changed."""

    def copied(name):
        return Store(shutil.copytree(V1 / name, tmp_path / name))

    return copied


def receipts(name):
    texts = sorted(V1.glob(f"{name}.*.json"), key=lambda path: int(path.suffixes[0][1:]))
    return [Receipt.from_json(path.read_text()) for path in texts]


@pytest.mark.parametrize("name", NAMES)
def test_an_old_store_verifies(old, name):
    store = old(name)
    X, y, weight = remaining(name)
    assert store.verify().ok, str(store.verify())
    if store.status().has_model:
        assert store.verify(X, y, weight).ok
        assert not store.verify(X[1:], y[1:], None if weight is None else weight[1:]).ok
    assert [entry.hash for entry in store.history()] == [r.hash for r in receipts(name)]
    assert [entry.as_dict() for entry in store.history()] == [r.as_dict() for r in receipts(name)]


@pytest.mark.parametrize("name", NAMES)
def test_old_receipts_verify(name):
    said = receipts(name)
    assert len(said) >= 3
    for receipt in said:
        assert receipt.check()
        assert Receipt.from_json(receipt.to_json()) == receipt
        assert receipt.hash in receipt.to_html()
    if name != "without-model":
        assert verify_receipt(said[-1], *remaining(name)).ok
        assert not verify_receipt(said[0], *remaining(name)).ok


@pytest.mark.filterwarnings("ignore::traceless.RevealingWarning")
def test_requests_of_old_stores_are_recognised(old):
    X, y = rows()
    store = old("lssvc")
    assert store.learn(X, y, key="delivery").replayed
    assert store.forget(X[:60], y[:60], key="request 1").replayed
    assert store.forget(X[70:73], y[70:73], batch=True, key="request 2").replayed
    (flushed,) = store.flush(force=True)
    assert flushed.rows == 5
    X, y, _ = remaining("lssvc")
    left = np.r_[:10, 15:60]
    assert store.verify(X[left], y[left]).ok


@pytest.mark.filterwarnings("ignore::traceless.RevealingWarning")
def test_an_old_store_goes_on(old):
    X, y = rows()
    store = old("merged")
    with pytest.raises(NotLearnedError, match="30 rows came by merge"):
        store.forget(X[60:61], y[60:61])
    store.forget(Knowledge.of(Linear(), X[60:90], y[60:90]), name="south")
    store.learn(X[60:], y[60:])
    store.forget(X[10:60], y[10:60])  # those of the merged store among them
    assert store.verify(X[60:], y[60:]).ok
    assert not store.verify(X[61:], y[61:]).ok
