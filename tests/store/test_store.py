"""The store: changes, answers to requests, the queue, and what it refuses."""

import json
import os
import re
import shutil
import sqlite3
import sys
from contextlib import closing

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError

from traceless import LSSVC, LSSVR, Knowledge, NotLearnedError, PathSVC, SlidingWindow
from traceless.exceptions import (
    AlreadyLearnedError,
    AlreadyMergedError,
    MismatchError,
    RevealingWarning,
    StoreError,
)
from traceless.features import Linear
from traceless.store import SAFE_ROWS, Store
from traceless.store.row_table import lanes_text, no_lanes


def knowledge(X, y):
    return Knowledge.of(Linear(), X, y, fingerprint=True)


def fitted(X, y):
    return LSSVC(fingerprint=True).fit(X, y).digest()


def state(store):
    """Everything that a change that is refused must leave as it was."""
    folder = store.path / "generations"
    return store.history(), store.pending(), sorted(p.name for p in folder.iterdir())


class TestNew:
    def test_a_new_store_is_empty_and_sound(self, tmp_path):
        store = Store.new(tmp_path / "a" / "b", LSSVC(rho=0.5), about={"columns": ["x", "y"]})
        status = store.status()
        assert (status.rows, status.sequence, status.digest, status.model) == (0, 0, None, "LSSVC")
        assert store.about == {"columns": ["x", "y"]}
        assert store.model().rho == 0.5
        assert store.verify().ok
        assert [entry.kind for entry in Store(store.path).history()] == ["new"]

    @pytest.mark.parametrize(
        ("estimator", "said"),
        [
            (LSSVC().fit([[0.0], [1.0]], [0, 1]), "has learned rows already"),
            (SlidingWindow(LSSVC()), "can forget"),
            (PathSVC(kernel="precomputed"), "precomputed"),
            (LSSVC(class_weight=lambda n: 1 / n), "function"),
        ],
        ids=["fitted", "window", "precomputed", "function"],
    )
    def test_an_estimator_that_cannot_live_in_a_store_is_refused(self, tmp_path, estimator, said):
        with pytest.raises((TypeError, ValueError), match=said):
            Store.new(tmp_path / "store", estimator)
        assert not list(tmp_path.iterdir())

    def test_a_folder_with_something_in_it_is_left_alone(self, tmp_path, store):
        with pytest.raises(StoreError, match="exists already"):
            Store.new(store.path, LSSVC())
        (tmp_path / "file").write_text("mine")
        with pytest.raises(StoreError, match="exists already"):
            Store.new(tmp_path / "file", LSSVC())
        assert store.verify().ok

    def test_a_secret_must_be_one(self, tmp_path):
        for secret in ("x" * 32, b"short"):
            with pytest.raises(ValueError, match="32 random bytes"):
                Store.new(tmp_path / "store", LSSVC(), secret=secret)

    def test_what_it_is_about_must_be_json(self, tmp_path):
        with pytest.raises(TypeError, match="JSON"):
            Store.new(tmp_path / "store", LSSVC(), about={"a": object()})
        assert not list(tmp_path.iterdir())

    def test_what_is_missing_is_said_before_anything_is_made(self, tmp_path, monkeypatch):
        monkeypatch.setitem(sys.modules, "blake3", None)
        with pytest.raises(ImportError, match=re.escape("pip install 'traceless[store]'")):
            Store.new(tmp_path / "store", LSSVC())
        assert list(tmp_path.iterdir()) == []


class TestOpen:
    def test_what_is_no_store_is_refused(self, tmp_path):
        for path in (tmp_path, tmp_path / "nothing"):
            with pytest.raises(StoreError, match="is not a store"):
                Store(path)
        (tmp_path / "ledger.sqlite").write_bytes(b"something else, and long enough" * 100)
        with pytest.raises(StoreError, match="damaged"):
            Store(tmp_path).status()
        for make in (lambda sql: None, lambda sql: sql.execute("CREATE TABLE t (x)")):
            (tmp_path / "ledger.sqlite").write_bytes(b"")
            with closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as sql:
                make(sql)
            with pytest.raises(StoreError, match=r"is not a store: .* is not a ledger"):
                Store(tmp_path).status()

    def test_a_newer_version_is_named(self, store):
        with closing(sqlite3.connect(store.path / "ledger.sqlite")) as sql:
            sql.execute("PRAGMA user_version = 2")
        with pytest.raises(StoreError, match="newer version of traceless"):
            Store(store.path).status()

    def test_a_missing_generation_and_a_missing_secret_are_named(self, store, rows):
        (store.path / "secret").rename(store.path / "elsewhere")
        with pytest.raises(StoreError, match="secret is missing"):
            Store(store.path).learn(*rows)
        (store.path / "secret").touch(0o600)
        (store.path / "secret").write_bytes(bytes(32))
        with pytest.raises(StoreError, match="not the one it was made with"):
            Store(store.path).learn(*rows)
        (store.path / "elsewhere").replace(store.path / "secret")
        shutil.rmtree(store.path / "generations")
        with pytest.raises(StoreError, match="is missing"):
            Store(store.path).model()
        assert not store.verify().ok


