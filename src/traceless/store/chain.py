"""The chain of entries: what each of them must be, given the one before.

    previous = hash of the entry before        digests, roots and rows continue those before
    rows held = rows held before + added - removed
    rows that wait = those before + rows (queue), - rows (cancel), or none (the queue is forgotten)

An entry is signed with the key that the store was made with, or that the last change of keys named.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from reprlib import repr as brief
from typing import Any

from traceless.exceptions import StoreError
from traceless.store.entries import Entry, hash_of

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_SAME_MODEL = ("queue", "cancel", "key")  # they neither add nor remove rows


@dataclass
class Chain:
    """The facts that follow from a chain of entries that was checked.

    Attributes
    ----------
    last : Entry or None
        The latest entry.
    classes : Counter
        Rows of each class held.
    requests : dict
        The first and the latest entry of each key.
    waiting : dict
        Waiting requests: key and rows, by the number of their entry.
    signers : dict
        The public keys, and the number of the first entry that each has signed.
    ids : dict
        The hash over the ids of each change, by the number of its entry.
    """

    last: Entry | None = None
    classes: Counter[str] = field(default_factory=Counter)
    requests: dict[str, tuple[Entry, Entry]] = field(default_factory=dict)
    waiting: dict[int, tuple[str | None, int]] = field(default_factory=dict)
    signers: dict[str, int] = field(default_factory=dict)
    ids: dict[int, str] = field(default_factory=dict)

    def add(self, entry: Entry) -> None:
        """Append the next entry."""
        number = entry.sequence
        self.classes.update(entry.classes)
        for key in entry.keys:
            self.requests[key] = self.requests.get(key, (entry,))[0], entry
        self.signers.setdefault(entry.signer, number)
        if entry.kind == "destroy":
            self.ids.clear()
        elif entry.ids is not None:
            self.ids[number] = entry.ids
        if entry.kind == "queue":
            self.waiting[number] = (entry.keys[0] if entry.keys else None, entry.rows)
        elif entry.kind == "cancel":
            self.waiting.pop(int(str(entry.subject).removeprefix("entry ")))
        elif entry.kind == "forget" and entry.waiting == 0:
            self.waiting.clear()
        self.last = entry


def checked(entries: Iterable[Entry], described: Mapping[str, Any]) -> Chain:
    """The chain of a store with this description; raises `StoreError` at the first error."""
    chain, origin = Chain(), hash_of(described)
    for entry in entries:
        where = f"entry {entry.sequence}"
        require(entry.origin == origin, f"{where} belongs to another store")
        require(entry.is_intact(), f"{where} was changed after it was written")
        require(bool(_TIME.fullmatch(entry.time)), f"{where} has the time {brief(entry.time)}")
        if chain.last is None:
            _check_first(entry, described)
        else:
            _check_next(chain.last, entry)
            _check_waiting(chain, entry)
        chain.add(entry)
    require(chain.last is not None, "there are no entries")
    return chain


def _check_first(entry: Entry, described: Mapping[str, Any]) -> None:
    where = f"entry {entry.sequence}"
    require(entry.sequence == 0 and entry.kind == "new", f"the first is {where}, a {entry.kind}")
    signed = entry.signer == described.get("key")
    require(signed, f"{where} is not signed with the key of this store")
    empty = entry.held == entry.rows == 0 and not entry.classes and not entry.waiting
    require(empty, f"{where} says that a new store holds rows")
    require(entry.previous == "0" * 64, f"{where} says that something was before it")


def _check_next(before: Entry, entry: Entry) -> None:
    where = f"entry {entry.sequence}"
    require(entry.sequence == before.sequence + 1, f"{where} follows entry {before.sequence}")
    links = entry.previous, entry.digest_before, entry.root_before
    same = links == (before.hash, before.digest_after, before.root_after)
    require(same, f"{where} does not continue the entry before")
    require(entry.time >= before.time, f"{where} is older than the entry before")
    signed = entry.signer == before.next_signer
    require(signed, f"{where} is not signed with the key of this store")
    require(entry.added >= 0 and entry.removed >= 0, f"{where} has a negative number of rows")
    held = before.held + entry.added - entry.removed
    require(entry.held == held, f"{where} does not add up: {held} rows would be held")
    if entry.kind in _SAME_MODEL:
        same = not (entry.added or entry.removed or entry.classes)
        same = same and entry.digest_after == entry.digest_before
        require(same, f"{where}, a {entry.kind}, changes the model")
    one_way = {"learn": entry.removed, "merge": entry.removed, "forget": entry.added}
    require(not one_way.get(entry.kind), f"{where}, a {entry.kind}, does the opposite as well")


def _check_waiting(chain: Chain, entry: Entry) -> None:
    """Check the number of waiting rows against the entries before."""
    where = f"entry {entry.sequence}"
    waits = sum(rows for _, rows in chain.waiting.values())
    if entry.kind == "queue":
        waits += entry.rows
    elif entry.kind == "cancel":
        number = str(entry.subject).removeprefix("entry ")
        found = chain.waiting.get(int(number)) if number.isdecimal() else None
        require(found is not None, f"{where} cancels a request that does not wait")
        waits -= found[1] if found else 0
    elif entry.kind == "forget" and entry.waiting == 0:
        require(entry.rows >= waits, f"{where} forgets fewer rows than wait")
        waits = 0
    require(entry.waiting == waits, f"{where} does not add up: {waits} rows would wait")


def require(ok: bool, said: str) -> None:
    """Raise `StoreError` with this message unless `ok`."""
    if not ok:
        raise StoreError(said)
