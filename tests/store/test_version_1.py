"""Stores and receipts of version 1 verify for what they claim, say what they lack, and go on."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from fixtures.make_stores import NAMES, SECRET, remaining, rows, tenths
from traceless import LSSVC, LSSVR, Knowledge, Store
from traceless.exceptions import AlreadyMergedError, MismatchError, NotLearnedError, StoreError
from traceless.features import Linear
from traceless.store import Receipt, verify_receipt

V1 = Path(__file__).parents[1] / "fixtures" / "stores-v1"
pytestmark = pytest.mark.filterwarnings("ignore::traceless.RevealingWarning")


@pytest.fixture
def old(tmp_path):
    """A copy of an old store, to be changed."""

    def copied(name):
        return Store(shutil.copytree(V1 / name, tmp_path / name))

    return copied


@pytest.fixture
def upgraded(old):
    """The same, brought to the version of today."""

    def copied(name):
        store = old(name)
        store.upgrade()
        return store

    return copied


def texts(name):
    paths = V1.glob(f"{name}.*.json")
    return [path.read_text() for path in sorted(paths, key=lambda p: int(p.suffixes[0][1:]))]


def receipts(name):
    return [Receipt.from_json(text) for text in texts(name)]


def checks(verification):
    return {check.name: check for check in verification.checks}


@pytest.mark.parametrize("name", NAMES)
def test_an_old_store_verifies(old, name):
    store = old(name)
    X, y, weight = remaining(name)
    assert store.verify().ok, str(store.verify())
    if store.status().has_model:
        if isinstance(store.model(), LSSVC | LSSVR):
            assert (store.model().free_intercept, store.model().standardize) == (False, False)
        assert store.verify(X, y, weight).ok, str(store.verify(X, y, weight))
        assert not store.verify(X[1:], y[1:], None if weight is None else weight[1:]).ok
    assert [entry.hash for entry in store.history()] == [r.hash for r in receipts(name)]


@pytest.mark.parametrize("name", NAMES)
def test_old_receipts_verify(name):
    said = receipts(name)
    assert len(said) >= 3
    for receipt, text in zip(said, texts(name), strict=True):
        assert receipt.check()
        assert receipt.version == 1
        assert receipt.facts().keys() == json.loads(text)["entry"].keys()
        assert json.loads(receipt.to_json()) == json.loads(text)
        assert receipt.hash in receipt.to_html()
        assert ("has no root" in receipt.to_html()) is (receipt.digest_after is not None)
    if name == "pathsvc":
        found = checks(verify_receipt(said[-1], *remaining(name)))["model"]
        assert not found.ok
        assert "only the traceless that wrote it can compute" in found.said
    elif name != "without-model":
        assert verify_receipt(said[-1], *remaining(name)).ok
        assert not verify_receipt(said[0], *remaining(name)).ok


def test_what_version_1_cannot_tell_apart_is_said(old):
    others = np.array([[1.0], [2.0], [4.0], [7.0], [9.0]]), ["one"] * 4 + ["two"]
    for rows_ in (remaining("equal-sums")[:2], others):
        found = checks(verify_receipt(receipts("equal-sums")[-1], *rows_))["model"]
        assert found.ok
        assert "equal sums, which other rows could have too" in found.said
    found = checks(old("equal-sums").verify(*others))  # the store, which has digests, can tell
    assert found["refit"].ok
    assert not found["digests"].ok


def test_requests_of_old_stores_are_recognised(upgraded):
    X, y = rows()
    store = upgraded("lssvc")
    assert store.learn(X, y, key="delivery").replayed
    assert store.forget(X[:60], y[:60], key="request 1").replayed
    assert store.forget(X[70:73], y[70:73], batch=True, key="request 2").replayed
    (flushed,) = store.flush(force=True)
    assert flushed.rows == 5
    X, y, _ = remaining("lssvc")
    left = np.r_[:10, 15:60]
    assert store.verify(X[left], y[left]).ok
    with pytest.raises(StoreError, match="that of another request"):
        upgraded("merged").merge(Knowledge.of(Linear(), X[:30], y[:30]), key="merge")


def test_an_old_store_goes_on(upgraded):
    X, y = rows()
    store = upgraded("merged")
    with pytest.raises(NotLearnedError, match="30 rows came by merge"):
        store.forget(X[60:61], y[60:61])
    receipt = store.forget(Knowledge.of(Linear(), X[60:90], y[60:90]), name="south")
    assert (receipt.version, receipt.root_after) == (3, None)  # a fingerprint would need its rows
    store.learn(X[60:], y[60:])
    last = store.forget(X[10:60], y[10:60])  # those of the merged store among them
    assert store.verify(X[60:], y[60:]).ok
    assert "equal sums" in str(store.verify(X[60:], y[60:]))
    assert not store.verify(X[61:], y[61:]).ok
    assert verify_receipt(Receipt.from_json(last.to_json()), X[60:], y[60:]).ok
    assert [entry.version for entry in store.history()] == [1] * 5 + [3] * 4
    with closing(sqlite3.connect(store.path / "ledger.sqlite")) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (3,)


@pytest.mark.parametrize("name", ["lssvr", "pathsvc", "without-secret"])
def test_old_stores_of_every_kind_go_on(upgraded, name):
    X, y, weight = remaining(name)
    store = upgraded(name)
    store.learn(X[:30], y[:30], None if weight is None else weight[:30])
    if name != "without-secret":
        store.forget(X[:30], y[:30], None if weight is None else weight[:30])
        assert store.verify(X, y, weight).ok
    assert store.verify().ok


def test_weights_are_rounded_as_they_were(upgraded):
    """0.1 was a multiple of 2^-16 then, and has 20 bits now: both would leave a rest."""
    X, y, weight = remaining("weights")
    store = upgraded("weights")
    store.learn(X[:30], y[:30], 0.1)
    store.forget(X[:30], y[:30], 0.1)
    assert store.verify(X, y, weight).ok
    store.relabel(X[:30], y[:30], y[30:], weight[:30])
    store.relabel(X[:30], y[30:], y[:30], weight[:30])
    store.forget(X[30:], y[30:], weight[30:])
    assert store.verify(X[:30], y[:30], weight[:30]).ok
    for hopeless in (1000.1, 1e-9):
        with pytest.raises(StoreError, match=r"multiples of 2\^-16"):
            store.learn(X, y, hopeless)
    store.forget(X[:30], y[:30], tenths()[60:90])
    assert store.status().rows == 0
    assert not store.model().knowledge_.sums.any()


def test_weights_of_a_model_that_keeps_rows_stay_as_they_are(upgraded):
    X, y, _ = remaining("pathsvc")
    store = upgraded("pathsvc")
    store.learn(X[:30] + 1, y[:30], 0.1)
    store.forget(X[:30] + 1, y[:30], 0.1)
    assert store.verify(X, y).ok


def test_slices_without_a_name_are_recognised(upgraded):
    X, y = rows()
    part = Knowledge.of(Linear(), X[30:60], y[30:60])
    store = upgraded("unnamed")
    with pytest.raises(AlreadyMergedError, match=r"was merged.*Nothing was changed"):
        store.merge(part)
    assert store.forget(part).unknown == 0
    assert store.verify(X[:30], y[:30]).ok
    with pytest.raises(NotLearnedError, match="was not merged here"):
        store.forget(part)
    store.merge(part)
    with pytest.raises(AlreadyMergedError):
        store.merge(part)
    store.merge(part, again=True)
    assert store.verify(np.r_[X[:60], X[30:60]], np.r_[y[:60], y[30:60]]).ok


def test_old_and_new_stores_merge_where_nothing_is_lost(upgraded, tmp_path):
    X, y = rows()
    new = Store.new(tmp_path / "new", LSSVC(), secret=SECRET)
    new.learn(X[90:], y[90:])
    store = upgraded("merged")
    with pytest.raises(MismatchError, match=r"has none.*Nothing was changed"):
        new.merge(store)
    assert store.merge(new).unknown == 60  # labels are written otherwise in digests of rows
    assert store.verify(X[10:], y[10:]).ok
    store.forget(new)
    assert store.verify(X[10:90], y[10:90]).ok