class TestLearnAndForget:
    def test_batches_are_one_change_all_or_nothing(self, store, rows):
        X, y = rows
        batches = [(X[i : i + 30], y[i : i + 30]) for i in range(200, 290, 30)]
        assert store.learn(iter(batches)).rows == 90
        before = state(store)

        def broken():
            yield X[290:], y[290:]
            raise OSError("the line was cut")

        with pytest.raises(OSError, match="the line was cut"):
            store.learn(broken())
        with pytest.raises(ValueError, match="A batch must be"):
            store.learn([X[290:]])
        with pytest.raises(NotLearnedError, match=r"3 of 13 rows.*number 10, 11, 12 "):
            store.forget([(X[:10], y[:10]), (X[297:], y[297:])])
        assert state(store) == before
        assert store.forget(batches).digest_after == fitted(X[:200], y[:200])

    @pytest.mark.parametrize("batch", [False, True])
    def test_rows_are_known_whatever_form_they_come_in(self, tmp_path, rows, batch):
        """Also those that wait in the queue, where arrays are kept."""
        X, _ = rows
        y = np.arange(300) % 3
        X = np.where(np.arange(300)[:, None] % 2, X, [-0.0, 1.0, 2.0] * X)
        store = Store.new(tmp_path / "store", LSSVC())
        store.learn(X, y, np.repeat([1.0, 2.5], [180, 120]))
        forms = [
            (X[:60] + 0.0, y[:60].astype(float)),
            (X[60:120].tolist(), y[60:120].tolist()),
            (sparse.csr_matrix(X[120:180]), y[120:180].astype(np.int8)),
            (np.asfortranarray(X[180:]), pd.Series(y[180:]), np.repeat([2.5, 0.0], 60)),
            (X[240:], y[240:].astype(object), 2.5),
        ]
        for form in forms:
            store.forget(*form, batch=batch)
        assert (store.status().rows, store.pending()) == (0, [])
        assert store.status().root is None
        assert not store.model().knowledge_.fingerprint.any()
        assert store.receipt().records == lanes_text(no_lanes())

    def test_columns_with_names_are_kept_apart(self, tmp_path, rows):
        X, y = pd.DataFrame(rows[0], columns=["a", "b", "c"]), rows[1]
        store = Store.new(tmp_path / "store", LSSVC())
        store.learn(X, y)
        assert store.model().feature_names_in_.tolist() == ["a", "b", "c"]
        with pytest.raises(ValueError, match="feature names"):
            store.learn(X[["b", "a", "c"]], y)
        store.forget(X[:60], y[:60], batch=True)
        assert store.status().rows == 240

    def test_rows_of_weight_zero_are_no_rows(self, store, rows):
        X, y = rows
        before = state(store)
        for change in (store.learn, store.forget):
            with pytest.raises(ValueError, match="no rows"):
                change(X[:5], y[:5], np.zeros(5))
        with pytest.raises(ValueError, match="no rows"):
            store.learn([])
        assert state(store) == before
        weight = np.r_[np.zeros(10), np.full(90, 2.5)]
        assert store.learn(X[200:], y[200:], weight).rows == 90
        with pytest.raises(NotLearnedError, match="100 of 100"):
            store.forget(X[200:], y[200:])
        assert store.forget(X[200:], y[200:], weight).digest_after == fitted(X[:200], y[:200])

    def test_bad_rows_change_nothing(self, store, rows):
        X, y = rows
        before = state(store)
        bad = X[:5].copy()
        bad[3, 1] = np.nan
        for change in (
            lambda: store.learn(bad, y[:5]),
            lambda: store.learn(X[:5, :2], y[:5]),
            lambda: store.forget(X[:5, :2], y[:5]),
            lambda: store.learn(X[:5], y[:4]),
            lambda: store.learn(X[:5], y[:5], -np.ones(5)),
            lambda: store.learn(X[:5], np.arange(5)),
            lambda: store.learn(X[:5]),
            lambda: store.learn(3, None),
            lambda: store.learn(X[0], y[:1]),
            lambda: store.forget(bad, y[:5]),
            lambda: store.learn([["a"]], ["yes"]),
            lambda: store.learn(X[:5], y[:5], key=""),
            lambda: store.destroy("ledger"),
        ):
            with pytest.raises(ValueError, match=r"\w"):
                change()
        assert state(store) == before
        assert store.verify().ok


