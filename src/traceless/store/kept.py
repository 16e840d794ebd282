"""Evidence kept outside of a store, which its history must continue: receipt, head, public key.

The owner can sign any history with the key of the store, also a shorter or another one. Whoever has
kept one of these can tell: if the entry that it names is unchanged, so are all entries before it.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from traceless.store.chain import Chain, require
from traceless.store.keys import public_from_pem
from traceless.store.receipts import Receipt

if TYPE_CHECKING:
    from traceless.store.entries import Entry
    from traceless.store.ledger import Ledger

_DIGITS = frozenset("0123456789abcdef")
_HEAD = re.compile(r"traceless [0-9]+ ([0-9a-f]{32}) ([0-9]{1,18}) ([0-9a-f]{64}) \S+")


def head_of(entry: Entry, store: str) -> str:
    """One line that stands for the history of the store of this name, up to an entry."""
    return f"traceless {entry.version} {store} {entry.sequence} {entry.hash} {entry.signature}"


def _parsed(line: str) -> re.Match[str]:
    """The name of the store, the number and the hash in a line that `head_of` made."""
    found = _HEAD.fullmatch(" ".join(line.split()))
    if found is None:
        raise ValueError(
            f"This is not the head of a store: {line[:100]!r}. It is one line of six words, "
            "as 'traceless head STORE' prints it."
        )
    return found


class Kept(NamedTuple):
    """The evidence that is given; None for what is not."""

    receipt: Receipt | None = None
    head: str | None = None
    public_key: str | None = None

    def check_form(self) -> None:
        """Raise `ValueError` if the head or the public key is malformed."""
        if self.head is not None:
            _parsed(self.head)
        if self.public_key is not None:
            public_key_of(self.public_key)

    def check_receipt(self, ledger: Ledger, chain: Chain) -> str:
        """Check that the history of the store continues that of the receipt."""
        receipt = self.receipt
        assert receipt is not None
        require(receipt.check(), "the receipt was changed after it was written, or not signed")
        require(receipt.store == ledger.origin, "the receipt is that of another store")
        return _continues(ledger, chain, receipt.sequence, receipt.hash, "the receipt")

    def check_head(self, ledger: Ledger, chain: Chain) -> str:
        """Check that the history of the store continues that of the head."""
        found = _parsed(self.head or "")
        store, number, digest = found[1], int(found[2]), found[3]
        require(store == ledger.origin["store"], "the head is that of another store")
        said = _continues(ledger, chain, number, digest, "the head")
        same = found[0] == head_of(ledger.entry(number), store)
        require(same, "the head was not signed with the key of the store")
        return said

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


def _continues(ledger: Ledger, chain: Chain, number: int, digest: str, what: str) -> str:
    last = chain.last
    assert last is not None
    longer = f"{what} is of entry {number}, and the store ends at {last.sequence}: it was set back"
    require(number <= last.sequence, longer)
    same = ledger.entry(number).hash == digest
    require(same, f"entry {number} is not that of {what}: the history was rewritten")
    later = last.sequence - number
    return f"entry {number} is that of {what}, and {later} later entries continue it"


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
        with Path(path).open(encoding="utf-8") as file:
            return file.read(10_000).strip()
    except (OSError, ValueError) as error:
        raise ValueError(
            f"{path[:100]!r} is neither a public key of 64 hexadecimal digits nor a file with one "
            f"({error})."
        ) from None


def _is_hex(text: str, length: int = 64) -> bool:
    return len(text) == length and _DIGITS.issuperset(text)
