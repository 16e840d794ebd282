"""The state of a store in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Status:
    """The state of a store.

    Attributes
    ----------
    path : str
    model : str
        The class of the model, such as LSSVC.
    sequence : int
        Number of the latest entry.
    time : str
        When it was written, UTC.
    rows : int
        Rows that the model holds.
    classes : dict
        Rows of each class; empty for regressions.
    unknown : int
        Rows among them whose digests are not in the store.
    waiting : int
        Rows that wait in the queue to be forgotten.
    digest, root : str or None
    hash : str
        Hash of the latest entry.
    has_secret, has_model : bool
        False once they were destroyed.
    size : int
        Bytes of all files.
    log_emptied : bool
        Whether nothing of what was replaced is left in the log of the ledger. A process that was
        reading can keep it for a while; the next change, or opening, empties it.
    """

    path: str
    model: str
    sequence: int
    time: str
    rows: int
    classes: Mapping[str, int]
    unknown: int
    waiting: int
    digest: str | None
    root: str | None
    hash: str
    has_secret: bool
    has_model: bool
    size: int
    log_emptied: bool
