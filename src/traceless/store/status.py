"""How a store stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Status:
    """How a store stands.

    Attributes
    ----------
    path : str
    model : str
        What the model is, such as LSSVC.
    sequence : int
        Number of the latest entry.
    time : str
        When it was written, UTC.
    rows : int
        Rows that the model holds.
    classes : dict
        Rows of each class; empty for regressions.
    unknown : int
        Rows among them whose digests are not here.
    waiting : int
        Rows that wait in the queue to be forgotten.
    digest, root : str or None
    hash : str
        Hash of the latest entry.
    has_secret, has_model : bool
        Whether they were not destroyed.
    size : int
        Bytes of all files.
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
