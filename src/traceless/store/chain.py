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
from traceless.store.entries import WAITING, Entry
from traceless.store.merkle import Tree

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", re.ASCII)
_FIRST: dict[str, Any] = {
    **dict.fromkeys(("sequence", "since", "held", "rows", "waiting", "added", "removed"), 0),
    **dict.fromkeys(("digest_before", "root_before"), None),
    "classes": {},
    "totals": {},
    "kind": "new",
}
_NONE_OF = {"learn": ["removed"], "merge": ["removed"], "forget": ["added"]}
_SAME_MODEL = ("queue", "cancel", "key")  # they neither add nor remove rows


@dataclass
class Chain:
    """The facts that follow from a chain of entries that was checked.

    Attributes
    ----------
    last : Entry or None
        The latest entry.
    requests : set
        Keys of requests, each with the number of an entry that answers it.
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
    requests: set[tuple[str, int]] = field(default_factory=set)
    waiting: dict[int, int] = field(default_factory=dict)
    signers: dict[str, int] = field(default_factory=dict)
    nodes: dict[tuple[int, int], bytes] = field(default_factory=dict)
    misdated: list[int] = field(default_factory=list)
    latest: str = ""

    @property
    def tree(self) -> Tree:
        """The Merkle tree of the entries."""
        return Tree(self.nodes)

    def add(self, entry: Entry, first_key: Any) -> None:
        """Append the next entry; raises `StoreError` if it cannot be that."""
        number, before = entry.sequence, self.last
        where = f"entry {number}"
        require(entry.is_intact(), f"{where} was changed after it was written")
        require(bool(_TIME.fullmatch(entry.time)), f"{where} has the time {brief(entry.time)}")
        self._wait(entry)
        expected = _FIRST | {"signer": first_key} if before is None else _after(before, entry)
        for name, value in (expected | {"waiting": sum(self.waiting.values())}).items():
            given = getattr(entry, name)
            said = f"{name} is {brief(given)} and should be {brief(value)}"
            require(given == value, f"{where} does not follow from what was before: {said}")
        require(min(entry.added, entry.removed) >= 0, f"{where} has a negative number of rows")
        self.tree.append(number, entry.payload)
        if entry.time < self.latest:
            self.misdated.append(number)
        self.latest = max(self.latest, entry.time)
        self.requests.update((key, number) for key in entry.keys)
        self.signers.setdefault(entry.signer, number)
        self.last = entry

    def _wait(self, entry: Entry) -> None:
        """Settle the rows that wait."""
        if entry.kind == "queue":
            self.waiting[entry.sequence] = entry.rows
        elif entry.kind == "cancel":
            number = str(entry.subject).removeprefix("entry ")
            rows = self.waiting.pop(int(number), None) if number.isdecimal() else None
            require(rows == entry.rows, f"entry {entry.sequence} cancels no request that waits")
        elif entry.kind == "forget" and entry.waiting == 0:
            enough = entry.rows >= sum(self.waiting.values())
            require(enough, f"entry {entry.sequence} forgets fewer rows than wait")
            self.waiting.clear()


def _after(before: Entry, entry: Entry) -> dict[str, Any]:
    """The facts of an entry that follow from the one before, and from what it adds and removes."""
    totals = Counter(before.totals)
    totals.update(entry.classes if entry.kind not in WAITING else {})
    expected = before.links() | {
        "held": before.held + entry.added - entry.removed,
        "totals": {label: n for label, n in totals.items() if n},
    }
    none_of = _NONE_OF.get(entry.kind, [])
    if entry.kind in _SAME_MODEL:
        none_of, expected["digest_after"] = ["added", "removed"], before.digest_after
    return expected | dict.fromkeys(none_of, 0)


def checked(entries: Iterable[Entry], origin: str, first_key: Any) -> Chain:
    """The chain of a store whose description has this hash; raises `StoreError` at an error."""
    chain = Chain()
    for entry in entries:
        require(entry.origin == origin, f"entry {entry.sequence} belongs to another store")
        chain.add(entry, first_key)
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


def require(ok: bool, said: str) -> None:
    """Raise `StoreError` with this message unless `ok`."""
    if not ok:
        raise StoreError(said)
