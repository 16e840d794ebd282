"""Old stores can be read, and are brought to the version of today in one commit, or not at all."""

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from test_faults import disk_full, interrupted
from test_verification import edit, failed

from fixtures.make_stores import NAMES, remaining, rows
from traceless.exceptions import StoreError
from traceless.store import Queued, Receipt, Store, verify_receipt
from traceless.store import keys as keys_module
from traceless.store import upgrade as module
from traceless.store.keys import SigningKey
from traceless.store.ledger import Ledger

FIXTURES = Path(__file__).parents[1] / "fixtures"
OLD = [("stores-v1", name) for name in NAMES] + [("stores-v2", "lssvc")]
pytestmark = pytest.mark.filterwarnings("ignore::traceless.RevealingWarning")


def copied(tmp_path, folder, name):
    return Store(shutil.copytree(FIXTURES / folder / name, tmp_path / folder / name))


def dump(store):
    """Everything in the ledger, and the names of all other files that mean something."""
    with closing(sqlite3.connect(store.path / "ledger.sqlite")) as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        lines = list(connection.iterdump())
    names = sorted(path.name for path in store.path.glob("generations/*"))
    return version, lines, names, (store.path / "key").exists()


@pytest.mark.parametrize(("folder", "name"), OLD)
def test_an_old_store_is_read_upgraded_and_goes_on(tmp_path, folder, name):
    store = copied(tmp_path, folder, name)
    before, pending, status = store.history(), store.pending(), store.status()
    version = int(folder[-1])
    assert (status.version, store.public_key) == (version, None)
    assert store.verify().ok, str(store.verify())
    with pytest.raises(StoreError, match=rf"version {version}.*upgrade.*Nothing was changed"):
        store.seal()
    receipt = store.upgrade()
    assert (receipt.kind, receipt.subject) == ("upgrade", f"version {version}")
    assert (receipt.previous, receipt.held) == (before[-1].hash, status.rows)
    assert receipt.check()
    assert store.history()[: len(before)] == before
    assert store.public_key == receipt.signer == SigningKey.read(store.path / "key").public
    assert [(q.time, q.key, q.rows, q.classes) for q in store.pending()] == [
        (q.time, q.key, q.rows, q.classes) for q in pending
    ]
    assert all(q.receipt.check() for q in store.pending())
    assert store.status().version == 3
    assert store.verify().ok, str(store.verify())
    if status.has_model:
        X, y, weight = remaining(name) if folder == "stores-v1" else (*left_of_v2(), None)
        assert store.verify(X, y, weight).ok, str(store.verify(X, y, weight))
        again = Receipt.from_json(receipt.to_json())
        assert name == "pathsvc" or verify_receipt(again, X, y, weight).ok
        assert store.seal().check()
    with pytest.raises(StoreError, match=r"of version 3 already.*Nothing was changed"):
        store.upgrade()
    assert store.verify().ok


def left_of_v2():
    X, y = rows()
    return X[60:], y[60:]


@pytest.mark.parametrize("error", [disk_full, interrupted])
@pytest.mark.parametrize(
    "point",
    [
        (keys_module.SigningKey, "pem"),
        (module, "_rebuilt"),
        (Ledger, "append"),
        (Ledger, "commit"),
        (os, "fsync"),
    ],
)
def test_an_upgrade_is_all_or_nothing(tmp_path, monkeypatch, point, error):
    store = copied(tmp_path, "stores-v1", "lssvc")
    before = dump(store)
    with monkeypatch.context() as patch:
        patch.setattr(*point, error)
        with pytest.raises((OSError, KeyboardInterrupt)):
            store.upgrade()
    assert dump(store) == before
    assert store.verify().ok
    store.upgrade()
    assert store.verify().ok


@pytest.mark.parametrize("after", [False, True])
def test_an_upgrade_that_is_killed_at_its_commit(tmp_path, after):
    store = copied(tmp_path, "stores-v1", "lssvc")
    before = dump(store)
    pid = os.fork()
    if not pid:
        commit = Ledger.commit

        def killed(self):
            if after:
                commit(self)
            os._exit(9)

        Ledger.commit = killed
        store.upgrade()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 9
    assert (dump(store) == before) is not after
    assert store.verify().ok
    if not after:
        store.upgrade()
    X, y = rows()  # the key is found, wherever the killed process left it
    assert Store(store.path).learn(X, y).check()
    assert (store.path / "key").exists()
    assert not (store.path / "key.new").exists()
    assert store.verify().ok


def test_requests_that_wait_go_on_waiting(tmp_path):
    X, y = rows()
    store = copied(tmp_path, "stores-v1", "lssvc")
    came = [queued.time for queued in store.pending()]
    store.upgrade()
    assert [queued.time for queued in store.pending()] == came  # and this is signed from now on
    assert [queued.receipt.subject for queued in store.pending()] == [f"came {at}" for at in came]
    again = store.forget(X[70:73], y[70:73], batch=True, key="request 2")
    assert isinstance(again, Queued)
    assert again.replayed
    assert (again.receipt.kind, again.receipt.rows) == ("queue", 3)
    store.cancel("request 2")
    (receipt,) = store.flush(force=True)
    assert receipt.rows == 2
    assert store.verify().ok


def test_what_is_damaged_is_not_signed(tmp_path):
    store = copied(tmp_path, "stores-v1", "lssvc")
    with closing(sqlite3.connect(store.path / "ledger.sqlite")) as connection:
        connection.execute("UPDATE alive SET count = count + 1")
        connection.commit()
    before = dump(store)
    with pytest.raises(StoreError, match=r"is damaged.*rows:.*Nothing was changed"):
        store.upgrade()
    assert dump(store) == before


@pytest.mark.parametrize(("folder", "name"), OLD)
def test_a_dry_run_says_what_would_be(tmp_path, folder, name):
    store = copied(tmp_path, folder, name)
    before = dump(store)
    tried = store.upgrade(dry_run=True)
    assert dump(store) == before
    assert not (store.path / "key.new").exists()
    assert (tried.dry_run, tried.signature, tried.check()) == (True, "", False)
    made = store.upgrade()
    for name in ("kind", "sequence", "held", "digest_after", "root_after", "alive", "previous"):
        assert getattr(tried, name) == getattr(made, name), name


def test_the_key_may_be_elsewhere(tmp_path):
    path = tmp_path / "elsewhere.pem"
    path.write_bytes(SigningKey.new().pem())
    store = copied(tmp_path, "stores-v1", "lssvc")
    assert store.upgrade(path).signer == SigningKey.read(path).public
    assert store.seal().check()
    assert not (store.path / "key").exists()


def test_the_history_before_cannot_be_changed_after(tmp_path):
    """What the old entries say is proven no better than before, but it is pinned from now on."""
    store = copied(tmp_path, "stores-v1", "lssvc")
    store.upgrade()
    said = (
        "UPDATE entries SET body = replace(body, '\"rows\":60', '\"rows\":61') WHERE sequence = 2"
    )
    edit(store, (said,))
    assert not store.verify().ok


def test_requests_of_the_time_before_are_those_of_their_entries(tmp_path):
    store = copied(tmp_path, "stores-v1", "lssvc")
    store.upgrade()
    edit(store, ("UPDATE requests SET rows = rows + 1 WHERE kind = 'learn'",))
    assert failed(store, "requests")
