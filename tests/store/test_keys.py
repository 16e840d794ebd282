"""The key of a store: where it may be, who signs what, and the hand-over to another."""

import os
import shutil
import stat
import subprocess

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from traceless import LSSVC
from traceless.exceptions import StoreError
from traceless.store import Store
from traceless.store import keys as module
from traceless.store.keys import SigningKey, is_signed
from traceless.store.ledger import Ledger
from traceless.store.opening import open_ledger


@pytest.fixture
def elsewhere(tmp_path):
    """The file of a key outside of any store."""
    path = tmp_path / "elsewhere.pem"
    path.write_bytes(SigningKey.new().pem())
    return path


def test_a_signature_is_one_of_this_hash_by_this_key():
    ours, theirs = SigningKey.new(), SigningKey.new()
    digest, other = "a1" * 32, "a2" * 32
    signature = ours.sign(digest)
    assert is_signed(digest, ours.public, signature)
    assert not is_signed(other, ours.public, signature)
    assert not is_signed(digest, theirs.public, signature)
    for wrong in ("", "zz", signature[:-2], signature + "00", "00" * 64):
        assert not is_signed(digest, ours.public, wrong)
    for wrong in ("", "zz", "00"):
        assert not is_signed(digest, wrong, signature)
        assert not is_signed(wrong, ours.public, signature)


def test_the_signature_can_be_checked_without_this_library(store, tmp_path):
    """As openssl does it: of a text and 32 bytes, with the public half of the file."""
    last = store.receipt()
    message, signature, public = tmp_path / "m", tmp_path / "s", tmp_path / "p"
    message.write_bytes(b"traceless entry 1\0" + bytes.fromhex(last.hash))
    signature.write_bytes(bytes.fromhex(last.signature))
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not here")
    make = [openssl, "pkey", "-in", store.path / "key", "-pubout", "-out", public]
    subprocess.run(make, check=True)
    check = [openssl, "pkeyutl", "-verify", "-pubin", "-inkey", public, "-rawin", "-in", message]
    done = subprocess.run([*check, "-sigfile", signature], capture_output=True, check=False)
    assert b"Verified Successfully" in done.stdout, done


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
    with pytest.raises(StoreError, match=r"pipe.*no regular file.*Nothing was changed"):
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
            kept = {name: getattr(last, name) for name in KEPT} | {
                "kind": "key",
                "added": 0,
                "removed": 0,
            }
            kept["signer"] = last.signer if as_whom == "the store" else mine.public
            ledger.append(type(last).after(last, last.state, mine, subject=mine.public, **kept))
            ledger.commit()
        (store.path / "key").write_bytes(mine.pem())
        if as_whom == "the store":
            with pytest.raises(StoreError, match="changed after it was signed"):
                store.learn(*rows)
        else:
            store.learn(*rows)  # a writer looks at the latest entry only, and trusts its folder
        chain = {check.name: check for check in store.verify().checks}["chain"]
        assert not chain.ok


KEPT = ("waiting", "unknown", "alive", "generation", "sha256", "origin")
