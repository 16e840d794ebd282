"""Entries of the ledger: one for each change, each with the hash of the entry before.

The hash of an entry is the SHA-256 of its other fields as canonical JSON (sorted keys, no
spaces, ASCII), so that anyone can recompute it. The signature is one of the hash (`keys`).

    rows held before + added - removed = rows held after
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from reprlib import repr as brief
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from traceless.exceptions import StoreError
from traceless.files.container import canonical_json, parsed_json

if TYPE_CHECKING:
    from traceless.store.keys import SigningKey

VERSION = 1
KINDS = ("new", "learn", "forget", "relabel", "merge", "destroy", "queue", "cancel", "key")
UNDO = "undo of entry "  # and its number: the subject of an undoing
_TYPES = {
    "int": (int,),
    "str": (str,),
    "bool": (bool,),
    "str | None": (str, type(None)),
    "tuple[str, ...]": (tuple,),
    "Mapping[str, int]": (dict,),
}
_NOT_HASHED = ("hash", "signature")
_KEPT = ("unknown", "waiting", "alive", "generation", "sha256", "origin")  # unless given anew


def hash_of(value: Any) -> str:
    """SHA-256 of the canonical JSON, in hexadecimal."""
    return hashlib.sha256(canonical_json(value).encode()).hexdigest()


def now() -> str:
    """The time, UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


