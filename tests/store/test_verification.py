"""Whatever is changed in a store behind its back is found by `verify`.

The enemy may write the folder, and has not the key. He makes every hash right again, and puts the
guards of the tables up again; sums that have no key, he recomputes. What he cannot make is a
signature.
"""

import shutil
import sqlite3
from contextlib import closing, contextmanager
from dataclasses import replace

import numpy as np
import pytest
from forging import edit, key_of, put, relogged, restated

from traceless import LSSVC
from traceless.exceptions import StoreError
from traceless.knowledge.fingerprint import to_bytes
from traceless.store import Store
from traceless.store import change as module
from traceless.store.keys import SigningKey
from traceless.store.opening import open_ledger
from traceless.store.row_digests import packed
from traceless.store.row_table import Record, lanes_text
from traceless.store.verification import Auditor

pytestmark = pytest.mark.filterwarnings("ignore::traceless.RevealingWarning")
CHANGED = {int: lambda v: v + 1, bool: lambda v: not v, type(None): lambda _: "0" * 32}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """new, learn, learn, forget, queue, relabel: three of them about rows by id."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")
    store = Store.new(tmp_path_factory.mktemp("made") / "store", LSSVC())
    store.learn(X[:200], y[:200])
    store.learn(X[200:], y[200:], ids=np.arange(100), key="a")
    store.forget(X[200:240], y[200:240], ids=np.arange(40), key="b")
    store.forget(X[240:245], y[240:245], batch=True, key="c")
    store.relabel(X[:50], y[:50], y[50:100])
    assert store.verify().ok
    return store.path


@pytest.fixture
def history(made, tmp_path):
    """A copy of it."""
    return Store(shutil.copytree(made, tmp_path / "store"))


def other(value):
    """Another value of the same type."""
    if isinstance(value, str):
        return "0" + value[1:] if value[:1] != "0" else "1" + value[1:]
    if isinstance(value, dict):
        return {**value, "no": value.get("no", 0) + 1}
    if isinstance(value, tuple):
        return (*value, "x")
    return CHANGED[type(value)](value)


def failed(store, *names):
    found = {check.name for check in store.verify().checks if not check.ok}
    return found >= set(names) if names else bool(found)


def ledger_rows(store, query):
    with closing(sqlite3.connect(store.path / "ledger.sqlite")) as connection:
        return connection.execute(query).fetchall()


def test_entries_cannot_be_changed_by_mistake(store):
    with closing(sqlite3.connect(store.path / "ledger.sqlite")) as connection:
        for statement in (
            "UPDATE entries SET signature = ''",
            "DELETE FROM entries",
            "DELETE FROM origin",
        ):
            with pytest.raises(sqlite3.IntegrityError, match="kept as they are"):
                connection.execute(statement)


def test_every_field_of_every_entry_is_guarded(history):
    for entry in history.history():
        for field, value in entry.facts().items():
            put(history, restated(entry, **{field: other(value)}))
            with open_ledger(history.path / "ledger.sqlite") as ledger:
                checks = Auditor(None, ledger, None).ledger_checks()
                check = next(check for check in checks if check.name == "chain")
            assert not check.ok, (entry.sequence, field)
        put(history, replace(entry, signature=entry.signature[::-1]))
        assert failed(history, "chain")
        put(history, entry)
    assert history.verify().ok


def test_a_chain_that_is_forged_to_its_end_does_not_fit_the_rest(history):
    """All of it signed again, with the right key: then the counts, the root or the model tell."""
    *entries, last = history.history()
    fields = "digest_after root_after records held unknown classes totals sha256 keys"
    for field in fields.split():
        forged = restated(last, key_of(history), **{field: other(getattr(last, field))})
        relogged(history, [*entries, forged], key_of(history))
        assert failed(history), field
    relogged(history, [*entries, last], key_of(history))
    assert history.verify().ok


def rewritten(store, change, key=None):
    """Change the facts of entries (a list), and make the log anew; sign all with a key if given."""
    entries = change(store.history())
    said = [restated(entry, key, sequence=i) for i, entry in enumerate(entries)]
    relogged(store, said, key)


def with_(number, **facts):
    """A change of the facts of one entry."""

    def changed(entries):
        entries[number] = restated(entries[number], **facts)
        return entries

    return changed


def squashed(entries):
    """Learning and forgetting in one, so that nobody sees that the rows were ever there."""
    learn, forget = entries[2], entries[3]
    facts = {
        name: getattr(learn, name) for name in ("digest_before", "root_before", "time", "kind")
    }
    facts |= {"added": 60, "removed": 0, "rows": 60, "keys": ()}
    facts["classes"] = {
        label: learn.classes.get(label, 0) + forget.classes.get(label, 0) for label in learn.classes
    }
    return [*entries[:2], restated(forget, **facts), *entries[4:]]


REWRITINGS = {
    "a forgetting that is backdated": with_(3, time="2020-01-01T00:00:00Z"),
    "counts": with_(3, rows=39, removed=39, held=261),
    "the number that wait": with_(4, waiting=0),
    "classes": with_(3, classes={"no": -1, "yes": -39}),
    "another kind": with_(3, kind="relabel"),
    "a key": with_(3, keys=("z",)),
    "which rows they were": with_(3, records="0" * 64),
    "who signed": with_(3, signer="0" * 64),
    "two entries in one": squashed,
    "the last one gone": lambda entries: entries[:-1],
    "one in the middle gone": lambda entries: entries[:3] + entries[4:],
}


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("what", REWRITINGS)
def test_a_history_that_was_rewritten(history, what, signed):
    """Also if all of it is signed with another key: the store's description names its own."""
    mine = SigningKey.new() if signed else None

    def change(entries):
        entries = REWRITINGS[what](entries)
        return [replace(entry, signer=mine.public) for entry in entries] if signed else entries

    rewritten(history, change, mine)
    assert failed(history, *["chain"] * signed)


