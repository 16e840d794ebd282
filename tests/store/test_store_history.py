"""Any history of a store, against a plain oracle: a list of rows, and a fit from scratch."""

import os
import shutil
import tempfile
import warnings
from collections import Counter
from contextlib import suppress
from itertools import count
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from traceless import LSSVC, Knowledge, NotLearnedError
from traceless.exceptions import AlreadyMergedError, RevealingWarning
from traceless.features import Linear
from traceless.store import Queued, Store, row_digests

LABELS = ["a", "b"]
WEIGHTS = [1.0, 2.0, 0.5]
IDS = ["p", "q"]

row = st.tuples(
    *(st.integers(0, 5), st.sampled_from(LABELS), st.sampled_from(WEIGHTS), st.sampled_from(IDS))
)
several = st.lists(row, min_size=1, max_size=6)


def arrays(rows):
    """Rows (value, label, weight, id) as X, y and weights."""
    X = np.array([[float(v), float(v * v)] for v, *_ in rows]).reshape(-1, 2)
    return X, np.array([label for _, label, *_ in rows]), np.array([w for _, _, w, _ in rows])


def knowledge(rows):
    return Knowledge.of(Linear(), *arrays(rows), fingerprint=True)


class Histories(RuleBasedStateMachine):
    """Values are few, so that equal rows, and rows that are not held, are common.

    Rows have ids in some of the stores.
    """

    @initialize(named=st.booleans())
    def begin(self, named):
        self.named, self.last, self.gone, self.moved = named, None, set(), False
        memory = "/dev/shm" if os.path.isdir("/dev/shm") else None  # there is nothing to lose
        self.folder = Path(tempfile.mkdtemp(dir=memory))
        self.store = Store.new(self.folder / "store", LSSVC())
        self.known, self.queue, self.slices = Counter(), Counter(), []
        self.done = {}  # key: (kind, rows, answer)
        self.keys = map(str, count())

    def teardown(self):
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)

    def _rows(self, rows):
        return [row if self.named else (*row[:3], None) for row in rows]

    def _ids(self, rows):
        return {"ids": [row[3] for row in rows]} if self.named else {}

    def _gone(self, rows):
        self.known -= rows
        held = {row[3] for row in self.known.elements()}
        self.gone |= {row[3] for row in rows.elements()} - held - {None}

    def _key(self, kind, rows, answer):
        key = next(self.keys)
        self.done[key] = kind, rows, answer(key)

    @rule(rows=several, cut=st.integers(0, 6))
    def learn(self, rows, cut):
        self.last = rows = self._rows(rows)
        self.moved = False
        whole = (*arrays(rows), *self._ids(rows).values())
        parts = [tuple(a[:cut] for a in whole), tuple(a[cut:] for a in whole)]
        self._key("learn", rows, lambda key: self.store.learn(parts, key=key, again=True))
        self.known.update(rows)

    @precondition(lambda self: self.last)
    @rule()
    def undo(self):
        rows, self.last = self.last, None
        if self.moved:  # equal rows came by another change since, and these may be gone
            with suppress(NotLearnedError):
                self.store.undo(*arrays(rows), **self._ids(rows))
                self.known -= Counter(rows)
        elif Counter(rows) - (self.known - self.queue):
            with pytest.raises(NotLearnedError):
                self.store.undo(*arrays(rows), **self._ids(rows))
        else:
            self.store.undo(*arrays(rows), **self._ids(rows))
            self.known -= Counter(rows)

    @rule(rows=several)
    def forget(self, rows):
        rows = self._rows(rows)
        ids = self._ids(rows)
        missing = Counter(rows) - (self.known - self.queue)
        if missing:
            with pytest.raises(NotLearnedError, match=f"^{missing.total()} of {len(rows)} "):
                self.store.forget(*arrays(rows), **ids)
        else:
            self._key("forget", rows, lambda key: self.store.forget(*arrays(rows), **ids, key=key))
            self._gone(Counter(rows))

    @precondition(lambda self: self.known)
    @rule(data=st.data())
    def forget_held(self, data):
        free = sorted((self.known - self.queue).elements())
        if free:
            self.forget(free[: data.draw(st.integers(1, len(free)))])

    @rule(rows=several)
    def put_aside(self, rows):
        rows = self._rows(rows)
        ids = self._ids(rows)
        missing = Counter(rows) - (self.known - self.queue)
        if missing:
            with pytest.raises(NotLearnedError):
                self.store.forget(*arrays(rows), **ids, batch=True)
            return
        key = next(self.keys)
        answer = self.store.forget(*arrays(rows), **ids, batch=True, key=key)
        self.done[key] = "forget", rows, answer
        self.queue.update(rows)
        if not isinstance(answer, Queued):
            assert answer.rows == self.queue.total()
            self._gone(self.queue)
            self.queue = Counter()

    @rule()
    def flush(self):
        found = self.store.flush(force=True)
        assert len(found) == bool(self.queue)
        self._gone(self.queue)
        self.queue = Counter()

    @precondition(lambda self: self.queue)
    @rule(data=st.data())
    def cancel(self, data):
        queued = data.draw(st.sampled_from(self.store.pending()))
        self.queue -= Counter(self.done.pop(queued.key)[1])
        self.store.cancel(queued)

    @rule(rows=several)
    def relabel(self, rows):
        rows = self._rows(rows)
        new = [(v, LABELS[1 - LABELS.index(label)], *rest) for v, label, *rest in rows]
        (X, old, w), ids = arrays(rows), self._ids(rows)
        if Counter(rows) - (self.known - self.queue):
            with pytest.raises(NotLearnedError):
                self.store.relabel(X, old, arrays(new)[1], w, **ids)
        else:
            self.store.relabel(X, old, arrays(new)[1], w, **ids)
            self.known = self.known - Counter(rows) + Counter(new)
            self.moved = True

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
        again = getattr(self.store, kind)(*arrays(rows), **self._ids(rows), key=key)
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
        assert status.classes == dict(Counter(label for _, label, *_ in held))
        for one in IDS if self.named else []:
            rows, waiting = (
                sum(n for row, n in of.items() if row[3] == one) for of in (self.known, self.queue)
            )
            found = self.store.find(one)
            assert (found.held, found.waiting) == (rows, waiting)
            kinds = dict.fromkeys(("learn", "relabel", "merge", "queue"), 0)
            for event in found.events:
                kinds[event.kind] += event.rows
            assert kinds.pop("queue") == waiting
            assert sum(kinds.values()) == rows
            assert found.suppressed or one not in self.gone
        verified = self.store.verify(*arrays(held)) if held else self.store.verify([])
        assert verified.ok, verified


def test_any_history(monkeypatch):
    monkeypatch.setattr(row_digests, "SAFE_ROWS", 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RevealingWarning)
        machine = Histories.TestCase
        machine.settings = settings(max_examples=15, stateful_step_count=15)
        machine("runTest").runTest()
