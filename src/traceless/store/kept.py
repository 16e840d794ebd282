"""Evidence kept outside of a store, which its history must continue: receipt, head, public key.

The owner can sign any history with the key of the store, also a shorter or another one. Whoever has
kept one of these can tell: the Merkle tree of the store must begin with that of the head.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from traceless.store.chain import Chain, require
from traceless.store.checkpoint import Head, hashes_of, witness_of
from traceless.store.keys import public_from_pem
from traceless.store.merkle import is_consistent
from traceless.store.receipts import PersonalReceipt, Receipt
from traceless.store.regular import read_outside

if TYPE_CHECKING:
    from traceless.store.ledger import Ledger

_DIGITS = frozenset("0123456789abcdef")


class Kept(NamedTuple):
    """The evidence that is given; None for what is not."""

    receipt: Receipt | None = None
    head: str | None = None
    public_key: str | None = None
    witnesses: Sequence[str] | None = None

    def check_form(self) -> None:
        """Raise `ValueError` if the head or a key is malformed."""
        if self.head is not None:
            Head.parsed(self.head)
        for key in self.witnesses or ():
            witness_of(key)
        if self.witnesses and self.head is None:
            raise ValueError("Witnesses have seen a head: give it too, with their signatures.")
        if self.public_key is not None:
            public_key_of(self.public_key)

    def check_receipt(self, ledger: Ledger, chain: Chain) -> str:
        """Check that the history of the store continues that of the receipt."""
        receipt = self.receipt
        assert receipt is not None
        require(receipt.check(), "the receipt was changed after it was written, or not signed")
        same = receipt.head().origin == ledger.log  # a personal receipt has no description
        require(same, "the receipt is that of another store")
        return _continues(chain, receipt.head(), "the receipt")

    def check_head(self, ledger: Ledger, chain: Chain) -> str:
        """Check that the history of the store continues that of the head."""
        head = Head.parsed(self.head or "")
        require(head.origin == ledger.log, "the head is that of another store")
        signed = any(head.is_signed(key) for key in chain.signers)
        require(signed, "the head was not signed with a key of the store")
        return _continues(chain, head, "the head")

    def check_witnesses(self, ledger: Ledger, chain: Chain) -> str:  # noqa: ARG002
        """Check that the head has the signatures of these witnesses."""
        return check_witnessed(self.head or "", self.witnesses or ())

    def check_public_key(self, ledger: Ledger, chain: Chain) -> str:  # noqa: ARG002
        """Check that the key has signed entries of this chain.

        To be named as the next key is not enough: anybody can name the key of somebody else.
        """
        key = public_key_of(self.public_key)
        signed = ", ".join(f"{one[:16]}…" for one in chain.signers) or "none"
        said = f"no entry is signed with the key {key[:16]}…; the keys of this store: {signed}"
        require(key in chain.signers, said)
        first, last = chain.signers[key], chain.last
        assert last is not None
        until = "" if last.next_signer == key else ", which has handed over since"
        return f"entry {first} and others are signed with the key {key[:16]}…{until}"


def _continues(chain: Chain, head: Head, what: str) -> str:
    last = chain.last
    assert last is not None
    later = last.sequence + 1 - head.size
    longer = f"{what} is of {head.size} entries, and the store has {head.size + later}: it was set"
    require(later >= 0, f"{longer} back")
    same = chain.tree.root(head.size) == head.root
    require(same, f"its entries are not those of {what}: the history was rewritten")
    return f"the first {head.size} entries are those of {what}, and {later} later entries continue"


def check_witnessed(text: str, witnesses: Sequence[str]) -> str:
    """Check that witnesses have signed a head; says when they saw it."""
    head, seen = Head.parsed(text), list[str]()
    for key in witnesses:
        (name, _), when = witness_of(key), head.cosigned(key)
        require(when is not None, f"the witness {name} has not signed the head")
        seen.append(f"{name} saw the head at {when}")
    return "; ".join(seen)


def check_continued(receipt: Receipt | PersonalReceipt, text: str, proof: str | None) -> str:
    """Check that the entry of a receipt is in the log of a head."""
    ours, head = receipt.head(), Head.parsed(text)
    require(head.origin == ours.origin, "the head is that of another store")
    signed = head.is_signed(receipt.signer)
    old, new = sorted((ours, head), key=lambda one: one.size)
    hashes = hashes_of(proof or "")
    same = is_consistent(old.size, new.size, hashes, old.root, new.root)
    said = f"that a log of {new.size} entries continues one of {old.size}"
    require(same, f"nothing shows {said}: it was rewritten, or give the proof of consistency")
    require(head.size > receipt.sequence, "the head is older than the entry")
    by = "" if signed else ", and another key has signed it: compare that with the published one"
    return f"it is shown {said}{by}"


def public_key_of(given: Any) -> str:
    """A public key: 64 hexadecimal digits, or the path of a file with them or with PEM."""
    text = str(given).strip()
    if not _is_hex(text):
        path, text = text, _read(text)
        if text.startswith("-----BEGIN"):
            return public_from_pem(text, path)
        if not _is_hex(text):
            raise ValueError(f"{path} is not a public key of Ed25519: 64 digits, or PEM.")
    return text


def _read(path: str) -> str:
    try:
        return read_outside(path, 10_000).decode().strip()
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{path[:100]!r} is neither a public key of 64 hexadecimal digits nor a file with one "
            f"({error})."
        ) from None


def _is_hex(text: str, length: int = 64) -> bool:
    return len(text) == length and _DIGITS.issuperset(text)
