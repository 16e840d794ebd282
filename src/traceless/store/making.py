"""Making a store: aside, and then in one step where it belongs."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sklearn.base import clone, is_classifier

from traceless import saving
from traceless.store.entries import Entry, hash_of, now
from traceless.store.folder import made_aside
from traceless.store.ledger import create
from traceless.store.rows import Printer, checked_secret, new_secret, root_text

_NEEDED = ("partial_fit", "forget", "update", "digest", "save")


def make(path: Path, estimator: Any, about: Mapping[str, Any] | None, secret: Any) -> None:
    """Make the folder of a new store."""
    estimator = _checked(estimator)
    secret = new_secret() if secret is None else checked_secret(secret)
    with made_aside(Path(path)) as folder:
        folder.keep_secret(secret)
        generation, sha256 = folder.write(estimator, 0)
        origin = {
            "store": secrets.token_hex(16),
            "created": now(),
            "model": saving.described(estimator),
            "task": "classification" if is_classifier(estimator) else "regression",
            "about": dict(about or {}),
            "secret": Printer(secret, True).fingerprint("secret"),
        }
        create(folder.ledger, origin, _first(hash_of(origin), generation, sha256))


def _checked(estimator: Any) -> Any:
    """A copy of an estimator that can live in a store."""
    name = type(estimator).__name__
    if not all(hasattr(estimator, needed) for needed in _NEEDED):
        raise TypeError(
            f"A store needs an estimator that can forget, such as LSSVC(), LSSVR() or PathSVC(), "
            f"got {name}."
        )
    if hasattr(estimator, "n_samples_"):
        raise ValueError(
            f"This {name} has learned something already, of which the store would know nothing. "
            "Give one that has not, and then merge this one."
        )
    if getattr(estimator, "kernel", None) == "precomputed":
        raise ValueError(
            "Points of a precomputed kernel have no content to be recognised by. Use kernel='rbf', "
            "'linear' or 'poly'."
        )
    return clone(estimator)


def _first(origin: str, generation: str, sha256: str) -> Entry:
    """The entry of a store that was just made."""
    nothing: dict[str, Any] = dict.fromkeys(
        ("digest_before", "digest_after", "root_before", "fingerprint", "subject")
    )
    return Entry.hashed(
        **nothing,
        sequence=0,
        kind="new",
        time=now(),
        keys=(),
        rows=0,
        classes={},
        held=0,
        unknown=0,
        root_after=root_text(0),
        generation=generation,
        sha256=sha256,
        revealing=False,
        origin=origin,
        previous="0" * 64,
    )
