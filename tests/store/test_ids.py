"""Ids: rows are found, forgotten, relabelled and corrected by what people know them by."""

import re
from datetime import date

import numpy as np
import pytest

from traceless import LSSVC, NotLearnedError
from traceless.exceptions import AlreadyLearnedError, StoreError, StoreWarning
from traceless.store import Queued, Store, suppression
from traceless.store.opening import open_ledger
from traceless.store.row_digests import RowHasher

pytestmark = pytest.mark.filterwarnings("ignore::traceless.RevealingWarning")


@pytest.fixture
def clinic(tmp_path, rows):
    """Patient k has the rows 3k, 3k + 1 and 3k + 2 of 300."""
    store = Store.new(tmp_path / "clinic", LSSVC())
    ids = np.arange(300) // 3
    store.learn(*rows, ids=ids)
    return store, *rows, ids


def numbers(store, name):
    found = store.find(name)
    return found.held, found.waiting, found.suppressed is not None


class TestFind:
    def test_what_is_held_and_since_when(self, clinic):
        store, X, y, ids = clinic
        assert numbers(store, 5) == numbers(store, "5") == (3, 0, False)
        for nobody in (100, "nobody", ""):
            assert numbers(store, nobody) == (0, 0, False)
        store.forget(X[15:16], y[15:16], ids=ids[15:16])
        queued = store.forget(X[16:17], y[16:17], ids=ids[16:17], batch=True)
        assert numbers(store, 5) == (2, 1, False)
        store.relabel(X[17:18], y[17:18], ["perhaps"])
        events = store.find(5).events
        assert [(e.kind, e.rows) for e in events] == [("learn", 1), ("queue", 1), ("relabel", 1)]
        assert [store.receipt(event.sequence).time for event in events] == [e.time for e in events]
        store.cancel(queued)
        assert numbers(store, 5) == (2, 0, False)
        assert store.verify().ok

    def test_the_id_itself_is_nowhere(self, tmp_path, rows):
        store = Store.new(tmp_path / "s", LSSVC())
        store.learn(*rows, ids=["Erika Mustermann"] * 300)
        store.forget(rows[0][:5], rows[1][:5], ids=["Erika Mustermann"] * 5, batch=True)
        for path in store.path.rglob("*"):
            assert path.is_dir() or b"Erika" not in path.read_bytes()

    def test_nothing_is_left_of_ids_once_the_secret_is_gone(self, clinic):
        store = clinic[0]
        store.destroy("secret")
        with pytest.raises(StoreError, match="secret of this store was destroyed"):
            store.find(5)
        with open_ledger(store.path / "ledger.sqlite") as ledger:
            assert ledger.sql.execute("SELECT * FROM people").fetchall() == []
        assert store.verify().ok

    def test_rows_of_another_store_come_with_their_ids(self, tmp_path, clinic):
        store, X, y, _ = clinic
        secret = (store.path / "secret").read_bytes()
        other = Store.new(tmp_path / "other", LSSVC(), secret=secret)
        other.learn(X[:30], y[:30], ids=["x", "y", None] * 10)
        store.merge(other)
        assert numbers(store, "x") == (10, 0, False)
        assert store.find("y").events[0].kind == "merge"
        store.forget(other)
        assert numbers(store, "x") == (0, 0, True)
        assert store.verify().ok


def test_ids_can_be_verified_with_the_rows(clinic):
    store, X, y, ids = clinic
    assert store.verify(X, y).ok
    assert store.verify(X[::-1], y[::-1], ids=ids[::-1]).ok
    found = store.verify(X, y, ids=ids[::-1])
    assert [check.name for check in found.checks if not check.ok] == ["digests"]


class TestForget:
    @pytest.mark.parametrize("batch", [False, True])
    def test_all_rows_of_an_id_must_be_given_if_asked(self, clinic, batch):
        store, X, y, ids = clinic
        some = np.r_[0:3, 6:8]
        history = store.history()
        with pytest.raises(NotLearnedError, match=r"1 more rows of 1 of these 2 ids.*Nothing was"):
            store.forget(X[some], y[some], ids=ids[some], whole=True, batch=batch)
        with pytest.raises(NotLearnedError, match="1 more rows"):  # the store knows the ids too
            store.forget(X[some], y[some], whole=True, batch=batch)
        assert (store.history(), numbers(store, 0)) == (history, (3, 0, False))
        store.forget(X[8:9], y[8:9], batch=True)  # what waits is asked for already
        store.forget(X[some], y[some], ids=ids[some], whole=True, batch=batch)
        assert numbers(store, 2) == ((3, 3, False) if batch else (1, 1, False))
        assert store.verify().ok


