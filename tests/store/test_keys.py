"""The key of a store: where it may be, who signs what, and the hand-over to another."""

import os
import shutil
import stat

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from traceless import LSSVC
from traceless.exceptions import StoreError, StoreWarning
from traceless.store import Store, entries, verify_receipt
from traceless.store import keys as module
from traceless.store.entries import Entry
from traceless.store.keys import SigningKey, is_signed
from traceless.store.ledger import Ledger
from traceless.store.opening import open_ledger


@pytest.fixture
def elsewhere(tmp_path):
    """The file of a key outside of any store."""
    path = tmp_path / "elsewhere.pem"
    path.write_bytes(SigningKey.new().pem())
    path.chmod(0o600)
    return path


def test_a_signature_is_one_of_this_message_by_this_key():
    ours, theirs = SigningKey.new(), SigningKey.new()
    signature = ours.signature(b"this")
    assert is_signed(b"this", ours.public, signature)
    assert not is_signed(b"that", ours.public, signature)
    assert not is_signed(b"this", theirs.public, signature)
    for wrong in ("", "zz", signature[:-4], signature + "AAAA", f" {signature}"):
        assert not is_signed(b"this", ours.public, wrong)
    for wrong in ("", "zz", "00", ours.public.upper()):
        assert not is_signed(b"this", wrong, signature)


def test_a_new_store_has_a_key_for_its_owner_only(store):
    mode = (store.path / "key").stat().st_mode
    assert stat.S_IMODE(mode) == 0o600
    key = SigningKey.read(store.path / "key")
    assert store.public_key == key.public == store.receipt().store["key"]
    assert {entry.signer for entry in store.history()} == {key.public}
    assert all(entry.is_intact() for entry in store.history())


@pytest.mark.parametrize("how", ["argument", "variable"])
def test_a_key_may_lie_elsewhere(tmp_path, rows, elsewhere, how, monkeypatch):
    given = {"signing_key": elsewhere} if how == "argument" else {}
    if how == "variable":
        monkeypatch.setenv(module.VARIABLE, str(elsewhere))
    store = Store.new(tmp_path / "s", LSSVC(), **given)
    assert not (store.path / "key").exists()
    assert store.public_key == SigningKey.read(elsewhere).public
    store.learn(*rows)
    assert store.verify().ok
    monkeypatch.delenv(module.VARIABLE, raising=False)
    history = store.history()
    with pytest.raises(StoreError, match=r"its private half is not in .*key\. Say.*Nothing was"):
        Store(store.path).learn(*rows)
    assert Store(store.path).learn(*rows, dry_run=True).dry_run  # which needs none
    assert store.history() == history


@pytest.mark.parametrize("dry_run", [False, True])
def test_the_key_that_is_named_is_the_one_that_signs(
    store, rows, elsewhere, monkeypatch, tmp_path, dry_run
):
    """Neither the folder's own key nor that of the variable takes the place of a wrong one."""
    named, before = Store(store.path, signing_key=elsewhere), store.history()
    shutil.copy(store.path / "key", tmp_path / "right")
    for variable in (elsewhere, tmp_path / "right"):
        monkeypatch.setenv(module.VARIABLE, str(variable))
        with pytest.raises(StoreError, match=r"elsewhere\.pem.*another key"):
            named.learn(*rows, dry_run=dry_run)
        with pytest.raises(StoreError, match="another key"):
            named.new_key(dry_run=dry_run)
        with pytest.raises(StoreError, match="another key"):
            named.private_key()
        with pytest.raises(StoreError, match="No such file"):  # a shell's variable that is not set
            Store(store.path, signing_key="").learn(*rows, dry_run=dry_run)
    with pytest.raises(StoreError, match="No such file"):
        Store.new(tmp_path / "new", LSSVC(), signing_key="")
    assert store.history() == before


def test_what_is_no_key_is_refused(store, rows, tmp_path):
    other = tmp_path / "other.pem"
    other.touch(0o600)
    plain, hidden = serialization.NoEncryption(), serialization.BestAvailableEncryption(b"x")
    for content, said in (
        (b"something else", "is not a signing key"),
        (_pem(rsa.generate_private_key(65537, 2048), plain), "of another kind than Ed25519"),
        (_pem(Ed25519PrivateKey.generate(), hidden), "is not a signing key"),
    ):
        other.write_bytes(content)
        with pytest.raises(StoreError, match=rf"{said}.*openssl genpkey.*Nothing was changed"):
            Store(store.path, signing_key=other).learn(*rows)
        with pytest.raises(StoreError, match=said):
            Store.new(tmp_path / "new", LSSVC(), signing_key=other)
    os.mkfifo(tmp_path / "pipe")  # nobody writes into it: who opened it would wait
    with pytest.raises(StoreError, match=r"pipe.*a named pipe, and no regular.*Nothing was"):
        Store(store.path, signing_key=tmp_path / "pipe").learn(*rows)
    with pytest.raises(StoreError, match=r"No such file.*Nothing was changed"):
        Store.new(tmp_path / "new", LSSVC(), signing_key=tmp_path / "missing")
    assert not (tmp_path / "new").exists()


def _pem(key, encryption):
    form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return key.private_bytes(*form, encryption)


