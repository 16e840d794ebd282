"""Any history of a store, against a plain oracle: a list of rows, and a fit from scratch."""

import os
import shutil
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from traceless import LSSVC, Knowledge, NotLearnedError
from traceless.exceptions import AlreadyMergedError, RevealingWarning
from traceless.features import Linear
from traceless.store import Queued, Store
from traceless.store import queue as queues

LABELS = ["a", "b"]
WEIGHTS = [1.0, 2.0, 0.5]
Row = tuple  # (value, label, weight)

row = st.tuples(st.integers(0, 5), st.sampled_from(LABELS), st.sampled_from(WEIGHTS))
several = st.lists(row, min_size=1, max_size=6)


def arrays(rows):
    X = np.array([[float(v), float(v * v)] for v, _, _ in rows]).reshape(-1, 2)
    return X, np.array([label for _, label, _ in rows]), np.array([w for _, _, w in rows])


def knowledge(rows):
    return Knowledge.of(Linear(), *arrays(rows), fingerprint=True)


class Histories(RuleBasedStateMachine):
    """Values are few, so that equal rows, and rows that are not held, are common."""

    @initialize()
    def begin(self):
        memory = "/dev/shm" if os.path.isdir("/dev/shm") else None  # there is nothing to lose
        self.folder = Path(tempfile.mkdtemp(dir=memory))
        self.store = Store.new(self.folder / "store", LSSVC())
        self.known, self.queue, self.slices = Counter(), Counter(), []
        self.done = {}  # key: (kind, rows, answer)

    def teardown(self):
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)

    def _key(self, kind, rows, answer):
        key = f"key {len(self.done)}"
        self.done[key] = kind, rows, answer(key)

    @rule(rows=several, cut=st.integers(0, 6))
    def learn(self, rows, cut):
        X, y, w = arrays(rows)
        parts = [(X[:cut], y[:cut], w[:cut]), (X[cut:], y[cut:], w[cut:])]
        self._key("learn", rows, lambda key: self.store.learn(parts, key=key))
        self.known.update(rows)

    @rule(rows=several)
    def forget(self, rows):
        missing = Counter(rows) - (self.known - self.queue)
        if missing:
            with pytest.raises(NotLearnedError, match=f"^{missing.total()} of {len(rows)} "):
                self.store.forget(*arrays(rows))
        else:
            self._key("forget", rows, lambda key: self.store.forget(*arrays(rows), key=key))
            self.known -= Counter(rows)

    @precondition(lambda self: self.known)
    @rule(data=st.data())
    def forget_held(self, data):
        free = sorted((self.known - self.queue).elements())
        if free:
            self.forget(free[: data.draw(st.integers(1, len(free)))])

    @rule(rows=several)
    def put_aside(self, rows):
        missing = Counter(rows) - (self.known - self.queue)
        if missing:
            with pytest.raises(NotLearnedError):
                self.store.forget(*arrays(rows), batch=True)
            return
        key = f"key {len(self.done)}"
        answer = self.store.forget(*arrays(rows), batch=True, key=key)
        self.done[key] = "forget", rows, answer
        self.queue.update(rows)
        if not isinstance(answer, Queued):
            assert answer.rows == self.queue.total()
            self.known, self.queue = self.known - self.queue, Counter()

    @rule()
    def flush(self):
        found = self.store.flush(force=True)
        assert len(found) == bool(self.queue)
        self.known, self.queue = self.known - self.queue, Counter()

    @rule(rows=several)
    def relabel(self, rows):
        new = [(v, LABELS[1 - LABELS.index(label)], w) for v, label, w in rows]
        X, old, w = arrays(rows)
        if Counter(rows) - (self.known - self.queue):
            with pytest.raises(NotLearnedError):
                self.store.relabel(X, old, arrays(new)[1], w)
        else:
            self.store.relabel(X, old, arrays(new)[1], w)
            self.known = self.known - Counter(rows) + Counter(new)

    @rule(rows=several)
    def merge(self, rows):
        part = knowledge(rows)
        everything = [*self.known.elements(), *(r for other in self.slices for r in other)]
        held = [*self.slices, *([everything] if everything else [])]
        if any(knowledge(other).digest() == part.digest() for other in held):
            with pytest.raises(AlreadyMergedError):
                self.store.merge(part)
        else:
            self.store.merge(part)
            self.slices.append(rows)

    @precondition(lambda self: self.slices)
    @rule(data=st.data())
    def take_out(self, data):
        rows = self.slices.pop(data.draw(st.integers(0, len(self.slices) - 1)))
        self.store.forget(knowledge(rows))

    @precondition(lambda self: self.done)
    @rule(data=st.data())
    def ask_again(self, data):
        kind, rows, answer = self.done[key := data.draw(st.sampled_from(sorted(self.done)))]
        again = getattr(self.store, kind)(*arrays(rows), key=key)
        assert again.replayed
        assert again == answer or isinstance(answer, Queued)

    @rule()
    def reopen(self):
        self.store = Store(self.store.path)

    @invariant()
    def is_that_of_the_rows(self):
        if not hasattr(self, "store"):
            return
        held = [*self.known.elements(), *(r for rows in self.slices for r in rows)]
        status = self.store.status()
        fresh = LSSVC(fingerprint=True)
        assert status.digest == (fresh.fit(*arrays(held)).digest() if held else None)
        assert (status.rows, status.waiting) == (len(held), self.queue.total())
        assert status.unknown == sum(map(len, self.slices))
        assert status.classes == dict(Counter(label for _, label, _ in held))
        verified = self.store.verify(*arrays(held)) if held else self.store.verify([])
        assert verified.ok, verified


def test_any_history(monkeypatch):
    monkeypatch.setattr(queues, "SAFE_ROWS", 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RevealingWarning)
        machine = Histories.TestCase
        machine.settings = settings(max_examples=25, stateful_step_count=15)
        machine("runTest").runTest()