def test_the_writer_does_not_go_on_from_a_forged_entry(history, rows):
    rewritten(history, with_(5, held=1000))
    uses = (history.model, history.status, history.head, lambda: history.learn(*rows))
    for use in uses:  # nor does anybody read it: predict, export, merge
        with pytest.raises(StoreError, match=r"The ledger is damaged.*Nothing was changed"):
            use()


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("CREATE TABLE stash (content)", "stash"),
        ("CREATE VIEW seen AS SELECT * FROM queue", "seen"),
        ("CREATE INDEX by_rows ON queue (content)", "by_rows"),
        (
            "CREATE TRIGGER keep BEFORE DELETE ON queue BEGIN "
            "UPDATE sums SET content = OLD.content; END",
            "keep",
        ),
        ("DROP TRIGGER no_delete_of_entries", "no_delete_of_entries"),
        ("ALTER TABLE queue ADD COLUMN more", "queue"),
    ],
)
def test_tables_that_are_not_ours(history, rows, statement, name):
    with closing(sqlite3.connect(history.path / "ledger.sqlite")) as connection:
        connection.execute(statement)
    for use in (history.status, history.history, lambda: history.learn(*rows)):
        with pytest.raises(StoreError, match=rf"Added, changed or missing: '{name}'"):
            use()
    assert failed(history)
    assert name in str(history.verify())


def test_digests_that_cancel(history):
    """+5 in one digest and -5 in another: the sum of all of them is what it was."""
    one, two = sorted(ledger_rows(history, "SELECT digest FROM rows WHERE id = x'' LIMIT 2"))
    plus = (int.from_bytes(one[0], "little") + 5).to_bytes(16, "little")
    minus = (int.from_bytes(two[0], "little") - 5).to_bytes(16, "little")
    edit(
        history,
        ("UPDATE rows SET digest = ? WHERE digest = ?", plus, one[0]),
        ("UPDATE rows SET digest = ? WHERE digest = ?", minus, two[0]),
    )
    assert failed(history, "rows")
    with open_ledger(history.path / "ledger.sqlite") as ledger:
        lanes = ledger.rows.totals()[1]
    edit(history, ("UPDATE sums SET content = ?", to_bytes(lanes)))  # which has no key
    assert failed(history, "rows")


