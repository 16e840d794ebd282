"""After a commit that failed, the message says what is true; and nothing is left in the log."""

import errno
import sqlite3

import pytest

from traceless.exceptions import StoreError
from traceless.store import commit as module
from traceless.store.ledger import Ledger
from traceless.store.opening import open_ledger


def sqlite_error(name):
    """An error as SQLite raises it."""
    error = sqlite3.OperationalError(name)
    error.sqlite_errorcode = getattr(sqlite3, name)
    return error


def failing(error, made):
    """A commit that raises, before or after the change is made."""
    real = Ledger.commit

    def commit(self):
        if made:
            real(self)
        raise error

    return commit


ERRORS = {
    "sync": (sqlite_error("SQLITE_IOERR_FSYNC"), OSError, errno.EIO),
    "full": (sqlite_error("SQLITE_FULL"), OSError, errno.ENOSPC),
    "write": (OSError(errno.ENOSPC, "No space left on device"), OSError, errno.ENOSPC),
    "other": (sqlite_error("SQLITE_CORRUPT"), StoreError, None),
}


@pytest.mark.parametrize("name", ERRORS)
def test_a_commit_that_was_not_made(store, rows, monkeypatch, name):
    error, kind, number = ERRORS[name]
    before = store.history()
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "commit", failing(error, made=False))
        with pytest.raises(kind, match="Nothing was changed") as found:
            store.learn(*rows)
    assert getattr(found.value, "errno", None) == number
    assert ("disk is full" in str(found.value)) == (number == errno.ENOSPC)
    assert store.history() == before
    assert store.learn(*rows).held == 500
    assert store.verify().ok


@pytest.mark.parametrize("name", ERRORS)
def test_a_commit_that_was_made_all_the_same(store, rows, monkeypatch, name):
    """An obedient retry would learn twice: so there is an answer, and no error."""
    X, y = rows
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "commit", failing(ERRORS[name][0], made=True))
        receipt = store.forget(X[:100], y[:100])
    assert (receipt.held, receipt.sequence) == (100, store.receipt().sequence)
    assert receipt == store.receipt()
    assert len(list((store.path / "generations").iterdir())) == 1  # the model before is gone
    assert store.verify(X[100:200], y[100:200]).ok


@pytest.mark.parametrize("made", [False, True])
def test_an_interrupt_says_what_is_true(store, rows, monkeypatch, made):
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "commit", failing(KeyboardInterrupt(), made))
        with pytest.raises(KeyboardInterrupt) as found:
            store.learn(*rows)
    (said,) = found.value.__notes__
    assert said == (
        "The change was made (entry 2); do not repeat it." if made else "Nothing was changed."
    )
    assert store.status().rows == (500 if made else 200)
    assert store.verify().ok


def test_where_nobody_can_tell_nobody_says_so(store, rows, monkeypatch):
    def unreadable(*args):
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "commit", failing(sqlite_error("SQLITE_IOERR_FSYNC"), made=True))
        patch.setattr(module, "open_ledger", unreadable)
        with pytest.raises(OSError, match="could not be seen whether the change was made"):
            store.learn(*rows, key="k")
    assert store.learn(*rows, key="k").replayed
    assert store.verify().ok


def test_what_a_failed_commit_left_in_the_log_is_written_over(store):
    """While somebody reads, the log cannot be emptied: a page takes the place of what was left."""
    path = store.path / "ledger.sqlite"
    log = path.with_name("ledger.sqlite-wal")
    with open_ledger(path) as reader:
        last = reader.last()
        store.new_key()
        size, entry = log.stat().st_size, store.receipt()
        assert module._look(store._folder, store.history()[-1]) == (True, False)
        assert log.stat().st_size == size
        assert module._look(store._folder, last) == (False, False)
        assert log.stat().st_size > size
    assert module._look(store._folder, store.history()[-1]) == (True, True)
    assert store.receipt() == entry
    assert store.verify().ok


def test_the_log_is_emptied_or_that_is_said(store, rows):
    X, y = rows
    log = store.path / "ledger.sqlite-wal"
    assert store.forget(X[:50], y[:50]).log_emptied
    assert store.status().log_emptied
    with open_ledger(store.path / "ledger.sqlite") as reader:
        reader.last()
        receipt = store.forget(X[50:100], y[50:100])
        assert not receipt.log_emptied
        assert log.stat().st_size > 0
        assert not store.status().log_emptied
    assert store.status().log_emptied  # the last one to close it has emptied it
    with open_ledger(store.path / "ledger.sqlite") as reader:
        reader.last()
        store.new_key()
        with open_ledger(store.path / "ledger.sqlite") as second:
            second.last()
    assert store.learn(X, y).log_emptied
    assert store.verify().ok