class TestRelabelAndCorrect:
    def test_rows_keep_their_ids_without_being_asked(self, clinic):
        store, X, y, _ = clinic
        store.relabel(X[:60], y[:60], y[60:120])
        assert numbers(store, 3) == (3, 0, False)
        store.forget(X[9:12], y[69:72], ids=[3, 3, 3], whole=True)
        assert numbers(store, 3) == (0, 0, True)
        assert store.verify().ok

    @pytest.mark.parametrize("how", ["relabel", "correct"])
    def test_all_rows_of_an_id_under_the_same_id(self, clinic, how):
        """The new rows have the ids of the old ones, and are not among those that are left."""
        store, X, y, ids = clinic
        new = np.where(y[:6] == y[0], y[y != y[0]][0], y[0])

        def change(n):
            old = X[:n], y[:n], None, ids[:n]
            if how == "relabel":
                return store.relabel(X[:n], y[:n], new[:n], ids=ids[:n], whole=True)
            return store.correct(old, (X[:n], new[:n], None, ids[:n]), whole=True)

        with pytest.raises(NotLearnedError, match="1 more rows of 1 of these 2 ids"):
            change(5)
        change(6)
        assert numbers(store, 1) == (3, 0, False)
        assert store.verify(X, np.r_[new, y[6:]], ids=ids).ok


class TestUndo:
    def test_of_the_last_learning(self, store, rows):
        X, y = rows
        learned = store.learn(X[200:], y[200:], ids=["x"] * 100)
        for other in ((X[200:299], y[200:299]), (X[150:250], y[150:250]), (X[:200], y[:200])):
            with pytest.raises(NotLearnedError, match=r"100 rows.*Nothing was changed"):
                store.undo(*other)
        store.new_key()
        receipt = store.undo(X[:199:-1], y[:199:-1], ids=["x"] * 100)
        assert (receipt.kind, receipt.subject) == ("forget", f"undo of entry {learned.sequence}")
        with pytest.raises(StoreError, match="was undone before"):
            store.undo(X[200:], y[200:], ids=["x"] * 100)
        assert store.verify(X[:200], y[:200]).ok

    def test_a_slice_has_no_such_name(self, tmp_path, store, rows):
        other = Store.new(tmp_path / "other", LSSVC())
        other.learn(rows[0][200:], rows[1][200:])
        with pytest.raises(ValueError, match=r"name 'undo of entry 1'.*Nothing was changed"):
            store.merge(other, name="undo of entry 1")

    def test_of_nothing(self, tmp_path, rows):
        with pytest.raises(StoreError, match="has learned nothing"):
            Store.new(tmp_path / "s", LSSVC()).undo(*rows)


def returning(store, X, y, **options):
    """The rows of patient 5 come again, in a trial."""
    return store.learn(X[15:18], y[15:18], ids=[5] * 3, dry_run=True, **options)