def test_a_sum_that_is_not_that_of_the_last_entry_is_not_built_upon(history, rows):
    with open_ledger(history.path / "ledger.sqlite") as ledger:
        lanes = ledger.rows.kept_lanes()
    lanes[0] += 1
    edit(history, ("UPDATE sums SET content = ?", to_bytes(lanes)))
    assert lanes_text(lanes) != history.receipt().records
    with pytest.raises(StoreError, match=r"sum over the rows held is not.*Nothing was changed"):
        history.learn(*rows)


FIRST = "digest = (SELECT min(digest) FROM rows)"
FORGERIES = {
    "chain": """
        INSERT INTO origin VALUES ('stash')
        UPDATE origin SET document = '[]'
        UPDATE origin SET document = replace(document, '"about": {}', '"about": {"a":1}')
        UPDATE entries SET payload = CAST(replace(payload, ':', ': ') AS BLOB) WHERE sequence = 2
        UPDATE entries SET payload = '{' WHERE sequence = 1
        UPDATE entries SET payload = x'ff' WHERE sequence = 1
        UPDATE nodes SET hash = zeroblob(32) WHERE level = 0 AND place = 0
        DELETE FROM nodes WHERE level = 1
        INSERT INTO nodes VALUES (9, 9, x'00')
        UPDATE heads SET note = replace(note, 'traceless', 'Traceless')
        UPDATE heads SET note = note || '— a AAAA' WHERE size = 1
        DELETE FROM heads WHERE size = 1
        DELETE FROM heads
        UPDATE entries SET signature = upper(signature) WHERE sequence = 2
        UPDATE entries SET signature = ''
        UPDATE entries SET signature = (SELECT max(signature) FROM entries)
        DELETE FROM entries WHERE sequence = 0
        DELETE FROM entries WHERE sequence = 2
        DELETE FROM entries WHERE sequence = 5
        DELETE FROM entries
        """,
    "rows": f"""
        UPDATE rows SET count = count + 1 WHERE {FIRST}
        UPDATE rows SET entry = entry + 1 WHERE {FIRST}
        DELETE FROM rows WHERE {FIRST}
        UPDATE rows SET digest = zeroblob(16) WHERE {FIRST}
        UPDATE rows SET id = x'' WHERE id = (SELECT max(id) FROM rows)
        UPDATE rows SET id = (SELECT min(id) FROM people) WHERE id = (SELECT max(id) FROM rows)
        UPDATE people SET rows = rows + 1 WHERE name = (SELECT max(name) FROM people)
        UPDATE people SET name = zeroblob(16) WHERE name = (SELECT max(name) FROM people)
        DELETE FROM people WHERE name = (SELECT max(name) FROM people)
        INSERT INTO people VALUES (zeroblob(16), zeroblob(16), 0)
        INSERT INTO sums VALUES (x'00')
        UPDATE sums SET content = 'text'
        """,
    "queue": """
        DELETE FROM queue
        UPDATE queue SET sequence = 2
        UPDATE queue SET sequence = 99
        UPDATE queue SET content = x'00'
        UPDATE queue SET content = 1e15
        UPDATE queue SET content = 'text'
        UPDATE rows SET request = 0
        UPDATE rows SET request = 2 WHERE request > 0
        """,
    "requests": """
        UPDATE requests SET key = 'z' WHERE key = 'b'
        UPDATE requests SET sequence = 1 WHERE key = 'b'
        INSERT INTO requests VALUES ('b', 1)
        DELETE FROM requests WHERE key = 'a'
        DELETE FROM requests WHERE key = 'c'
        """,
}


