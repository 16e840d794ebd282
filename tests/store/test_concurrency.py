"""Several processes: readers never wait, one writer at a time, and the second is told."""

import os
import signal
import sys
import time
from collections import Counter
from functools import partial

import numpy as np
import pytest

from traceless import LSSVC
from traceless.exceptions import StoreBusyError, StoreError
from traceless.store import Store
from traceless.store.opening import open_ledger


def test_a_writer_waits_if_asked_to(store, rows, forked):
    X, y = rows
    read, write = os.pipe()

    def slow():
        yield X[200:250], y[200:250]
        os.write(write, b"x")  # the lock is held
        time.sleep(0.3)

    pid = forked(lambda: store.learn(slow()))
    assert os.read(read, 1) == b"x"
    with pytest.raises(StoreBusyError, match=rf"pid {pid}, since 20.*Z.*after 0 s"):
        store.learn(X[250:], y[250:])
    assert store.verify(X[:200], y[:200]).ok  # readers do not wait
    assert Store(store.path, wait=60.0).learn(X[250:], y[250:]).held == 300
    os.waitpid(pid, 0)
    os.close(read)
    os.close(write)


@pytest.mark.filterwarnings("ignore::traceless.RevealingWarning")
def test_eight_writers_at_once(store, rows, forked):
    """Each learns rows of its own, and forgets some; nothing is lost, and nothing done twice."""
    X, y = rows

    def work(k):
        mine = Store(store.path, wait=120.0)
        part = slice(200 + 12 * k, 212 + 12 * k)
        for key in (f"learn {k}", f"learn {k}"):  # the second time it is recognised
            learned = mine.learn(X[part], y[part], key=key)
        assert learned.replayed
        mine.forget(X[25 * k : 25 * k + 6], y[25 * k : 25 * k + 6], key=f"forget {k}")

    children = [forked(partial(work, k)) for k in range(8)]
    assert [os.waitpid(pid, 0)[1] for pid in children] == [0] * 8
    entries = store.history()[2:]
    assert Counter(key for entry in entries for key in entry.keys) == Counter(
        f"{kind} {k}" for kind in ("learn", "forget") for k in range(8)
    )
    left = np.r_[[i for i in range(200) if i % 25 >= 6], 200:296]
    assert store.status().digest == LSSVC(fingerprint=True).fit(X[left], y[left]).digest()
    assert store.verify(X[left], y[left]).ok


def test_readers_see_whole_states_while_others_write(store, rows, forked):
    """A child learns and forgets in a loop; every model read is that of some entry, at once."""
    X, y = rows
    fit = LSSVC(fingerprint=True).fit
    digests = {200: fit(X[:200], y[:200]).digest(), 300: fit(X, y).digest()}

    def for_ever():
        while True:
            store.learn(X[200:], y[200:])
            store.forget(X[200:], y[200:])

    pid = forked(for_ever)
    try:
        reader, start = Store(store.path), store.status().sequence
        seen, deadline = set(), time.monotonic() + 30
        while time.monotonic() < deadline and (
            reader.status().sequence < start + 12 or len(seen) < 2
        ):
            model = reader.model()
            assert model.digest() == digests[model.n_samples_]
            status = reader.status()
            assert status.digest == digests[status.rows]
            seen.add(model.n_samples_)
            verified = reader.verify()
            assert verified.ok, verified
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert seen == {200, 300}
    store.flush()  # removes what the killed process left
    assert Store(store.path).verify().ok


def test_a_second_transaction_that_writes_is_refused(store):
    path = store.path / "ledger.sqlite"
    with (
        open_ledger(path, "BEGIN IMMEDIATE"),
        pytest.raises(StoreBusyError, match="holds the ledger"),
        open_ledger(path, "BEGIN IMMEDIATE", 0.1),
    ):
        pass


def test_where_there_is_no_flock_nothing_is_written(store, rows, monkeypatch, tmp_path):
    digest = store.model().digest()
    monkeypatch.setattr(sys, "platform", "win32")
    for write in (
        lambda: store.learn(*rows),
        lambda: store.forget(rows[0][:50], rows[1][:50]),
        store.flush,
        lambda: Store.new(tmp_path / "other", LSSVC()),
    ):
        with pytest.raises(StoreError, match=r"needs Linux or macOS.*Nothing was changed"):
            write()
    assert not (tmp_path / "other").exists()
    assert Store(store.path).model().digest() == digest
