"""What was kept elsewhere: receipts, heads and public keys against stores that were set back."""

from __future__ import annotations

import shutil
from contextlib import suppress

import pytest
from forging import restated

from traceless import LSSVC, Store
from traceless.exceptions import StoreError
from traceless.store import verify_receipt
from traceless.store.kept import public_key_of
from traceless.store.keys import SigningKey, public_pem


def failed(found):
    return [check.name for check in found.checks if not check.ok]


def test_a_store_continues_what_was_kept_of_it(store, rows):
    X, y = rows
    receipt, head, key = store.receipt(), store.head(), store.public_key
    store.learn(X[200:], y[200:])
    store.new_key()
    store.forget(X[:90], y[:90])
    found = store.verify(X[90:], y[90:], receipt=receipt, head=head, public_key=key)
    assert found.ok, found
    witnessed = (
        f"{head}\N{EM DASH} witness.example/w AAAAAAAA\n"  # who signs below says nothing else
    )
    assert store.verify(head=witnessed).ok
    assert "3 later entries" in str(found)
    assert "handed over" in str(found)
    assert store.verify(public_key=store.public_key).ok


def test_a_store_that_was_set_back_is_found_out(store, rows, tmp_path):
    X, y = rows
    shutil.copytree(store.path, tmp_path / "old")
    forgotten = store.forget(X[:90], y[:90])
    old = Store(tmp_path / "old")
    assert old.verify().ok  # by itself it cannot be told
    assert failed(old.verify(receipt=forgotten)) == ["kept receipt"]
    assert failed(old.verify(head=store.head())) == ["kept head"]
    old.forget(X[90:180], y[90:180])  # another history of the same length, signed with the same key
    found = old.verify(receipt=forgotten, head=store.head(), public_key=store.public_key)
    assert failed(found) == ["kept receipt", "kept head"]
    assert "rewritten" in str(found)


def test_a_store_of_another_key_is_found_out(store, rows, tmp_path):
    other = Store.new(tmp_path / "other", LSSVC())
    other.learn(*rows)
    found = other.verify(receipt=store.receipt(), head=store.head(), public_key=store.public_key)
    assert failed(found) == ["kept receipt", "kept head", "kept public key"]
    assert "another store" in str(found)


def test_to_hand_over_to_a_key_is_not_to_have_it(store, tmp_path):
    """A forger can name any public key as his next one; he cannot sign with it."""
    theirs = store.public_key
    forged = Store.new(tmp_path / "forged", LSSVC())
    with forged._writing(None) as writer:
        writer.note("key", subject=theirs)
        writer.commit(writer.signing_key)
    with pytest.raises(StoreError, match="latest entry was changed"):
        forged.public_key  # noqa: B018  the head lacks its signature
    assert "kept public key" in failed(forged.verify(public_key=theirs))


def test_a_forged_receipt_or_head_is_found_out(store):
    forged = restated(store.receipt(), rows=201)
    assert failed(store.verify(receipt=forged)) == ["kept receipt"]
    text, _, signature = store.head().rpartition(" ")
    for swapped in (signature[::-1].strip() + "\n", "\n", ""):
        with suppress(ValueError):
            assert failed(store.verify(head=f"{text} {swapped}")) == ["kept head"]


@pytest.mark.parametrize(
    "line", ["", "traceless", "a\n1\nb\n\n", "a\n1\nAAAA\n\n\u2014 a AAAA\n", "a\n\n\n\n\n\n"]
)
def test_what_is_no_head_is_said(store, line):
    with pytest.raises(ValueError, match="not the head of a store"):
        store.verify(head=line)


def test_a_receipt_is_checked_without_rows_and_with_the_key(store, rows):
    receipt, key = store.receipt(), store.public_key
    assert [check.name for check in verify_receipt(receipt).checks] == ["receipt"]
    assert verify_receipt(receipt, rows[0][:200], rows[1][:200], public_key=key).ok
    other = SigningKey.new().public
    assert failed(verify_receipt(receipt, public_key=other)) == ["signer"]


def test_public_keys_come_as_digits_or_files(store, tmp_path):
    key = store.public_key
    for name, text in (("pem", public_pem(key)), ("digits", f"{key}\n")):
        (tmp_path / name).write_text(text)
        assert public_key_of(tmp_path / name) == key
    (tmp_path / "private").write_text(store.private_key())
    for bad in ("abc", key[:-1], tmp_path / "none", tmp_path / "private", tmp_path):
        with pytest.raises(ValueError, match=r"public key|not a public"):
            public_key_of(bad)