@pytest.mark.parametrize(
    ("check", "statement"),
    [(name, line.strip()) for name, text in FORGERIES.items() for line in text.split("\n")[1:-1]],
)
def test_a_table_that_was_changed(history, check, statement):
    edit(history, (statement,))
    assert failed(history, check), str(history.verify())
    assert failed(history)


def test_two_people_cannot_be_exchanged(history):
    """Whoever asked to be forgotten would stay, and another go."""
    query = "SELECT name, id FROM people ORDER BY name LIMIT 2"
    (one, mine), (two, yours) = ledger_rows(history, query)
    swap = "UPDATE people SET id = ? WHERE name = ?"
    edit(history, (swap, b"x" * 16, one), (swap, mine, two), (swap, yours, one))
    assert failed(history, "rows")


@pytest.mark.parametrize("how", ["other rows", "another patient", "and an entry", "no row", "gone"])
def test_rows_that_wait_cannot_be_exchanged(tmp_path, rows, how):
    """He knows the secret, which is in the folder, and would have other rows forgotten.

    All rows are there twice, of nobody and of patient b, and the request names no ids: the row of
    either would do. Sums over other rows could be made equal to those that came.
    """
    X, y = rows
    store = Store.new(tmp_path / "s", LSSVC())
    store.learn(np.r_[X, X], np.r_[y, y], ids=[""] * 300 + ["b"] * 300)
    store.forget(X[:5], y[:5], batch=True)
    with open_ledger(store.path / "ledger.sqlite") as ledger:
        hasher = store._folder.hasher(ledger)
        (other,) = ledger.rows.ids(hasher.names(["b"])).values()
    some = slice(0, 5) if how in ("another patient", "no row") else slice(5, 10)
    batch = X[some], y[some], None
    if how != "no row":
        edit(store, ("UPDATE queue SET content = ?", packed([batch])))
    edit(
        store,
        ("UPDATE rows SET request = 0",),
        *(
            ("UPDATE rows SET request = 2 WHERE digest = ? AND id = ?", digest, other)
            for digest in hasher(batch).digests
        ),
    )
    assert failed(store, "queue")
    if how == "and an entry":
        store.new_key()
        content = packed([batch])
        records = [Record(digest, other, 1) for digest in sorted(hasher(batch).digests)]
        queued = hasher.queued(content, (records, [1] * 5))
        put(store, restated(store.receipt(2), queued=queued))
    if how == "gone":
        edit(store, ("DELETE FROM queue",))
    refused = "not the one that came|2 was changed|rows wait"
    for answer in (lambda: store.flush(force=True), lambda: store.cancel(2)):
        with pytest.raises(ValueError, match=refused):
            answer()


@pytest.mark.parametrize("place", [2_000_000_000, -1])
@pytest.mark.parametrize("number", [0, 3, 5])
def test_an_entry_in_another_place(history, rows, number, place):
    """The next entry would be written before the last one, and never be seen."""
    edit(history, (f"UPDATE entries SET sequence = {place} WHERE sequence = {number}",))
    assert failed(history, "chain")
    with pytest.raises(StoreError, match=r"entry|entries"):
        history.learn(*rows)


def test_a_trigger_with_the_name_of_a_table(history, rows):
    with closing(sqlite3.connect(history.path / "ledger.sqlite", isolation_level=None)) as sql:
        ours = sql.execute("SELECT * FROM sqlite_master ORDER BY rowid").fetchall()
        sql.execute(
            "CREATE TRIGGER queue BEFORE DELETE ON rows BEGIN "
            "INSERT INTO sums VALUES (hex(OLD.digest)); END"
        )
        keep = sql.execute("SELECT * FROM sqlite_master WHERE sql LIKE '%hex(%'").fetchone()
        sql.execute("PRAGMA writable_schema = ON")
        sql.execute("DELETE FROM sqlite_master")
        for row in ours:  # before the table of that name
            also = [keep] if row[:2] == ("table", "queue") else []
            sql.executemany("INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", [*also, row])
    assert failed(history)
    with pytest.raises(StoreError, match="Added, changed or missing: 'queue'"):
        history.forget(rows[0][:1], rows[1][:1])