class ModelState(NamedTuple):
    """The part of an entry that describes a model.

    Attributes
    ----------
    held : int
        How many rows it holds.
    digest : str or None
        Its digest; None while it holds no rows.
    root : str or None
        Hash of its rows: the SHA-256 of their fingerprint, or the digest of a model that keeps its
        rows (`PathSVC`). None while it holds no rows, and for sums without a fingerprint.
    """

    held: int
    digest: str | None
    root: str | None

    @classmethod
    def of(cls, model: Any) -> Self:
        """The state of a model; None stands for one that was destroyed."""
        if not hasattr(type(model), "knowledge_"):
            held = int(getattr(model, "n_samples_", 0))
            digest = str(model.digest()) if held else None
            return cls(held, digest, digest)
        known = getattr(model, "knowledge_", None)  # None before the first row
        if known is None or not known.n_samples:
            return cls(0, None, None)
        from traceless.knowledge.fingerprint import to_bytes

        digest, lanes = known.digest(), known.fingerprint
        root = None if lanes is None else hashlib.sha256(to_bytes(lanes)).hexdigest()
        return cls(known.n_samples, digest, root)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One change of a store.

    Attributes
    ----------
    version : int
        Of the form of entries: 1.
    sequence : int
        0 for the creation of the store, then 1, 2, 3, without gaps.
    kind : str
        new, learn, forget, relabel, merge or destroy; queue (a request to forget came, and
        waits) or cancel (it was taken back); key (another key signs from now on).
    time : str
        UTC, to the second; never earlier than that of the entry before.
    keys : tuple of str
        Idempotency keys of the requests that this change answers.
    rows : int
        How many rows it concerns.
    added, removed : int
        How many rows the model got, and how many it lost.
    classes : dict
        Change in the number of rows of each class; empty for regressions.
    held, unknown : int
        Rows that the model holds afterwards; and how many of them have no digest in the store,
        because they came by merge or after the secret was destroyed.
    waiting : int
        Rows that wait in the queue afterwards.
    digest_before, digest_after : str or None
        Digest of the model; None while it holds no rows.
    root_before, root_after : str or None
        Hash of the rows that the model holds: the SHA-256 of their fingerprint, or the digest of
        a model that keeps its rows (`PathSVC`). None while there are no rows.
    alive : str or None
        SHA-256 of the lanes of the rows held (`row_lanes`); None once the secret is destroyed.
    ids : str or None
        SHA-256 over the changes to the rows of each id (`ids`); None without ids.
    request : str or None
        Keyed hash of the request, by which it is recognised.
    queued : str or None
        Keyed hash of the rows that wait since this entry, as the queue keeps them.
    generation, sha256 : str or None
        The file of the model, and the SHA-256 of its content.
    revealing : bool
        Whether so few rows were forgotten that the models before and after reveal them.
    subject : str or None
        The name of a merged slice; what was destroyed, undone or cancelled; the next public key.
    signer : str
        The public key of the signature.
    origin : str
        Hash of the description of the store: its model and what it is about.
    previous : str
        Hash of the entry before; zeros for the first.
    hash : str
        Hash of all other fields but the signature.
    signature : str
        Of the hash; empty for a change that was not made.
    """

    version: int
    sequence: int
    kind: str
    time: str
    keys: tuple[str, ...] = ()
    rows: int = 0
    added: int = 0
    removed: int = 0
    classes: Mapping[str, int] = field(default_factory=dict)
    held: int
    unknown: int = 0
    waiting: int = 0
    digest_before: str | None
    digest_after: str | None
    root_before: str | None
    root_after: str | None
    alive: str | None
    ids: str | None = None
    request: str | None = None
    queued: str | None = None
    generation: str | None
    sha256: str | None
    revealing: bool = False
    subject: str | None = None
    signer: str
    origin: str
    previous: str
    hash: str
    signature: str = ""

    @classmethod
    def after(
        cls, before: Entry | None, state: ModelState, key: SigningKey | None, **facts: Any
    ) -> Self:
        """The entry after another, for a change that left the model in this state.

        Fields that are not in `facts` are as before. Without a key (in a dry run) the entry is not
        signed.
        """
        said: dict[str, Any] = {"version": VERSION, "time": now(), "previous": "0" * 64}
        said |= {"sequence": 0, "digest_before": None, "root_before": None}
        if before is not None:
            said |= {"sequence": before.sequence + 1, "time": max(now(), before.time)}
            said |= {"digest_before": before.digest_after, "root_before": before.root_after}
            said |= {"previous": before.hash, "signer": before.next_signer}
            said |= {name: getattr(before, name) for name in _KEPT}
        said |= dict(zip(("held", "digest_after", "root_after"), state, strict=True))
        entry = cls(**said | facts, hash="")
        digest = hashlib.sha256(entry.body.encode()).hexdigest()
        object.__setattr__(entry, "hash", digest)  # neither it nor the signature is in the body
        object.__setattr__(entry, "signature", "" if key is None else key.sign(digest))
        return entry

    @property
    def state(self) -> ModelState:
        """The state of the model afterwards."""
        return ModelState(self.held, self.digest_after, self.root_after)

    @property
    def next_signer(self) -> str:
        """The public key of the entry that follows."""
        return str(self.subject) if self.kind == "key" else self.signer

    @property
    def undoes(self) -> int | None:
        """The number of the entry whose learning this one undoes."""
        number = (self.subject or "").removeprefix(UNDO)
        return int(number) if self.kind == "forget" and number.isdecimal() else None

    @classmethod
    def from_body(cls, body: str, said: str, signature: str = "") -> Self:
        """The entry of a text with its claimed hash and signature, which are not checked here."""
        try:
            facts = parsed_json(body)
            version = facts["version"]
            if type(version) is int and version > VERSION:
                raise StoreError(
                    "This entry was written by a newer version of traceless: its form is "
                    f"{version}, and this one knows {VERSION}. Install the newer version."
                )
            if type(version) is not int or version != VERSION:
                raise TypeError(f"its version is {brief(version)}")
            if type(facts["keys"]) is list:
                facts["keys"] = tuple(facts["keys"])
            entry = cls(**facts, hash=said, signature=signature)
            entry._check_types()
            if entry.facts().keys() != facts.keys():
                raise TypeError("some fields are missing")
        except StoreError:
            raise
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise StoreError(f"Not an entry of a ledger ({error}): {body[:80]!r}.") from None
        return entry

    def facts(self) -> dict[str, Any]:
        """The hashed fields."""
        names = (f.name for f in fields(Entry) if f.name not in _NOT_HASHED)
        return {name: getattr(self, name) for name in names}

    @cached_property
    def body(self) -> str:
        """The facts as canonical JSON, which is hashed and kept in the ledger."""
        return canonical_json(self.facts())

    def is_intact(self) -> bool:
        """Whether the hash is that of the fields, and correctly signed."""
        from traceless.store.keys import is_signed

        same = self.hash == hashlib.sha256(self.body.encode()).hexdigest()
        return same and is_signed(self.hash, self.signer, self.signature)

    def as_dict(self) -> dict[str, Any]:
        """All fields, for JSON."""
        signed = {"hash": self.hash, "signature": self.signature}
        return {**self.facts(), "keys": list(self.keys), **signed}

    def _check_types(self) -> None:
        """Raise `TypeError` unless each field has its declared type."""
        for f in fields(Entry):
            if type(getattr(self, f.name)) not in _TYPES[str(f.type)]:
                raise TypeError(f"{f.name} is {brief(getattr(self, f.name))}")
        if not {*map(type, self.keys)} <= {str} or not {*map(type, self.classes.values())} <= {int}:
            raise TypeError("keys are not text, or classes have no counts")
        if self.kind not in KINDS:
            raise ValueError(f"{brief(self.kind)} is not a kind of change")