class TestHandOver:
    def test_the_old_key_signs_for_the_new_one(self, store, rows, tmp_path):
        shutil.copy(store.path / "key", tmp_path / "old")
        old = store.public_key
        receipt = store.new_key()
        assert (receipt.kind, receipt.signer, receipt.subject) == ("key", old, store.public_key)
        assert store.public_key != old
        assert receipt.digest_after == receipt.digest_before
        assert not (store.path / "key.new").exists()
        assert store.learn(*rows).signer == store.public_key
        assert store.verify().ok
        shutil.copy(tmp_path / "old", store.path / "key")
        with pytest.raises(StoreError, match="private half is not in"):
            store.learn(*rows)

    def test_to_a_key_elsewhere(self, store, rows, elsewhere):
        store.new_key(elsewhere)
        assert not (store.path / "key").exists()
        assert store.learn(*rows).check()
        with pytest.raises(StoreError, match="has already"):
            store.new_key(elsewhere)
        with pytest.raises(StoreError, match="private half"):
            Store(store.path).learn(*rows)
        store.new_key()  # and back into the folder
        assert Store(store.path).learn(*rows).check()
        assert store.verify().ok

    def test_that_is_cut_short(self, store, rows, monkeypatch):
        before = store.history()

        def cut(self):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "commit", cut)
            with pytest.raises(KeyboardInterrupt):
                store.new_key()
        assert store.history() == before
        assert store.learn(*rows).check()
        assert not (store.path / "key.new").exists()  # of a hand-over that was not made
        with monkeypatch.context() as patch:
            patch.setattr(module, "settle", lambda *_: None)
            store.new_key()
        assert (store.path / "key.new").exists()
        assert Store(store.path).learn(*rows).check()
        assert not (store.path / "key.new").exists()
        assert store.verify().ok

    @pytest.mark.parametrize("as_whom", ["the store", "himself"])
    def test_that_somebody_else_wrote(self, store, rows, as_whom):
        """Without the old key nobody can hand over to a new one."""
        mine = SigningKey.new()
        with open_ledger(store.path / "ledger.sqlite", "BEGIN IMMEDIATE") as ledger:
            last = ledger.last()
            signer = last.signer if as_whom == "the store" else mine.public
            ledger.append(Entry.after(last, last.state, mine, kind="key", subject=mine.public))
            ledger.append(Entry.after(ledger.last(), last.state, mine, kind="queue", signer=signer))
            ledger.seal([mine])
            ledger.commit()
        (store.path / "key").write_bytes(mine.pem())
        for use in (lambda: store.learn(*rows), store.model, store.head):
            with pytest.raises(StoreError, match=r"not signed with the key|after it was signed"):
                use()
        chain = {check.name: check for check in store.verify().checks}["chain"]
        assert not chain.ok


def test_a_retired_key_signs_no_receipt_of_this_log(store, rows, tmp_path):
    """He makes entry and head with the key that he copied; the log of the owner has neither."""
    stolen = SigningKey.read(store.path / "key")
    copy = Store(shutil.copytree(store.path, tmp_path / "copy"))
    store.new_key()
    store.learn(rows[0][200:], rows[1][200:])
    forged = copy.forget(rows[0][:90], rows[1][:90])
    assert (forged.signer, forged.check()) == (stolen.public, True)  # by itself it is one
    assert verify_receipt(forged, public_key=stolen.public).ok
    kept = {check.name: check.ok for check in store.verify(receipt=forged).checks}
    assert not kept["kept receipt"]
    for proof in (None, store.consistency(store.receipt(1).proof.split("\n\n", 1)[1]), ""):
        assert not verify_receipt(forged, head=store.head(), consistency=proof).ok
    for head in (forged.proof.split("\n\n", 1)[1], copy.head()):
        assert not store.verify(head=head).ok


def test_receipts_of_each_key_are_checked_alone(store, rows):
    """Their heads are of the time of their key."""
    first = store.public_key
    store.new_key()
    store.learn(rows[0][200:], rows[1][200:])
    store.new_key()
    store.learn(rows[0][:1], rows[1][:1])
    receipts = [store.receipt(n) for n in range(6)]
    assert [receipt.check() for receipt in receipts] == [True] * 6
    assert [receipt.head().size for receipt in receipts] == [1, 3, 3, 5, 5, 6]
    assert [receipt.signer == first for receipt in receipts] == [True] * 3 + [False] * 3
    for receipt in receipts:
        proof = store.consistency(str(receipt.head()))
        assert verify_receipt(receipt, head=store.head(), consistency=proof).ok
    assert store.verify(public_key=first).ok


def test_the_clock_may_jump_once_and_is_used_again(store, rows, monkeypatch):
    """A day in 2090: it dates one entry, and not all that follow."""
    monkeypatch.setattr(entries, "now", lambda: "2090-01-01T00:00:00Z")
    assert store.learn(rows[0][:1], rows[1][:1]).time.startswith("2090")
    monkeypatch.undo()
    with pytest.warns(StoreWarning, match=r"behind the time of the latest entry \(2, 2090"):
        assert store.learn(rows[0][:1], rows[1][:1]).time < "2090"
    assert store.learn(rows[0][:1], rows[1][:1]).time < "2090"
    found = store.verify()
    assert found.ok
    assert "the clock ran backwards before entry 3, 4" in str(found)


def test_text_that_is_none_is_refused(tmp_path, store, rows):
    """A lone byte of a command line comes as half a character, which no receipt could hold."""
    for refused in (
        lambda: Store.new(tmp_path / "n", LSSVC(), about={"organisation": "M\udcfcller"}),
        lambda: store.learn(*rows, key="\udcfc"),
        lambda: store.merge(LSSVC(fingerprint=True).fit(*rows), name="\udcfc"),
    ):
        with pytest.raises(ValueError, match=r"not UTF-8.*Nothing was changed"):
            refused()