def test_another_model_in_place_of_the_right_one(history, rows):
    (path,) = (history.path / "generations").glob("*.traceless")
    LSSVC().fit(*rows).save(path)
    with pytest.raises(StoreError, match="not the file that the ledger names"):
        history.model()
    assert failed(history, "model")
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StoreError, match="damaged"):
        history.model()
    assert failed(history, "model")


def test_a_name_of_a_generation_never_leaves_the_folder(history, tmp_path):
    LSSVC().save(tmp_path / "outside.traceless")
    *entries, last = history.history()
    for name in ("../../outside.traceless", "/etc/passwd", "", "1-0123456789abcdef.traceless/.."):
        forged = restated(last, key_of(history), generation=name)
        relogged(history, [*entries, forged], key_of(history))
        with pytest.raises(StoreError, match="not the name of a generation"):
            history.model()
        assert failed(history, "model")
        assert (tmp_path / "outside.traceless").exists()


def test_another_secret_and_files_that_should_be_gone(history):
    (history.path / "secret").write_bytes(b"x" * 32)
    assert failed(history, "secret", "queue")
    (history.path / "generations" / "1-0123456789abcdef.traceless").write_bytes(b"old")
    assert failed(history, "files")


def test_a_ledger_with_damaged_pages(history):
    path = history.path / "ledger.sqlite"
    data = bytearray(path.read_bytes())
    data[4096 * 2 :] = b"\xff" * (len(data) - 4096 * 2)
    path.write_bytes(bytes(data))
    assert failed(history)
    with pytest.raises(StoreError, match="damaged"):
        history.history()


def test_a_slice_whose_digests_are_not_all_there(tmp_path, rows):
    X, y = rows
    mine = Store.new(tmp_path / "mine", LSSVC())
    other = Store.new(tmp_path / "other", LSSVC(), secret=(mine.path / "secret").read_bytes())
    other.learn(X, y)
    edit(other, ("DELETE FROM rows WHERE digest = (SELECT max(digest) FROM rows)",))
    with pytest.raises(StoreError, match=r"no digests of 1 rows.*Nothing was changed"):
        mine.merge(other)
    assert mine.verify().ok


def test_the_model_in_memory_is_taken_by_whoever_holds_the_lock(history, rows, monkeypatch):
    """Two threads that share a store must not change one model."""
    history.learn(*rows)
    seen = []

    @contextmanager
    def lock(*_):
        seen.append(history._cache is not None)
        yield

    monkeypatch.setattr(module, "write_lock", lock)
    history.learn(*rows, dry_run=True)
    assert seen == [True]
    assert history._cache is None  # the model in it was changed


def test_a_copy_without_a_log_gets_one(history, rows):
    """A change in SQLite's other mode would leave a journal, with rows in it, if it is killed."""
    with closing(sqlite3.connect(history.path / "ledger.sqlite")) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    assert history.verify().ok
    history.learn(*rows)
    assert ledger_rows(history, "PRAGMA journal_mode") == [("wal",)]
    assert history.verify().ok


def test_a_row_that_is_held_a_million_million_times_takes_no_memory(store, rows):
    """Counts are of whoever wrote the folder: nothing is made so often."""
    X, y = rows
    store.forget(X[:3], y[:3], batch=True)
    edit(store, ("UPDATE rows SET count = 1 << 40",))
    assert failed(store, "rows", "queue")
    assert store.forget(X[5:6], y[5:6]).removed == 1
    with pytest.raises(StoreError, match="not the one that came"):
        store.flush(force=True)