STEPS_OF_5 = {
    "forget": lambda s, X, y: s.forget(X[15:18], y[15:18]),
    "forget some": lambda s, X, y: s.forget(X[15:17], y[15:17]),
    "wait": lambda s, X, y: s.forget(X[15:18], y[15:18], batch=True, key="5"),
    "wait some": lambda s, X, y: s.forget(X[15:16], y[15:16], batch=True, key="5"),
    "forget others": lambda s, X, y: s.forget(X[16:18], y[16:18]),
    "flush": lambda s, X, y: s.flush(force=True),
    "wait learned": lambda s, X, y: s.forget(X[:3], y[:3], ids=[5] * 3, batch=True, key="5"),
    "cancel": lambda s, X, y: s.cancel("5"),
    "learn": lambda s, X, y: s.learn(X[:3], y[:3], ids=[5] * 3, again=True),
    "undo": lambda s, X, y: s.undo(X[:3], y[:3], ids=[5] * 3),
    "undo all": lambda s, X, y: s.undo(X, y, ids=np.arange(300) // 3),
    "correct": lambda s, X, y: s.correct((X[15:18], y[15:18]), (X[15:18], y[15:18], None, [6] * 3)),
}


class TestWhoWasForgotten:
    @pytest.mark.parametrize(
        ("steps", "refused"),
        [
            ("forget", True),
            ("forget some", False),
            ("wait", True),
            ("wait, flush", True),
            ("wait, cancel", False),
            ("wait some, forget others", True),
            ("wait some, forget others, flush", True),
            ("undo all", False),
            ("correct", False),
            ("forget, learn", False),
            ("forget, learn, undo", True),  # no way round
            ("forget, learn, wait learned, cancel, undo", True),
            ("wait, cancel, undo all", False),
            ("learn, forget, undo", False),
        ],
    )
    def test_does_not_come_back_unseen(self, clinic, steps, refused):
        store, X, y, _ = clinic
        for step in steps.split(", "):
            STEPS_OF_5[step](store, X, y)
        assert returning(store, X, y, again=True).added == 3
        if refused:
            with pytest.raises(AlreadyLearnedError, match=r"3 rows .*Nothing was changed"):
                returning(store, X, y)
        else:
            assert returning(store, X, y).added == 3
        assert store.verify().ok

    def test_rows_and_entries_are_counted(self, clinic):
        """Among others, in batches, with rows of weight 0 and without ids."""
        store, X, y, ids = clinic
        store.forget(X[15:18], y[15:18])
        store.forget(X[30:36], y[30:36])
        weight = np.r_[0.0, np.ones(39)]
        history = store.history()
        with pytest.raises(AlreadyLearnedError) as error:
            store.learn([(X[:10], y[:10]), (X[10:50], y[10:50], np.roll(weight, 5), ids[10:50])])
        assert re.search(
            r"^8 rows are of ids .* waits to be: number 16, 17, 30, 31, 32, … ",
            str(error.value),
        )
        assert store.history() == history
        store.destroy("secret")
        assert store.learn(X[15:18], y[15:18], ids=ids[15:18]).added == 3  # nobody can tell now

    def test_nor_by_correct_or_merge(self, tmp_path, clinic):
        store, X, y, ids = clinic
        store.forget(X[15:18], y[15:18])
        new = X[:3], y[:3], None, [5, 5, 5]
        with pytest.raises(AlreadyLearnedError, match=r"1 ids .*Nothing was changed"):
            store.correct((X[30:33], y[30:33]), new)
        other = Store.new(tmp_path / "other", LSSVC(), secret=(store.path / "secret").read_bytes())
        other.learn(X[15:18], y[15:18], ids=ids[15:18])
        with pytest.raises(AlreadyLearnedError, match="ids whose last row was forgotten"):
            store.merge(other)
        assert store.correct((X[30:33], y[30:33]), new, again=True).added == 3
        assert store.merge(other, again=True).added == 3
        assert numbers(store, 5) == (6, 0, True)
        assert store.verify().ok

    def test_comes_back_after_the_period(self, tmp_path, rows, monkeypatch):
        X, y = rows
        monkeypatch.setattr(suppression, "_today", lambda: date(2026, 12, 31))
        for period, until in (("2 months", "2027-02-28"), ("never", "never"), (None, None)):
            store = Store.new(tmp_path / str(period), LSSVC(), suppress=period)
            store.learn(X[:6], y[:6], ids=[1, 1, 2, 2, 3, 3])
            store.forget(X[:2], y[:2])
            assert store.find(1).suppressed == until
            if until is None:
                assert store.learn(X[:2], y[:2], ids=[1, 1]).added == 2
                continue
            with pytest.raises(AlreadyLearnedError):
                store.learn(X[:2], y[:2], ids=[1, 1])
            with monkeypatch.context() as later:
                later.setattr(suppression, "_today", lambda: date(2027, 3, 1))
                expired = store.learn(
                    X[:2], y[:2], ids=[1, 1], dry_run=True, again=until == "never"
                )
                assert expired.added == 2
                assert (store.find(1).suppressed is None) is (until != "never")
            assert store.verify().ok
        for wrong in ("two months", "0 months", "24", 24, "-1 months", ""):
            with pytest.raises(ValueError, match="suppress must be"):
                Store.new(tmp_path / "wrong", LSSVC(), suppress=wrong)

    def test_the_list_is_a_file_of_its_own_and_can_be_destroyed(self, clinic):
        store, X, y, ids = clinic
        with pytest.raises(StoreError, match="suppression of this store was destroyed before"):
            store.destroy("suppression")
        store.forget(X[15:18], y[15:18])
        store.forget(X[18:21], y[18:21])
        (path,) = (store.path / "generations").glob("*.suppression")
        assert path.stat().st_mode & 0o777 == 0o600
        content = path.read_bytes()
        path.write_bytes(content[:-1])
        assert not store.verify().ok
        path.write_bytes(content)
        assert "2 people are on the list" in str(store.verify())
        receipt = store.destroy("suppression")
        assert (receipt.kind, receipt.subject, receipt.check()) == ("destroy", "suppression", True)
        assert not path.exists()
        assert store.learn(X[15:18], y[15:18], ids=ids[15:18]).added == 3
        assert store.verify().ok


def test_ids_of_the_forgotten_cannot_be_guessed(tmp_path, rows):
    """All 64 were found in 0.9 s once, by whoever had the folder, secret included."""
    X, y = rows
    store = Store.new(tmp_path / "s", LSSVC(), suppress=None)
    store.learn(X, y, ids=np.arange(300))
    with open_ledger(store.path / "ledger.sqlite") as ledger:
        hasher = RowHasher.of((store.path / "secret").read_bytes(), ledger.origin)
        salts = ledger.rows.ids(hasher.names(range(300)))
    store.forget(X[:64], y[:64])
    store.flush()
    folder = b"".join(path.read_bytes() for path in store.path.rglob("*") if path.is_file())
    for i in range(300):
        (guess,) = hasher.names([i])
        for known in (guess, salts[guess]):
            assert (known in folder) is (i >= 64)


class TestPartOfAnEarlierTable:
    """With ids it is refused; without them rows may well be equal, and nobody can tell."""

    @pytest.mark.parametrize("some", [slice(0, 30), slice(250, 300)])
    def test_is_refused_once(self, clinic, some):
        store, X, y, ids = clinic
        new = X[some] + [[0.5, 0, 0]], y[some], None, ids[some] + 1000
        united = [(X[some], y[some], None, ids[some]), new]
        with pytest.raises(AlreadyLearnedError, match="under the same ids: number 0"):
            store.learn(united, once=True)
        assert store.learn(new[0], new[1], ids=new[3], once=True).added == len(new[0])
        assert store.learn(united).added == 2 * len(new[0])
        assert store.verify().ok

    def test_without_ids_is_learned_twice_and_that_is_said(self, store, rows):
        X, y = rows
        with pytest.warns(StoreWarning, match="30 of these 60 rows equal rows that are held"):
            assert store.learn(X[170:230], y[170:230], once=True).added == 60
        assert store.learn(X[229:260], y[229:260], once=True).added == 31  # one may well be equal


class TestQueue:
    def test_a_cancelled_request_leaves_its_receipts_and_its_key(self, clinic):
        store, X, y, _ = clinic
        first = store.forget(X[:3], y[:3], batch=True, key="first")
        second = store.forget(X[3:5], y[3:5], batch=True)
        assert [q.receipt for q in store.pending()] == [first.receipt, second.receipt]
        assert [(q.receipt.rows, q.receipt.waiting) for q in store.pending()] == [(3, 3), (2, 5)]
        with pytest.raises(StoreError, match=r"No request 'other' waits.*2, 3.*Nothing was"):
            store.cancel("other")
        receipt = store.cancel("first")
        assert (receipt.subject, receipt.waiting) == (f"entry {first.sequence}", 2)
        with pytest.raises(StoreError, match=r"'first' was cancelled \(entry 4.*Nothing was"):
            store.forget(X[:3], y[:3], batch=True, key="first")
        assert isinstance(store.forget(X[:3], y[:3], batch=True, key="again"), Queued)
        assert store.verify().ok

    def test_rows_wait_with_ids_without_and_with_some(self, clinic):
        store, X, y, _ = clinic
        store.forget(X[:2], y[:2], ids=[0, None], batch=True)
        store.forget(X[2:4], y[2:4], batch=True)
        store.forget(X[4:6], y[4:6], ids=[1, 1], batch=True)
        assert store.verify().ok
        assert store.flush(force=True)[0].rows == 6
        assert (numbers(store, 0), numbers(store, 1)) == ((0, 0, True), (0, 0, True))
