"""Whatever is changed in a store behind its back is found by `verify`."""

import shutil
import sqlite3
from contextlib import closing

import numpy as np
import pytest

from traceless import LSSVC
from traceless.exceptions import RevealingWarning, StoreError
from traceless.files.container import canonical_json
from traceless.store import Store
from traceless.store.entries import hash_of
from traceless.store.keys import SigningKey
from traceless.store.opening import open_ledger
from traceless.store.verification import Auditor

CHANGED = {int: lambda v: v + 1, bool: lambda v: not v, type(None): lambda _: "0" * 32}


@pytest.fixture
def history(tmp_path, store, rows):
    """A store with a history, and the rows that it holds."""
    X, y = rows
    store.learn(X[200:], y[200:], key="a")
    store.forget(X[:100], y[:100], key="b")
    store.forget(X[100:105], y[100:105], batch=True, key="c")
    with pytest.warns(RevealingWarning):
        store.relabel(X[105:107], y[105:107], y[107:109])
    assert store.verify(X[100:], np.r_[y[100:105], y[107:109], y[107:]]).ok
    return store


def edit(store, *statements):
    """Change the ledger as somebody with a file in hand can; its guards are put up again."""
    with closing(sqlite3.connect(store.path / "ledger.sqlite")) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        guards = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'")
        guards = guards.fetchall()
        for name, _ in guards:
            connection.execute(f"DROP TRIGGER {name}")
        for statement, *values in statements:
            connection.execute(statement, values)
        for _, guard in guards:
            connection.execute(guard)
        connection.commit()


def replace_entry(store, sequence, facts, said=None, signature=""):
    """Put other facts into an entry, with a hash that is right or that of the old ones.

    It is signed with the key of the store, as by somebody who has it, unless a signature is given.
    """
    said = hash_of(facts) if said is None else said
    signature = signature or SigningKey.read(store.path / "key").sign(said)
    edit(
        store,
        (
            "UPDATE entries SET body = ?, hash = ?, signature = ? WHERE sequence = ?",
            *(canonical_json(facts), said, signature, sequence),
        ),
    )


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


def test_entries_cannot_be_changed_by_mistake(store):
    with closing(sqlite3.connect(store.path / "ledger.sqlite")) as connection:
        for statement in (
            "UPDATE entries SET hash = ''",
            "DELETE FROM entries",
            "DELETE FROM origin",
        ):
            with pytest.raises(sqlite3.IntegrityError, match="kept as they are"):
                connection.execute(statement)


def test_every_field_of_every_entry_is_guarded(history):
    for entry in history.history():
        facts = entry.facts()
        for field, value in facts.items():
            replace_entry(history, entry.sequence, {**facts, field: other(value)}, entry.hash)
            with open_ledger(history.path / "ledger.sqlite") as ledger:
                checks = Auditor(None, ledger, None).ledger_checks()
                check = next(check for check in checks if check.name == "chain")
            assert not check.ok, (entry.sequence, field)
        replace_entry(history, entry.sequence, facts, "0" * 64)
        assert failed(history, "chain")
        replace_entry(history, entry.sequence, facts, entry.hash)
    assert history.verify().ok


def test_a_chain_that_is_forged_to_its_end_does_not_fit_the_rest(history):
    """All hashes made right again: then the counts, the root or the model tell."""
    last = history.history()[-1]
    fields = "digest_after root_after alive held unknown classes sha256 keys"
    for field in fields.split():
        facts = last.facts()
        replace_entry(history, last.sequence, {**facts, field: other(facts[field])})
        assert failed(history), field
    replace_entry(history, last.sequence, last.facts())
    assert history.verify().ok


def test_reordered_cut_and_missing_entries(history, tmp_path):
    last = history.history()[-1].sequence
    for name, statements in {
        "swapped": [
            ("UPDATE entries SET sequence = 99 WHERE sequence = 1",),
            ("UPDATE entries SET sequence = 1 WHERE sequence = 2",),
            ("UPDATE entries SET sequence = 2 WHERE sequence = 99",),
        ],
        "middle": [("DELETE FROM entries WHERE sequence = 2",)],
        "first": [("DELETE FROM entries WHERE sequence = 0",)],
        "last": [("DELETE FROM entries WHERE sequence = ?", last)],
        "garbage": [("UPDATE entries SET body = '{' WHERE sequence = 1",)],
        "all": [("DELETE FROM entries",)],
    }.items():
        copy = Store(shutil.copytree(history.path, tmp_path / name))
        edit(copy, *statements)
        assert failed(copy), name


@pytest.mark.parametrize(
    ("statement", "check"),
    [
        (
            "UPDATE alive SET count = count + 1 WHERE digest = (SELECT min(digest) FROM alive)",
            "rows",
        ),
        ("DELETE FROM alive WHERE digest = (SELECT min(digest) FROM alive)", "rows"),
        (
            "UPDATE alive SET digest = zeroblob(16) WHERE digest = (SELECT min(digest) FROM alive)",
            "rows",
        ),
        ("UPDATE alive SET queued = 0", "queue"),
        ("DELETE FROM queue", "queue"),
        ("UPDATE classes SET rows = rows + 1", "chain"),
        ("UPDATE requests SET sequence = 1 WHERE key = 'b'", "requests"),
        ("DELETE FROM requests WHERE key = 'a'", "requests"),
        ("DELETE FROM requests WHERE key = 'c'", "requests"),
    ],
)
def test_what_is_not_chained_is_compared_with_what_is(history, statement, check):
    edit(history, (statement,))
    assert failed(history, check)


def test_the_origin_is_part_of_the_chain(history):
    changed = {**history.receipt().store, "about": {"other": 1}}
    edit(history, ("UPDATE origin SET document = ?", canonical_json(changed)))
    assert failed(history, "chain")
    assert not history.receipt().check()


def test_another_model_in_place_of_the_right_one(history, rows):
    (path,) = (history.path / "generations").iterdir()
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
    last = history.history()[-1]
    for name in ("../../outside.traceless", "/etc/passwd", "", "1-0123456789abcdef.traceless/.."):
        replace_entry(history, last.sequence, {**last.facts(), "generation": name})
        with pytest.raises(StoreError, match="not the name of a generation"):
            history.model()
        assert failed(history, "model")
        assert (tmp_path / "outside.traceless").exists()


def test_another_secret_and_files_that_should_be_gone(history, monkeypatch):
    (history.path / "secret").write_bytes(b"x" * 32)
    assert failed(history, "secret", "queue")
    monkeypatch.setattr(Store, "_look", lambda self: None)
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
