"""Entries of the ledger: one statement for each change, signed as it stands (`envelope`).

A statement is one of in-toto, version 1. Its subjects are the file of the model, if there is one,
and the description of the store, each by its SHA-256; its predicate is of the type
`urn:traceless:change:1`, whose schema is docs/change.schema.json. The entries are the leaves of a
Merkle tree (`merkle`).

    rows held before + added - removed = rows held after
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from reprlib import repr as brief
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from traceless.exceptions import StoreError
from traceless.files.container import parsed_json
from traceless.store.envelope import envelope, signed_bytes, statement
from traceless.store.merkle import leaf_hash

if TYPE_CHECKING:
    from traceless.store.keys import SigningKey

PREDICATE = "urn:traceless:change:1"
KINDS = (
    *("new", "learn", "forget", "relabel", "merge", "follow", "destroy", "queue", "cancel", "key"),
)
FOLLOW = "urn:traceless:follow:"  # and a table's id and version: the key of following it
_FOLLOWED = re.compile(r"(.*), version (\d+) of (\S+), commit (\S+)", re.DOTALL)
UNDO = "undo of entry "  # and its number: the subject of an undoing
_TYPES = {
    "int": (int,),
    "str": (str,),
    "bool": (bool,),
    "str | None": (str, type(None)),
    "tuple[str, ...]": (tuple,),
    "Mapping[str, int]": (dict,),
}
WAITING = ("queue", "cancel")  # their rows are only asked for
LIST = ".suppression"  # the end of the name of its file
_SUBJECTS = ("generation", "sha256", "suppression", "suppression_sha256", "origin")
_KEPT = ("unknown", "waiting", "totals", "records", *_SUBJECTS)  # unless given anew
_BEFORE_THE_FIRST = {"sequence": 0, "digest_before": None, "root_before": None, "since": 0}


def hash_of(text: bytes) -> str:
    """SHA-256, in hexadecimal."""
    return hashlib.sha256(text).hexdigest()


def now() -> str:
    """The time, UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def check_text(text: str, what: str) -> None:
    """Raise unless others can read a text: one that is no Unicode could be in no receipt."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"{what} is not text: {brief(text)} has bytes that are not UTF-8. Nothing was changed."
        ) from error


class Followed(NamedTuple):
    """The version of a table that a store has moved to.

    Attributes
    ----------
    table : str
        Where it was.
    version : int
    id : str
        The table's own.
    commit : str
        SHA-256 of the commit in its log.
    """

    table: str
    version: int
    id: str
    commit: str


class ModelState(NamedTuple):
    """The part of an entry that describes a model.

    Attributes
    ----------
    held : int
        How many rows it holds.
    digest_after : str or None
        Its digest; None while it holds no rows.
    root_after : str or None
        Hash of its rows: the SHA-256 of their fingerprint, or the digest of a model that keeps its
        rows (`PathSVC`). None while it holds no rows, and for sums without a fingerprint.
    """

    held: int
    digest_after: str | None
    root_after: str | None

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
    sequence : int
        0 for the creation of the store, then 1, 2, 3, without gaps.
    kind : str
        new, learn, forget, relabel, merge or destroy; queue (a request to forget came, and
        waits) or cancel (it was taken back); key (another key signs from now on).
    time : str
        UTC, to the second, by the clock of the writer.
    keys : tuple of str
        Idempotency keys of the requests that this change answers.
    rows : int
        How many rows it concerns.
    added, removed : int
        How many rows the model got, and how many it lost.
    classes : dict
        Change in the number of rows of each class; of a request that waits, or no longer does,
        its rows. Empty for regressions.
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
    totals : dict
        Rows of each class afterwards; empty for regressions.
    records : str or None
        SHA-256 of the multiset hash over all records of rows and people (`row_table`); None once
        the secret is destroyed.
    request : str or None
        Keyed hash of the request, by which it is recognised.
    queued : str or None
        Keyed hash of the rows that wait since this entry, as the queue keeps them.
    revealing : bool
        Whether so few rows were forgotten that the models before and after reveal them.
    subject : str or None
        The name of a merged slice; what was destroyed, undone or cancelled; the next public key.
    signer : str
        The public key of the signature.
    since : int
        Number of the entry that handed over to this key; 0 for the first key.
    generation, sha256 : str or None
        The file of the model, and the SHA-256 of its content.
    suppression, suppression_sha256 : str or None
        The file of the list of those who are not to be learned again, likewise.
    origin : str
        SHA-256 of the description of the store: its model and what it is about.
    payload : bytes
        The statement, which is signed and is a leaf of the tree.
    signature : str
        Base64; empty for a change that was not made.
    """

    sequence: int
    kind: str
    time: str
    keys: tuple[str, ...] = ()
    rows: int = 0
    added: int = 0
    removed: int = 0
    classes: Mapping[str, int] = field(default_factory=dict)
    totals: Mapping[str, int] = field(default_factory=dict)
    held: int
    unknown: int = 0
    waiting: int = 0
    digest_before: str | None
    digest_after: str | None
    root_before: str | None
    root_after: str | None
    records: str | None
    request: str | None = None
    queued: str | None = None
    revealing: bool = False
    subject: str | None = None
    signer: str
    since: int
    generation: str | None
    sha256: str | None
    suppression: str | None = None
    suppression_sha256: str | None = None
    origin: str
    payload: bytes = field(default=b"", repr=False)
    signature: str = ""

    @classmethod
    def after(
        cls, before: Entry | None, state: ModelState, key: SigningKey | None, **facts: Any
    ) -> Self:
        """The entry after another, for a change that left the model in this state.

        Fields that are not in `facts` are as before. Without a key (in a dry run) the entry is not
        signed.
        """
        said: dict[str, Any] = {"time": now(), **_BEFORE_THE_FIRST}
        if before is not None:
            said |= before.links() | {name: getattr(before, name) for name in _KEPT}
        entry = cls(**said | state._asdict() | facts)
        payload = json.dumps(entry.statement(), separators=(",", ":")).encode()
        signature = "" if key is None else key.signature(signed_bytes(payload))
        return replace(entry, payload=payload, signature=signature)

    def links(self) -> dict[str, Any]:
        """The facts of the next entry that follow from this one."""
        return {
            "sequence": self.sequence + 1,
            "digest_before": self.digest_after,
            "root_before": self.root_after,
            "signer": self.next_signer,
            "since": self.sequence if self.kind == "key" else self.since,
            "origin": self.origin,
        }

    @property
    def state(self) -> ModelState:
        """The state of the model afterwards."""
        return ModelState(self.held, self.digest_after, self.root_after)

    @property
    def hash(self) -> str:
        """The leaf of the Merkle tree, in hexadecimal."""
        return leaf_hash(self.payload).hex()

    @property
    def next_signer(self) -> str:
        """The public key of the entry that follows."""
        return str(self.subject) if self.kind == "key" else self.signer

    @property
    def followed(self) -> Followed | None:
        """The version of a table that this change moved to."""
        found = _FOLLOWED.fullmatch(self.subject or "") if self.kind == "follow" else None
        return Followed(found[1], int(found[2]), found[3], found[4]) if found else None

    @property
    def undoes(self) -> int | None:
        """The number of the entry whose learning this one undoes."""
        number = (self.subject or "").removeprefix(UNDO)
        return int(number) if self.kind == "forget" and number.isdecimal() else None

    @classmethod
    def from_payload(cls, payload: bytes, signature: str = "") -> Self:
        """The entry of a statement and its signature, which is not checked here."""
        try:
            statement = parsed_json(payload.decode())
            predicate, subject = statement["predicate"], statement["subject"]
            if statement["predicateType"] != PREDICATE:
                raise StoreError(
                    f"This statement is of the type {brief(statement['predicateType'])}, and this "
                    f"version of traceless knows {PREDICATE}. A newer version may know it."
                )
            files: dict[str, Any] = {"generation": None, "sha256": None}
            for one in subject:
                name, sha256 = one["name"], one["digest"]["sha256"]
                if name == "store":
                    files["origin"] = sha256
                elif name.endswith(LIST):
                    files |= {"suppression": name, "suppression_sha256": sha256}
                else:
                    files |= {"generation": name, "sha256": sha256}
            if type(predicate["keys"]) is list:
                predicate["keys"] = tuple(predicate["keys"])
            entry = cls(**predicate, **files, payload=payload, signature=signature)
            entry._check_types()
            if entry.statement() != statement:
                raise TypeError("there is more or less in it than there should be")
        except StoreError:
            raise
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise StoreError(f"Not an entry of a ledger ({error}): {payload[:80]!r}.") from None
        return entry

    def facts(self) -> dict[str, Any]:
        """All that the statement says, by name."""
        return {name: getattr(self, name) for name in _NAMES}

    def statement(self) -> dict[str, Any]:
        """What is signed: the facts as in-toto has them."""
        files = {self.generation: self.sha256, self.suppression: self.suppression_sha256}
        files |= {"store": self.origin}
        predicate = {k: v for k, v in self.facts().items() if k not in _SUBJECTS}
        return statement(PREDICATE, {k: v for k, v in files.items() if k is not None}, predicate)

    def envelope(self) -> dict[str, Any]:
        """The signed statement, as DSSE has it."""
        return envelope(self.payload, self.signature, self.signer)

    def is_intact(self) -> bool:
        """Whether the signature is one of the statement, by the key that it names."""
        from traceless.store.keys import is_signed

        return is_signed(signed_bytes(self.payload), self.signer, self.signature)

    def as_dict(self) -> dict[str, Any]:
        """All fields, for JSON."""
        signed = {"hash": self.hash, "signature": self.signature}
        return {**self.facts(), "keys": list(self.keys), **signed}

    def _check_types(self) -> None:
        """Raise `TypeError` unless each field has its declared type."""
        for (name, types), value in zip(_DECLARED.items(), _VALUES(self), strict=True):
            if type(value) not in types:
                raise TypeError(f"{name} is {brief(value)}")
        counts = [*self.classes.values(), *self.totals.values()]
        if not {*map(type, self.keys)} <= {str} or not {*map(type, counts)} <= {int}:
            raise TypeError("keys are not text, or classes have no counts")
        if self.kind not in KINDS:
            raise ValueError(f"{brief(self.kind)} is not a kind of change")


_NAMES = [f.name for f in fields(Entry) if f.name not in ("payload", "signature")]
_DECLARED = {f.name: _TYPES[str(f.type)] for f in fields(Entry) if str(f.type) in _TYPES}
_VALUES = attrgetter(*_DECLARED)
