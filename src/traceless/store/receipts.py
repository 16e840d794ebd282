"""Receipts: entries of the ledger, and what was done for one person, to be checked elsewhere.

Both are signed statements with a proof that the entry is in the log of a head. A receipt is JSON,
or a page to print: one file of HTML, with nothing to be loaded from elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from traceless.exceptions import StoreError
from traceless.files.container import parsed_json
from traceless.store.checkpoint import Head, proven_by
from traceless.store.entries import Entry, hash_of
from traceless.store.envelope import envelope, opened, signed_bytes, statement
from traceless.store.keys import is_signed

if TYPE_CHECKING:
    from traceless.store.keys import SigningKey

_FORMAT = "traceless receipt 1"
_PERSONAL, _PREDICATE = "traceless personal receipt 1", "urn:traceless:person:1"
_FACTS = {"store": str, "created": str, "task": str, "secret": str, "model": dict, "about": dict}
_PERSON: dict[str, Any] = {
    **dict.fromkeys(("id", "kind", "time", "signer"), str),
    **dict.fromkeys(("sequence", "rows", "held", "waiting"), int),
    "suppressed": (str, type(None)),
}


@dataclass(frozen=True)
class PersonalReceipt:
    """What was done with the rows of one id, and with nobody else's.

    It is a statement of its own, of the type `urn:traceless:person:1`, signed beside the entry of
    the change with the same key. Its subject is the entry, by the hash that is a leaf of the log,
    and the proof that comes with it is that of the entry: so whoever holds it sees no counts of
    others, and can still tell whether the change is in the log of a head. The store does not keep
    it.

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
    def of(cls, receipt: Receipt, key: SigningKey, **facts: Any) -> Self:
        """The receipt beside that of an entry."""
        facts |= {name: getattr(receipt, name) for name in ("kind", "time", "sequence", "signer")}
        payload = json.dumps(statement(_PREDICATE, {"entry": receipt.hash}, facts)).encode()
        return cls(payload, key.signature(signed_bytes(payload)), receipt.proof)

    @cached_property
    def facts(self) -> dict[str, Any]:
        """All that is said; raises `StoreError` if it is no such statement."""
        try:
            given = parsed_json(self.payload.decode())
            leaf, facts = given["subject"][0]["digest"]["sha256"], given["predicate"]
            known = {name: isinstance(facts[name], of) for name, of in _PERSON.items()}
            known["no more"] = {*facts} == {*_PERSON}
            if given != statement(_PREDICATE, {"entry": leaf}, facts) or not all(known.values()):
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
        try:
            signed = is_signed(signed_bytes(self.payload), self.signer, self.signature)
            return signed and self.head().is_signed(self.signer)
        except (StoreError, ValueError):
            return False

    def to_json(self) -> str:
        """The receipt as one line of JSON."""
        sealed = envelope(self.payload, self.signature, self.signer)
        return json.dumps({"format": _PERSONAL, "envelope": sealed, "proof": self.proof})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read the text of `to_json`; raises `StoreError` if it is none."""
        payload, signature, signer, proof = _read(text, _PERSONAL, "proof")
        found = cls(payload, signature, proof)
        _check_signer(found.signer, signer)
        return found


@dataclass(frozen=True, kw_only=True)
class Receipt(Entry):
    """The proof of one change, for the person who asked for it.

    Its fields are those of the `Entry`: counts, the digests of the model before and after, and
    hashes. None of them names a row.

    Attributes
    ----------
    document : str
        The description of the store, of which `origin` is the hash; `store` is what it says: the
        ``model``, what it is ``about``, when it was ``created``.
    proof : str
        That the entry is in the log of the store, with a head of it (`checkpoint`).
    people : tuple of PersonalReceipt
        One for each id that was given, if that was asked for.
    replayed : bool
        Whether the request had been answered before: this is the first answer, and nothing was
        changed again.
    dry_run : bool
        Whether the change was only tried: nothing was changed, and the receipt is not signed.
    tried : LSSVC, LSSVR, PathSVC or None
        After a dry run: the model as it would be.
    log_emptied : bool
        Whether nothing of what was replaced is left in the log of the ledger. A process that was
        reading can keep it for a while; the next change, or opening, empties it.

    Examples
    --------
    >>> import tempfile
    >>> from traceless import LSSVC, Store
    >>> from traceless.store import Receipt, verify_receipt
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store.new(f"{folder}/store", LSSVC())
    ...     text = store.learn([[0.0], [1.0]], ["no", "yes"]).to_json()
    >>> receipt = Receipt.from_json(text)
    >>> receipt.kind, receipt.rows, receipt.check()
    ('learn', 2, True)
    >>> verify_receipt(receipt, [[1.0], [0.0]], ["yes", "no"]).ok  # no store is needed
    True
    """

    document: str
    proof: str = field(default="", compare=False, repr=False)
    people: tuple[PersonalReceipt, ...] = field(default=(), compare=False, repr=False)
    replayed: bool = field(default=False, compare=False)
    dry_run: bool = field(default=False, compare=False)
    tried: Any = field(default=None, compare=False, repr=False)
    log_emptied: bool = field(default=True, compare=False)

    @classmethod
    def of(cls, entry: Entry, document: str, proof: str, replayed: bool = False) -> Self:
        """The receipt of an entry."""
        said = {f.name: getattr(entry, f.name) for f in fields(Entry)}
        return cls(**said, document=document, proof=proof, replayed=replayed)

    @cached_property
    def store(self) -> dict[str, Any]:
        """The description of the store."""
        return _parsed(self.document)

    def check(self) -> bool:
        """Whether all of it is signed with one key: nothing was changed after it was written."""
        try:
            head = self.head()
        except StoreError:
            return False
        same = self.origin == hash_of(self.document.encode())
        same = same and Entry.from_payload(self.payload).facts() == self.facts()
        logged = head.origin == f"traceless/{self.store.get('store')}"
        return same and logged and self.is_intact() and head.is_signed(self.signer)

    def head(self) -> Head:
        """The head of the log that the entry is in; raises `StoreError` if that is not proven."""
        return proven_by(self.proof, self.sequence, bytes.fromhex(self.hash))

    def to_json(self) -> str:
        """The receipt as JSON, to be kept or sent."""
        said = {"format": _FORMAT, "envelope": self.envelope(), "proof": self.proof}
        return json.dumps(said | {"store": self.document}, indent=2, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read the text of `to_json`.

        Raises
        ------
        StoreError
            If the text is no receipt. `check` says whether it was changed.
        """
        payload, signature, signer, proof, document = _read(text, _FORMAT, "proof", "store")
        entry = Entry.from_payload(payload, signature)
        _check_signer(entry.signer, signer)
        return cls.of(entry, document, proof)

    def to_html(self, language: str = "en") -> str:
        """The receipt as an HTML page to print, which loads nothing from elsewhere.

        Parameters
        ----------
        language : {"en", "de"}, default="en"
        """
        from traceless.pages.receipt import page

        return page(self, language)


