"""Entries of the ledger: what happened, each with the hash of the one before.

The hash of an entry is the SHA-256 of its other fields as canonical JSON (sorted keys, no
spaces, ASCII), so that anyone can recompute it.

Entries of version 1 had no `version` and no `alive`, and called `request` a fingerprint. Their
root was the checksum that is `alive` now, so it did not prove rows.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, fields
from hashlib import sha256
from typing import Any, Self

from traceless.exceptions import StoreError
from traceless.files.container import canonical_json, parsed_json

VERSION = 2
KINDS = ("new", "learn", "forget", "relabel", "merge", "seal", "destroy")


def hash_of(value: Any) -> str:
    """SHA-256 of the canonical JSON, in hexadecimal."""
    return sha256(canonical_json(value).encode()).hexdigest()


def now() -> str:
    """The time, UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One change of a store.

    Attributes
    ----------
    version : int
        Of the form of entries: 2, or 1 if an older traceless wrote it.
    sequence : int
        0 for the making of the store, then 1, 2, 3, without gaps.
    kind : str
        new, learn, forget, relabel, merge, seal or destroy.
    time : str
        UTC, to the second.
    keys : tuple of str
        Idempotency keys of the requests that this change answers.
    rows : int
        How many rows it is about.
    classes : dict
        What it added to, or took from, the count of each class; empty for regressions.
    held, unknown : int
        Rows the model holds afterwards; and those among them whose digests are not here,
        because they came by merge or after the secret was destroyed.
    digest_before, digest_after : str or None
        Digest of the model; None while it holds no rows.
    root_before, root_after : str or None
        Hash of the rows that the model holds: the SHA-256 of their fingerprint, or the digest of
        a model that is known by its rows (`PathSVC`). None while there are no rows, and in stores
        that older versions made, whose models have no fingerprint.
    alive : str or None
        Checksum over the digests of the rows alive; None once the secret is destroyed.
    request : str or None
        Keyed hash of what was asked for, by which a request is recognised.
    generation, sha256 : str or None
        The file of the model, and the SHA-256 of its content.
    revealing : bool
        Whether rows were forgotten that were too few to hide among each other.
    subject : str or None
        The name of a merged slice; what was destroyed.
    origin : str
        Hash of the description of the store: its model and what it is about.
    previous : str
        Hash of the entry before; zeros for the first.
    hash : str
        Hash of all this.
    """

    version: int
    sequence: int
    kind: str
    time: str
    keys: tuple[str, ...]
    rows: int
    classes: Mapping[str, int]
    held: int
    unknown: int
    digest_before: str | None
    digest_after: str | None
    root_before: str | None
    root_after: str | None
    alive: str | None
    request: str | None
    generation: str | None
    sha256: str | None
    revealing: bool
    subject: str | None
    origin: str
    previous: str
    hash: str

    @classmethod
    def hashed(cls, **facts: Any) -> Self:
        """An entry of these facts, with its hash."""
        facts |= {"keys": tuple(facts["keys"]), "version": VERSION}
        return cls(**facts, hash=hash_of(facts))

    @classmethod
    def from_body(cls, body: str, said: str) -> Self:
        """The entry of a JSON text and the hash that is said to be its own; neither is trusted."""
        try:
            facts = parsed_json(body)
            _check_version(facts.get("version"))
            facts = facts if "version" in facts else _from_version_1(**facts)
            if type(facts["keys"]) is not list or type(facts["classes"]) is not dict:
                raise TypeError
            facts["keys"] = tuple(facts["keys"])
            entry = cls(**facts, hash=said)
        except StoreError:
            raise
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise StoreError(f"Not an entry of a ledger: {body[:80]!r}.") from None
        entry._check_types()
        return entry

    def facts(self) -> dict[str, Any]:
        """All fields but the hash, under the names that they had when they were hashed."""
        said = {f.name: getattr(self, f.name) for f in fields(Entry) if f.name != "hash"}
        return said if self.version > 1 else _to_version_1(**said)

    def is_intact(self) -> bool:
        """Whether the hash is that of the fields."""
        return self.hash == hash_of(self.facts())

    def as_dict(self) -> dict[str, Any]:
        """All fields, for JSON."""
        return {**self.facts(), "keys": list(self.keys), "hash": self.hash}

    def _check_types(self) -> None:
        kinds = {
            int: (self.sequence, self.rows, self.held, self.unknown, *self.classes.values()),
            str: (self.kind, self.time, self.origin, self.previous, self.hash, *self.keys),
            bool: (self.revealing,),
        }
        wrong = [v for kind, values in kinds.items() for v in values if type(v) is not kind]
        texts = (
            *(self.digest_before, self.digest_after, self.root_before, self.root_after),
            *(self.alive, self.request, self.generation, self.sha256, self.subject),
        )
        wrong += [v for v in texts if not isinstance(v, str | None)]
        if wrong or self.kind not in KINDS:
            raise StoreError(
                f"Not an entry of a ledger: {(wrong or [self.kind])[0]!r} does not belong there."
            )


def _check_version(version: Any) -> None:
    """Raise unless entries of this version can be read; None is version 1, which did not say so."""
    if type(version) is int and version > VERSION:
        raise StoreError(
            f"This entry was written by a newer version of traceless: its form is {version}, and "
            f"this one knows {VERSION}. Install the newer version."
        )
    if version is not None and (type(version) is not int or version < VERSION):
        raise TypeError


def _from_version_1(*, fingerprint: Any, **facts: Any) -> dict[str, Any]:
    """Facts of an entry of version 1 under the names of today."""
    return dict(**facts, version=1, alive=facts["root_after"], request=fingerprint)


def _to_version_1(*, version: Any, alive: Any, request: Any, **facts: Any) -> dict[str, Any]:  # noqa: ARG001
    """What `_from_version_1` was given."""
    return dict(**facts, fingerprint=request)
