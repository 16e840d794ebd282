"""The chain of entries: what each of them must be, given the one before.

    digests, roots and rows continue those of the entry before
    rows held = rows held before + added - removed
    rows that wait = those before + rows (queue), - rows (cancel), or none (the queue is forgotten)

An entry is signed with the key that the store was made with, or that the last change of keys named,
and so are the heads of the log, whose roots are those of the entries.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from reprlib import repr as brief
from typing import Any

from traceless.exceptions import StoreError
from traceless.store.checkpoint import Head
from traceless.store.entries import WAITING, Entry, hash_of
from traceless.store.merkle import Tree

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_SAME_MODEL = ("queue", "cancel", "key")  # they neither add nor remove rows


@dataclass
class Chain:
    """The facts that follow from a chain of entries that was checked.

    Attributes
    ----------
    last : Entry or None
        The latest entry.
    requests : dict
        The numbers of the first and the latest entry of each key.
    waiting : dict
        Rows of the requests that wait, by the number of their entry.
    signers : dict
        The public keys, and the number of the first entry that each has signed.
    nodes : dict
        Of the Merkle tree of the entries.
    misdated : list of int
        Entries whose time is before that of an earlier entry: one of the two clocks was wrong.
    """

    last: Entry | None = None
    requests: dict[str, tuple[int, int]] = field(default_factory=dict)
    waiting: dict[int, int] = field(default_factory=dict)
    signers: dict[str, int] = field(default_factory=dict)
    nodes: dict[tuple[int, int], bytes] = field(default_factory=dict)
    misdated: list[int] = field(default_factory=list)
    latest: str = ""

    @property
    def tree(self) -> Tree:
        """The Merkle tree of the entries."""
        return Tree(self.nodes)

    def add(self, entry: Entry) -> None:
        """Append the next entry."""
        number = entry.sequence
        self.tree.append(number, entry.payload)
        if entry.time < self.latest:
            self.misdated.append(number)
        self.latest = max(self.latest, entry.time)
        for key in entry.keys:
            self.requests[key] = self.requests.get(key, (number,))[0], number
        self.signers.setdefault(entry.signer, number)
        if entry.kind == "queue":
            self.waiting[number] = entry.rows
        elif entry.kind == "cancel":
            self.waiting.pop(int(str(entry.subject).removeprefix("entry ")))
        elif entry.kind == "forget" and entry.waiting == 0:
            self.waiting.clear()
        self.last = entry


def checked(entries: Iterable[Entry], document: str, first_key: Any) -> Chain:
    """The chain of a store with this description; raises `StoreError` at the first error."""
    chain, origin = Chain(), hash_of(document.encode())
    for entry in entries:
        where = f"entry {entry.sequence}"
        require(entry.origin == origin, f"{where} belongs to another store")
        require(entry.is_intact(), f"{where} was changed after it was written")
        require(bool(_TIME.fullmatch(entry.time)), f"{where} has the time {brief(entry.time)}")
        if chain.last is None:
            _check_first(entry, first_key)
        else:
            _check_next(chain.last, entry)
            _check_waiting(chain, entry)
        chain.add(entry)
    require(chain.last is not None, "there are no entries")
    return chain


def check_heads(chain: Chain, heads: list[tuple[int, str]], log: str) -> None:
    """Check the heads that are kept: each key's last one, and the latest of all."""
    assert chain.last is not None
    ends = [n for n in chain.signers.values() if n]
    expected = {1, *ends, chain.last.sequence + 1}
    require([size for size, _ in heads] == sorted(expected), "heads are missing, or there are more")
    for size, note in heads:
        head = Head.parsed(note)
        same = str(head) == note and (head.origin, head.size) == (log, size)
        require(same and head.root == chain.tree.root(size), f"the head of size {size} is another")
        after = [key for key, n in chain.signers.items() if n == size]
        before = [key for key, n in chain.signers.items() if n < size][-1:]
        signed = all(head.is_signed(key) for key in before + after)
        require(signed, f"the head of size {size} is not signed")
    last = Head.parsed(heads[-1][1])
    require(last.is_signed(chain.last.next_signer), "the head is not signed by the next key")


def _check_first(entry: Entry, first_key: Any) -> None:
    where = f"entry {entry.sequence}"
    require(entry.sequence == 0 and entry.kind == "new", f"the first is {where}, a {entry.kind}")
    signed = entry.signer == first_key and entry.since == 0
    require(signed, f"{where} is not signed with the key of this store")
    empty = not (entry.held or entry.rows or entry.classes or entry.totals or entry.waiting)
    require(empty, f"{where} says that a new store holds rows")
    before = entry.digest_before, entry.root_before
    require(before == (None, None), f"{where} says that something was before it")


def _check_next(before: Entry, entry: Entry) -> None:
    where = f"entry {entry.sequence}"
    require(entry.sequence == before.sequence + 1, f"{where} follows entry {before.sequence}")
    links = entry.digest_before, entry.root_before
    same = links == (before.digest_after, before.root_after)
    require(same, f"{where} does not continue the entry before")
    since = before.sequence if before.kind == "key" else before.since
    signed = (entry.signer, entry.since) == (before.next_signer, since)
    require(signed, f"{where} is not signed with the key of this store")
    require(entry.added >= 0 and entry.removed >= 0, f"{where} has a negative number of rows")
    held = before.held + entry.added - entry.removed
    require(entry.held == held, f"{where} does not add up: {held} rows would be held")
    totals = Counter(before.totals)
    totals.update(entry.classes if entry.kind not in WAITING else {})
    same = entry.totals == {label: n for label, n in totals.items() if n}
    require(same, f"{where} does not add up: the rows of each class")
    if entry.kind in _SAME_MODEL:
        same = not (entry.added or entry.removed)
        same = same and entry.digest_after == entry.digest_before
        require(same, f"{where}, a {entry.kind}, changes the model")
    one_way = {"learn": entry.removed, "merge": entry.removed, "forget": entry.added}
    require(not one_way.get(entry.kind), f"{where}, a {entry.kind}, does the opposite as well")


def _check_waiting(chain: Chain, entry: Entry) -> None:
    """Check the number of waiting rows against the entries before."""
    where = f"entry {entry.sequence}"
    waits = sum(chain.waiting.values())
    if entry.kind == "queue":
        waits += entry.rows
    elif entry.kind == "cancel":
        number = str(entry.subject).removeprefix("entry ")
        found = chain.waiting.get(int(number)) if number.isdecimal() else None
        require(found is not None, f"{where} cancels a request that does not wait")
        waits -= found or 0
    elif entry.kind == "forget" and entry.waiting == 0:
        require(entry.rows >= waits, f"{where} forgets fewer rows than wait")
        waits = 0
    require(entry.waiting == waits, f"{where} does not add up: {waits} rows would wait")


def require(ok: bool, said: str) -> None:
    """Raise `StoreError` with this message unless `ok`."""
    if not ok:
        raise StoreError(said)
