"""How a feature map from elsewhere is recognised: by its codes for fixed rows.

The maps of this package are known by their name and `version`. Anybody may write another class of
that name, or change what theirs computes, so these are also known by a SHA-256 of their steps and
of their codes for 16 rows x_0 … x_15 of the width they are bound to,

    x_0j = 0,     x_rj = ((2654435761 k mod 2^32) div 2^23 - 256) 2^(2 (r mod 4) - 10),  k = r n + j

multiples of powers of two up to 1/4, 1, 4 and 16 in turn. Each row is coded by itself. Codes that
are refused (NaN, infinite, beyond 2^53) count as one value, and so does a row at which the map
raises. Two maps with equal probes may still differ elsewhere; with different ones they are not
the same map.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np

from traceless.arithmetic.integers import LARGEST, Floats

if TYPE_CHECKING:
    from traceless.features.bound_map import BoundMap

_ROWS = 16


def probe_rows(n_features: int) -> Iterator[Floats]:
    """The rows, one at a time, of shape (1, n_features)."""
    columns = np.arange(n_features, dtype=np.uint64)
    yield np.zeros((1, n_features))
    for r in range(1, _ROWS):
        spread = (columns + np.uint64(r * n_features)) * np.uint64(2654435761) % np.uint64(2**32)
        whole = (spread // np.uint64(2**23)).astype(np.float64) - 256.0
        yield np.ldexp(whole, 2 * (r % 4) - 10)[None]


def probe(phi: BoundMap, name: str) -> str:
    """The hash of the codes; for a map that refuses all the rows, its name."""
    found = sha256(np.asarray(phi.steps, dtype="<f8").tobytes())
    refused = 0
    # warnings about these rows concern nobody, and must not depend on the filters
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for x in probe_rows(phi.n_features):
            codes = np.empty((1, len(phi.steps)))
            try:
                phi.encode(x, codes)
            except Exception:
                refused += 1
                found.update(b"refused")
            else:
                held = np.abs(codes) <= LARGEST
                found.update(np.where(held, codes + 0.0, 2 * LARGEST).astype("<f8").tobytes())
    return found.hexdigest() if refused < _ROWS else f"refused by {name}"