class TestRequests:
    def test_a_key_belongs_to_one_request(self, store, rows):
        X, y = rows
        store.learn(X[200:], y[200:], key="a")
        before = state(store)
        for change in (
            lambda: store.forget(X[200:], y[200:], key="a"),
            lambda: store.learn(X[200:299], y[200:299], key="a"),
            lambda: store.learn(X[:100], y[:100], key="a"),
            lambda: store.destroy("model", key="a"),
            lambda: store.forget(X[:30], y[:30], key="a", batch=True),
        ):
            with pytest.raises(StoreError, match="'a' is that of another request"):
                change()
        assert state(store) == before

    def test_once_refuses_the_rows_of_an_earlier_change(self, store, rows):
        X, y = rows
        store.forget(X[:200], y[:200])
        with pytest.raises(AlreadyLearnedError, match=r"\(entry 1, .* exactly these 200 rows"):
            store.learn(X[199::-1], y[199::-1], once=True, key="another")
        assert store.learn(X[:200], y[:200]).held == 200


class TestRevealing:
    def test_few_rows_are_warned_of_and_marked(self, store, rows):
        X, y = rows
        yes, no = np.flatnonzero(y[:200] == "yes"), np.flatnonzero(y[:200] == "no")
        few = np.r_[yes[:SAFE_ROWS], no[: SAFE_ROWS - 1]]
        with pytest.warns(RevealingWarning, match="reconstruct"):
            receipt = store.forget(X[few], y[few])
        assert receipt.revealing
        assert "would reveal them" in receipt.to_html()
        enough = yes[SAFE_ROWS : 2 * SAFE_ROWS]
        assert not store.forget(X[enough], y[enough]).revealing

    def test_rows_that_wait_cannot_be_forgotten_twice(self, store, rows):
        X, y = rows
        store.learn(X[:1], y[:1])  # twice now
        store.forget(X[:3], y[:3], batch=True)
        before = state(store)
        for change in (
            lambda: store.forget(X[1:40], y[1:40]),
            lambda: store.forget(X[2:3], y[2:3], batch=True),
            lambda: store.relabel(X[1:2], y[1:2], ["no"]),
        ):
            with pytest.raises(NotLearnedError, match="wait in the queue already"):
                change()
        with pytest.raises(StoreError, match="flush them first"):
            store.destroy("secret")
        assert state(store) == before
        with pytest.warns(RevealingWarning):
            store.forget(X[:1], y[:1])  # the other one
        with pytest.warns(RevealingWarning):
            (receipt,) = store.flush(force=True)
        assert receipt.digest_after == fitted(X[3:200], y[3:200])
        assert store.flush(force=True) == []

    def test_the_rows_of_the_queue_are_erased(self, tmp_path):
        store = Store.new(tmp_path / "store", LSSVR())
        X = np.full((30, 4), 1234.5678)
        store.learn(X, np.arange(30.0))
        store.forget(X[:1], [0.0], batch=True)
        files = [store.path / "ledger.sqlite", store.path / "ledger.sqlite-wal"]
        there = [X[:1].tobytes() in path.read_bytes() for path in files if path.exists()]
        assert any(there)
        store.forget(X[1:], np.arange(1.0, 30.0), batch=True)
        assert store.status().rows == 0
        for path in store.path.rglob("*"):
            assert path.is_dir() or X[:1].tobytes() not in path.read_bytes()


