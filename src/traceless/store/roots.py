"""What proves the rows of a model: one hash, whatever the model is.

    root = SHA-256 of the fingerprint of the rows     for models that keep sums (LSSVC, LSSVR)
         = the digest of the model                    for models that keep rows (PathSVC)

The digest of the model says the same and more: it has the fingerprint, or the rows, in it. The
root alone tells whether rows differ, or sums that should be theirs.
"""

from __future__ import annotations

import hashlib
from typing import Any

from traceless.knowledge.fingerprint import to_bytes


def held(model: Any) -> int:
    """How many rows a model holds."""
    return int(getattr(model, "n_samples_", 0))


def digest_of(model: Any) -> str | None:
    """The digest of a model; one of no rows has none."""
    return str(model.digest()) if held(model) else None


def root_of(model: Any) -> str | None:
    """The root over the rows of a model; None if it has none, or sums without a fingerprint."""
    if not held(model):
        return None
    if not hasattr(type(model), "knowledge_"):
        return digest_of(model)
    lanes = model.knowledge_.fingerprint
    return None if lanes is None else hashlib.sha256(to_bytes(lanes)).hexdigest()
