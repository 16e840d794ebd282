"""Making a store: aside, and then in one step where it belongs."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sklearn.base import clone, is_classifier

from traceless.estimators.least_squares import LeastSquares
from traceless.estimators.path_svc import PathSVC
from traceless.files import saving
from traceless.knowledge.fingerprint import Fingerprint
from traceless.store.entries import Entry, hash_of, now
from traceless.store.folder import made_aside
from traceless.store.ledger import create
from traceless.store.lock import check_system
from traceless.store.rows import Printer, checked_secret, checksum_text, new_secret

VERSION = 2  # of the rules by which rows are known; what was made by version 1 does not say so


def make(path: Path, estimator: Any, about: Mapping[str, Any] | None, secret: Any) -> None:
    """Make the folder of a new store."""
    check_system()
    estimator = _checked(estimator)
    secret = new_secret() if secret is None else checked_secret(secret)
    with made_aside(Path(path)) as folder:
        folder.keep_secret(secret)
        generation, sha256 = folder.write(estimator, 0)
        origin = {
            "version": VERSION,
            "store": secrets.token_hex(16),
            "created": now(),
            "model": saving.described(estimator),
            "task": "classification" if is_classifier(estimator) else "regression",
            "about": dict(about or {}),
            "secret": Printer(secret, True).request("secret"),
        }
        create(folder.ledger, origin, _first(hash_of(origin), generation, sha256))


def _checked(estimator: Any) -> Any:
    """A copy of an estimator that can live in a store."""
    name = type(estimator).__name__
    if not isinstance(estimator, LeastSquares | PathSVC):
        raise TypeError(
            f"A store needs an estimator that can forget any row, LSSVC(), LSSVR() or PathSVC(), "
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
    if isinstance(estimator, PathSVC):  # which is known by its rows
        return clone(estimator)
    Fingerprint(b"")  # or it says what to install
    return clone(estimator).set_params(fingerprint=True)


def _first(origin: str, generation: str, sha256: str) -> Entry:
    """The entry of a store that was just made."""
    nothing: dict[str, Any] = dict.fromkeys(
        (
            *("digest_before", "digest_after", "root_before", "root_after"),
            *("request", "subject"),
        )
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
        alive=checksum_text(0),
        generation=generation,
        sha256=sha256,
        revealing=False,
        origin=origin,
        previous="0" * 64,
    )
