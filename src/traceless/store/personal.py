"""Receipts for a person: what was done with the rows of one id, and with nobody else's.

Each is a statement of its own, of the type `urn:traceless:person:1`, signed beside the entry of the
change with the same key. Its subject is the entry, by the hash that is a leaf of the log, and the
proof that comes with it is that of the entry: so whoever holds it sees no counts of others, and can
still tell whether the change is in the log of a head. The store does not keep it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from traceless.exceptions import StoreError
from traceless.files.container import parsed_json
from traceless.store.checkpoint import Head, proven_by
from traceless.store.entries import STATEMENT, Entry
from traceless.store.envelope import envelope, opened, signed_bytes

if TYPE_CHECKING:
    from traceless.store.keys import SigningKey

PREDICATE, _FORMAT = "urn:traceless:person:1", "traceless personal receipt 1"
_FACTS: dict[str, Any] = {
    "id": str,
    "kind": str,
    "time": str,
    "sequence": int,
    "rows": int,
    "held": int,
    "waiting": int,
    "suppressed": (str, type(None)),
    "signer": str,
}


@dataclass(frozen=True)
class PersonalReceipt:
    """What was done with the rows of one id.

    Attributes
    ----------
    payload : bytes
        The statement. `facts` says what is in it: `id`, `kind`, `time` and `sequence` of the
        change; `rows` of this id that it concerned; how many are `held` afterwards, and how many
        of them wait (`waiting`); until when the id is `suppressed`; and the key, `signer`.
    signature : str
    proof : str
        That the entry is in the log.
    """

    payload: bytes = field(repr=False)
    signature: str
    proof: str = field(repr=False)

    @classmethod
    def of(cls, entry: Entry, key: SigningKey, proof: str, **facts: Any) -> Self:
        """The receipt beside an entry."""
        said = {name: getattr(entry, name) for name in ("kind", "time", "sequence", "signer")}
        payload = json.dumps(_statement(entry.hash, said | facts)).encode()
        return cls(payload, key.signature(signed_bytes(payload)), proof)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """All that is said; raises `StoreError` if it is no such statement."""
        try:
            statement = parsed_json(self.payload.decode())
            leaf, facts = statement["subject"][0]["digest"]["sha256"], statement["predicate"]
            kinds = {name: isinstance(facts[name], of) for name, of in _FACTS.items()}
            if (
                statement != _statement(leaf, facts)
                or {*facts} != {*kinds}
                or not all(kinds.values())
            ):
                raise ValueError("there is more or less in it than there should be")
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            raise StoreError(f"Not a statement about a person: {error}.") from None
        return {**facts, "leaf": leaf}

    @property
    def signer(self) -> str:
        """The public key of the signature."""
        return str(self.facts["signer"])

    @property
    def sequence(self) -> int:
        """Number of the entry."""
        return int(self.facts["sequence"])

    def head(self) -> Head:
        """The head of the log that the entry is in; raises `StoreError` if that is not proven."""
        return proven_by(self.proof, self.sequence, bytes.fromhex(self.facts["leaf"]))

    def check(self) -> bool:
        """Whether statement and head are signed with one key, and nothing was changed."""
        from traceless.store.keys import is_signed

        try:
            signed = is_signed(signed_bytes(self.payload), self.signer, self.signature)
            return signed and self.head().is_signed(self.signer)
        except (StoreError, ValueError):
            return False

    def to_json(self) -> str:
        """The receipt as one line of JSON."""
        sealed = envelope(self.payload, self.signature, self.signer)
        return json.dumps({"format": _FORMAT, "envelope": sealed, "proof": self.proof})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read the text of `to_json`; raises `StoreError` if it is none."""
        try:
            said = parsed_json(text)
            if said["format"] != _FORMAT or len(said) != 3 or type(said["proof"]) is not str:
                raise ValueError
            sealed = said["envelope"]
        except (ValueError, TypeError, KeyError, RecursionError):
            raise StoreError(f"This is not a receipt of the format '{_FORMAT}'.") from None
        payload, signature, signer = opened(sealed)
        found = cls(payload, signature, said["proof"])
        if found.signer != signer:
            raise StoreError("This is not a receipt: its envelope names another key.")
        return found


def _statement(leaf: str, facts: Mapping[str, Any]) -> dict[str, Any]:
    subject = [{"name": "entry", "digest": {"sha256": leaf}}]
    kind = {"_type": STATEMENT, "subject": subject, "predicateType": PREDICATE}
    return {**kind, "predicate": dict(facts)}
