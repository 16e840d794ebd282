"""Create a store in a folder aside, which then takes its place in one step."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sklearn.base import clone, is_regressor

from traceless.estimators.least_squares import LeastSquares
from traceless.estimators.path_machine import PathMachine
from traceless.files import saving
from traceless.knowledge.fingerprint import Fingerprint
from traceless.store import keys
from traceless.store.entries import Entry, ModelState, check_text, hash_of, now
from traceless.store.folder import SECRET_BYTES, new_folder
from traceless.store.lock import check_system
from traceless.store.opening import create
from traceless.store.row_digests import RowHasher
from traceless.store.row_table import lanes_text, no_lanes
from traceless.store.suppression import expiry

VERSION = 1


def create_store(
    path: Path,
    estimator: Any,
    about: Mapping[str, Any] | None,
    secret: Any,
    shared: bool = False,
    signing_key: Any = None,
    suppress: str | None = None,
) -> None:
    """Create the folder of a new store."""
    check_system()
    check_text(json.dumps(dict(about or {}), ensure_ascii=False), "about")
    if suppress is not None:
        expiry(suppress)  # raises unless it is a period
    key, inside = keys.chosen(signing_key)
    estimator = _checked(estimator)
    secret = os.urandom(SECRET_BYTES) if secret is None else secret
    if not isinstance(secret, bytes) or len(secret) != SECRET_BYTES:
        got = f"{len(secret)} bytes" if isinstance(secret, bytes) else type(secret).__name__
        raise ValueError(
            f"secret must be {SECRET_BYTES} random bytes, such as os.urandom({SECRET_BYTES}), got "
            f"{got}."
        )
    with new_folder(path, shared) as folder:
        folder.write_private("secret", secret)
        if inside:
            folder.write_private("key", key.pem())
        generation, sha256 = folder.write(estimator, 0)
        origin = {
            "version": VERSION,
            "store": secrets.token_hex(16),
            "created": now(),
            "model": saving.described(estimator),
            "task": "regression" if is_regressor(estimator) else "classification",
            "about": dict(about or {}),
            "suppress": suppress,
            "secret": RowHasher(secret, classifies=True).request("secret"),
            "key": key.public,
        }
        document = json.dumps(origin, indent=1)
        said = {"kind": "new", "records": lanes_text(no_lanes()), "signer": key.public}
        said |= {"generation": generation, "sha256": sha256, "origin": hash_of(document.encode())}
        first = Entry.after(None, ModelState.of(estimator), key, **said)
        create(folder.ledger, document, first, key)


def _checked(estimator: Any) -> Any:
    """A copy of an estimator that a store can hold."""
    name = type(estimator).__name__
    if not isinstance(estimator, LeastSquares | PathMachine):
        raise TypeError(
            f"A store needs an estimator that can forget any row, LSSVC(), LSSVR() or PathSVC(), "
            f"got {name}."
        )
    if hasattr(estimator, "n_samples_"):
        raise ValueError(
            f"This {name} has learned rows already, which the store would not know. Give one that "
            "has not learned anything, and then merge this one."
        )
    if getattr(estimator, "kernel", None) == "precomputed":
        raise ValueError(
            "Rows of a precomputed kernel cannot be recognised by their values. Use kernel='rbf', "
            "'linear' or 'poly'."
        )
    if isinstance(estimator, PathMachine):  # its digest is one of its rows
        return clone(estimator)
    Fingerprint(b"")  # raises, with the name of the extra, if its library is not installed
    return clone(estimator).set_params(fingerprint=True)