def described(document: str) -> dict[str, Any]:
    """The facts of the description of a store; raises `StoreError` if they are none."""
    facts = _parsed(document)
    known = {name: type(facts.get(name)) for name in _FACTS} == _FACTS
    if not known or type(facts["model"].get("kind")) is not str:
        raise StoreError("The ledger is damaged: it has no description of the store.")
    return facts


def _parsed(document: str) -> dict[str, Any]:
    """What a description says; nothing if it is no JSON object."""
    found: Any = None
    with suppress(ValueError, TypeError, RecursionError):
        found = parsed_json(document)
    return found if isinstance(found, dict) else {}


def _read(text: str, form: str, *names: str) -> tuple[Any, ...]:
    """Payload, signature, named key, and these texts of a receipt of this format in JSON."""
    said: Any = None
    with suppress(ValueError, TypeError, RecursionError):
        said = parsed_json(text)
    known = isinstance(said, Mapping) and {*said} == {"format", "envelope", *names}
    texts = [said[name] for name in names] if known else []
    if not known or said["format"] != form or not {*map(type, texts)} == {str}:
        raise StoreError(f"This is not a receipt: a JSON object of format '{form}' is.")
    return (*opened(said["envelope"]), *texts)


def _check_signer(signer: str, named: str) -> None:
    if signer != named:
        raise StoreError("This is not a receipt: its envelope names another key.")