class TestMerge:
    def test_what_has_no_fingerprint_is_refused(self, tmp_path, store, rows):
        X, y = rows
        LSSVC().fit(X, y).save(tmp_path / "model")
        before = state(store)
        for other in (tmp_path / "model", LSSVC().fit(X, y), Knowledge.of(Linear(), X, y)):
            for change in (store.merge, store.forget):
                with pytest.raises(ValueError, match="Nothing was changed"):
                    change(other)
        with pytest.raises(MismatchError, match="fingerprint=True too"):
            store.merge(LSSVC().fit(X, y))
        assert state(store) == before
        assert store.verify(X[:200], y[:200]).ok

    def test_rows_of_another_secret_are_counted_only(self, tmp_path, store, rows):
        X, y = rows
        other = Store.new(tmp_path / "other", LSSVC())
        other.learn(X[200:], y[200:])
        receipt = store.merge(other, name="north")
        assert (receipt.held, receipt.unknown, receipt.subject) == (300, 100, "north")
        assert store.verify(X, y).ok
        with pytest.raises(NotLearnedError, match="100 rows came by merge"):
            store.forget(X[200:], y[200:])

    def test_rows_of_the_same_secret_come_along(self, tmp_path, rows):
        X, y = rows
        secret = os.urandom(32)
        a, b = (Store.new(tmp_path / name, LSSVC(), secret=secret) for name in "ab")
        a.learn(X[:200], y[:200])
        b.learn(X[150:], y[150:])
        a.merge(b.path)
        assert a.status().unknown == 0
        assert a.verify(np.r_[X, X[150:200]], np.r_[y, y[150:200]]).ok
        a.forget(X[250:], y[250:])
        with pytest.raises(NotLearnedError, match="50 of the 150 rows of the slice"):
            a.forget(b)
        a.learn(X[250:], y[250:])
        assert a.forget(b).digest_after == fitted(X[:200], y[:200])
        assert a.verify(X[:200], y[:200]).ok

    def test_files_estimators_and_knowledge(self, tmp_path, store, rows):
        X, y = rows
        parts = [slice(200, 240), slice(240, 270), slice(270, 300)]
        models = [LSSVC(fingerprint=True).fit(X[part], y[part]) for part in parts]
        models[0].save(tmp_path / "model.traceless")
        for other in (tmp_path / "model.traceless", models[1], models[2].knowledge_):
            store.merge(other)
        assert store.status().digest == fitted(X, y)
        with pytest.warns(RevealingWarning):
            assert store.merge(-models[2].knowledge_).kind == "forget"
        with pytest.warns(RevealingWarning):
            store.forget(models[1])
        with pytest.warns(RevealingWarning):
            store.forget(str(tmp_path / "model.traceless"))
        assert store.verify(X[:200], y[:200]).ok
        with pytest.raises(TypeError, match="has no knowledge"):
            store.merge(PathSVC(gamma=1.0).fit(X, y))
        with pytest.raises(FileNotFoundError):
            store.merge(tmp_path / "nothing")

    def test_a_store_can_be_merged_into_itself(self, store, rows):
        X, y = rows[0][:200], rows[1][:200]
        with pytest.raises(AlreadyMergedError, match="is all that is held"):
            store.merge(store)
        store.merge(store, again=True)
        assert store.verify(np.r_[X, X], np.r_[y, y]).ok


class TestDestroy:
    def test_without_the_secret_rows_are_not_known(self, store, rows):
        X, y = rows
        store.learn(X[:50], y[:50], key="a")
        receipt = store.destroy("secret")
        assert (receipt.records, receipt.unknown, receipt.held) == (None, 250, 250)
        assert receipt.root_after == receipt.root_before  # it has no secret
        assert not (store.path / "secret").exists()
        assert store.verify(np.r_[X[:200], X[:50]], np.r_[y[:200], y[:50]]).ok
        for change in (store.forget, lambda X, y: store.relabel(X, y, y)):
            with pytest.raises(StoreError, match="secret of this store was destroyed"):
                change(X[:50], y[:50])
        with pytest.raises(StoreError, match="destroyed before"):
            store.destroy("secret")
        for again in (X[:50], y[:50]), (X[50:100], y[50:100]):  # nobody can tell these apart now
            with pytest.raises(StoreError, match=r"nobody can tell.*\(2\).*Nothing was changed"):
                store.learn(*again, key="a")
        store.learn(X[200:], y[200:])
        assert store.status().unknown == 350
        store.forget(knowledge(X[:50], y[:50]))
        assert store.verify(X, y).ok

    def test_without_the_model_the_ledger_is_left(self, store, rows):
        receipt = store.destroy("model")
        assert (receipt.held, receipt.generation, sum(receipt.classes.values())) == (0, None, -200)
        assert not list((store.path / "generations").iterdir())
        assert store.status().classes == {}
        for change in (store.model, lambda: store.learn(*rows)):
            with pytest.raises(StoreError, match="was destroyed"):
                change()
        assert store.destroy("secret").check()
        assert store.verify().ok
        assert [entry.kind for entry in store.history()] == ["new", "learn", "destroy", "destroy"]


def test_a_model_that_keeps_its_rows_cannot_merge(tmp_path, store):
    path = Store.new(tmp_path / "path", PathSVC(gamma=0.5))
    with pytest.raises(TypeError, match="PathSVC has no merge"):
        path.merge(store)
    with pytest.raises(NotFittedError):
        store.merge(LSSVC())


def test_status_and_receipts_name_no_rows(store, rows):
    text = json.dumps([entry.as_dict() for entry in store.history()])
    assert not any(repr(float(v)) in text for v in rows[0][:50].ravel())
    with pytest.raises(LookupError, match="no entry 9"):
        store.receipt(9)
