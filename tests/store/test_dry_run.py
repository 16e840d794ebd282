"""A dry run says what would be, and leaves nothing behind."""

import numpy as np
import pytest

from traceless import LSSVC, Knowledge
from traceless.exceptions import NotLearnedError, RevealingWarning
from traceless.features import Linear
from traceless.store import Queued, Store

pytestmark = pytest.mark.filterwarnings("ignore::traceless.RevealingWarning")
MADE = ("version", "sequence", "kind", "keys", "rows", "added", "removed", "classes", "held")
MADE += ("unknown", "waiting", "digest_before", "digest_after", "root_before", "root_after")
MADE += ("alive", "ids", "request", "revealing", "subject", "signer", "origin")


def changes(rows):
    """One change of each kind; all of them can be made to the same state."""
    X, y = rows
    return {
        "learn": lambda s, **o: s.learn(X, y, ids=np.arange(300), key="k", **o),
        "forget": lambda s, **o: s.forget(X[10:110], y[10:110], **o),
        "undo": lambda s, **o: s.undo(X[:200], y[:200], **o),
        "relabel": lambda s, **o: s.relabel(X[10:110], y[10:110], y[100:200], **o),
        "correct": lambda s, **o: s.correct((X[10:90], y[10:90]), (X[200:], y[200:]), **o),
        "merge": lambda s, **o: s.merge(Knowledge.of(Linear(), X, y, fingerprint=True), **o),
        "queue": lambda s, **o: s.forget(X[10:12], y[10:12], batch=True, key="q", **o),
        "enough": lambda s, **o: s.forget(X[10:110], y[10:110], batch=True, **o),
        "flush": lambda s, **o: s.flush(force=True, **o)[0],
        "cancel": lambda s, **o: s.cancel(2, **o),
        "seal": lambda s, **o: s.seal(**o),
        "key": lambda s, **o: s.new_key(**o),
        "destroy": lambda s, **o: s.destroy("model", **o),
    }


def files(store):
    """Every file that means something: SQLite's log does not."""
    return {
        path.name: path.read_bytes()
        for path in store.path.rglob("*")
        if path.is_file() and not path.name.startswith("ledger.sqlite-")
    }


@pytest.mark.parametrize("what", list(changes((None, None))))
def test_it_says_what_would_be(store, rows, what):
    X, y = rows
    if what in ("flush", "cancel"):
        store.forget(X[:5], y[:5], batch=True)
    change, before, history = changes(rows)[what], files(store), store.history()
    tried = change(store, dry_run=True)
    assert files(store) == before
    assert store.history() == history
    tried = tried.receipt if isinstance(tried, Queued) else tried
    assert tried.dry_run
    assert tried.signature == ""
    assert not tried.check()
    assert (tried.generation is None) == (what not in ("queue", "cancel", "key"))
    model = tried.tried
    made = change(store)
    made = made.receipt if isinstance(made, Queued) else made
    left_out = ("subject",) if what == "key" else ()  # a new key is another one each time
    for name in MADE:
        assert name in left_out or getattr(tried, name) == getattr(made, name), name
    assert not made.dry_run
    assert made.tried is None
    assert made.check()
    if model is not None and made.held:
        assert model.digest() == made.digest_after
    assert store.verify().ok


def test_what_would_be_refused_is_refused(store, rows):
    X, y = rows
    before = files(store)
    with pytest.raises(NotLearnedError):
        store.forget(X[150:250], y[150:250], dry_run=True)
    with pytest.warns(RevealingWarning):
        assert store.forget(X[:1], y[:1], dry_run=True).revealing
    assert files(store) == before


def test_an_answer_of_before_is_given_as_it_was(store, rows):
    first = store.learn(*rows, key="k")
    again = store.learn(*rows, key="k", dry_run=True)
    assert again == first
    assert (again.replayed, again.dry_run) == (True, False)


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
