"""Stores of version 1: checked by the rules of that version, and able to learn on.

    version 1                                     now
    root: checksum over keyed digests of rows     SHA-256 of the fingerprint of the rows
    digest: with the `repr` of labels             with their bytes, and with the fingerprint
    labels in digests of rows: `repr`             `ascii`, the same with every Python
    weights: multiples of 2^-16                   20 significant bits

A model made without a fingerprint cannot get one, since its rows are not kept. So its entries
have no root, and its digest tells sums apart, not rows. Such a store still rounds weights as
version 1 did, so that everything it has learned can be forgotten again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from traceless.exceptions import StoreError

if TYPE_CHECKING:
    from traceless.knowledge.sums import Knowledge
    from traceless.store.row_digests import RowBatch

LACKS = "a store of version 1: equal sums, which other rows could have too"
UNSIGNED = (
    "a store before version 3 has no signatures, so whoever could write its folder could also "
    "change its history (traceless upgrade signs it from now on)"
)
UNKNOWN = "one of version 1, which only the traceless that wrote it can compute"


def is_version_1(origin: Mapping[str, Any]) -> bool:
    """Whether the store with this description was made by version 1."""
    return "version" not in origin


def digest_of_model(model: Any) -> str | None:
    """The digest that version 1 gave to a model; None for a `PathSVC`.

    The digest of a `PathSVC` was one of the solution as that version found it.
    """
    known: Any = getattr(model, "knowledge_", None)
    return None if known is None else digest_of_knowledge(known)


def digest_of_knowledge(known: Knowledge) -> str:
    """The digest that version 1 gave to knowledge."""
    from traceless.estimators import version_1

    return version_1.digest(known.without_fingerprint())


def rounded_as_in(origin: Mapping[str, Any], batch: RowBatch) -> RowBatch:
    """X, y and the weights that the store with this description gives the rows."""
    import numpy as np

    from traceless.estimators import version_1
    from traceless.knowledge.sample_weights import rounded_weights

    X, y, weight = batch[:3]
    if weight is None or not is_version_1(origin) or origin["model"]["kind"] == "PathSVC":
        return X, y, weight
    weights = np.asarray(weight, dtype=np.float64)
    old = np.ldexp(np.rint(np.ldexp(weights, version_1.WEIGHT_BITS)), -version_1.WEIGHT_BITS)
    new = rounded_weights(np.atleast_1d(old), old.size)
    if ((old == 0.0) & (weights > 0.0)).any() or not (new is None or np.array_equal(new, old.flat)):
        raise StoreError(
            "This store was made by version 1, which kept weights as multiples of 2^-16, and some "
            "of these are too small or have too many digits for both. Round them to multiples of "
            "2^-16 with at most 20 significant bits, or make a new store. Nothing was changed."
        )
    return X, y, old
