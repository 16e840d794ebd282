"""A feature map for rows of a given width, with its tables made: rows in, integer codes out."""

from __future__ import annotations

import hashlib
import json
import math
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property, partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_matrix, hstack

from traceless.arithmetic.integers import LARGEST, Floats, energy, peak
from traceless.features.grid import dense_rows, encode_linear, refuse

if TYPE_CHECKING:
    from traceless.features.feature_map import FeatureMap

Encoder = Callable[[Floats, Floats], None]
_PROBES = 16
PROBE = "codes of the probe rows"  # in a specification: no parameter can have such a name
_SCALARS = {bool, int, float, str, type(None)}  # parameters that nobody can change in place


@dataclass(frozen=True)
class BoundMap:
    """A feature map for a given number of columns, with all its tables made.

    Attributes
    ----------
    specification : dict
        What fixes the map; see `FeatureMap.specification`.
    n_features : int
        Number of columns of the rows it takes.
    steps : ndarray of shape (n_outputs,)
        Value of one step of each feature: ``φ(x) = steps * codes(x)``.
    has_bias : bool
        Whether the last feature is the constant 1.
    encode : callable
        ``encode(X, out)`` writes the codes of the rows into `out`. Codes that are not
        finite or beyond 2^53 are refused by `codes`.
    kind : type, optional
        The class of the map. Those of this package are known by their specification alone;
        any other is also known by what it computes, see `describe`. A `bind` of your own that
        starts from the bound map of another class must set it to its own.
    made_of : dict or None
        The parameters of a map of this package, to see quickly that they are still the same.
    has_units : bool
        Whether features have the units of columns, so that they are standardised by default.
    """

    specification: Mapping[str, Any]
    n_features: int
    steps: Floats
    has_bias: bool
    encode: Encoder
    kind: type[FeatureMap] | None = None
    made_of: Mapping[str, Any] | None = field(default=None, compare=False)
    has_units: bool = True

    def describe(self) -> dict[str, Any]:
        """The specification together with the number of columns.

        For a map from elsewhere it includes a hash of the codes of fixed rows, which tells apart
        two classes of the same name, or a class before and after an edit.
        """
        features = dict(self.specification)
        if self.kind is None or not is_ours(self.kind):
            features[PROBE] = self._probe
        return {"features": features, "n_features": self.n_features}

    def is_of(self, feature_map: FeatureMap, n_features: int) -> bool:
        """Whether binding this map to so many columns would give the same bound map."""
        if self.n_features != n_features or self.kind is not type(feature_map):
            return False
        now = vars(feature_map)
        if {*map(type, now.values())} <= _SCALARS and now == self.made_of:
            return True
        return specification_digest(self.specification) == feature_map.digest()  # True is not 1

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and skops: a map of this package is bound again, so no code is needed."""
        if self.made_of is not None and self.kind is not None:
            names = self.kind._get_param_names()
            made = self.kind(**{name: self.made_of[name] for name in names})
            if made.digest() == specification_digest(self.specification):  # nobody changed an array
                return {"map": made, "n_features": self.n_features}
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        found = vars(state["map"].bind(state["n_features"])) if "map" in state else state
        self.__dict__.update(found)

    @cached_property
    def _probe(self) -> str:
        """A hash of steps and codes of `probe_rows`; of a map that refuses all of them, its name.

        Codes that are refused (NaN, infinite, beyond 2^53) count as one value, and so does a row at
        which the map raises.
        """
        found, refused = hashlib.sha256(np.asarray(self.steps, dtype="<f8").tobytes()), 0
        # warnings about these rows concern nobody, and must not depend on the filters
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for x in probe_rows(self.n_features):
                codes = np.empty((1, len(self.steps)))
                try:
                    self.encode(x, codes)
                except Exception:
                    refused += 1
                    found.update(b"refused")
                else:
                    held = np.abs(codes) <= LARGEST
                    found.update(np.where(held, codes + 0.0, 2 * LARGEST).astype("<f8").tobytes())
        name = "a map" if self.kind is None else self.kind.__qualname__
        return found.hexdigest() if refused < _PROBES else f"refused by {name}"

    @cached_property
    def scale(self) -> Floats | float | None:
        """Steps per unit, if features are the rounded columns, so that zero has the code 0.

        None for all other maps. The constant feature does not matter.
        """
        encode: Any = self.encode
        if isinstance(encode, partial) and encode.func is encode_bias:
            encode = encode.args[0]
        ours = isinstance(encode, partial) and encode.func is encode_linear
        return encode.args[0] if ours else None

    def sparse_codes(self, X: Any, rows: Any) -> Any:
        """The codes of a CSR matrix as a CSR matrix, if features are the rounded columns.

        None if values must be refused or entries are duplicated: use `codes`, which handles both.
        """
        X = X[rows]
        X = X if X.has_sorted_indices else X.sorted_indices()
        scale = self.scale
        own = scale[X.indices] if isinstance(scale, np.ndarray) else scale
        codes = np.rint(X.data.astype(np.float64) * own)
        if not X.has_canonical_format or not peak(codes) <= LARGEST:
            return None
        found = csr_matrix((codes, X.indices, X.indptr), shape=X.shape)
        return hstack([found, np.ones((X.shape[0], 1))], "csr") if self.has_bias else found

    def codes(self, X: Any, rows: Any = slice(None), out: Floats | None = None) -> Floats:
        """The integer codes of some rows of an array or a CSR matrix, as float64.

        They are written into the first rows of `out`, if given: reused memory is already in the
        cache.
        """
        X = dense_rows(X, rows)
        out = np.empty((len(X), len(self.steps))) if out is None else out[: len(X)]
        self.encode(X, out)
        if not energy(out) <= LARGEST:  # which is mostly enough
            self.check(out, X)
        return out

    def check(self, codes: Floats, X: Floats) -> None:
        """Raise if some codes of X are not finite or beyond 2^53."""
        if not peak(codes) <= LARGEST:
            refuse(codes, self.steps, X, "Feature")


class Later:
    """An encoder whose tables are computed when the first row comes.

    Tables have the size of a row times the number of features, and a file may declare any number
    for either: so they are computed only when such rows come.
    """

    def __init__(self, make: Callable[[], partial[None]]) -> None:
        self._make = make

    @cached_property
    def _made(self) -> partial[None]:
        return self._make()

    @property
    def keywords(self) -> dict[str, Any]:
        """The tables, by name."""
        return self._made.keywords

    def __call__(self, X: Floats, out: Floats) -> None:  # noqa: D102
        self._made(X, out)


def encode_bias(encode: Encoder, X: Floats, out: Floats) -> None:
    """Write the constant feature, and the others before it."""
    out[:, -1] = 1.0
    encode(X, out[:, :-1])


def probe_rows(n_features: int) -> Iterator[Floats]:
    """Rows by whose codes a map from elsewhere is known, one at a time, of shape (1, n_features).

    x_0j = 0,     x_rj = ((2654435761 k mod 2^32) div 2^23 - 256) 2^(2 (r mod 4) - 10),  k = r n + j

    multiples of powers of two up to 1/4, 1, 4 and 16 in turn. The maps of this package are known by
    their name and `version`. Anybody may write another class of that name, or change what theirs
    computes. Two maps with equal codes may still differ elsewhere; with different ones they are not
    the same map.
    """
    columns = np.arange(n_features, dtype=np.uint64)
    yield np.zeros((1, n_features))
    for r in range(1, _PROBES):
        spread = (columns + np.uint64(r * n_features)) * np.uint64(2654435761) % np.uint64(2**32)
        whole = (spread // np.uint64(2**23)).astype(np.float64) - 256.0
        yield np.ldexp(whole, 2 * (r % 4) - 10)[None]


def is_ours(kind: type) -> bool:
    """Whether a class is one of this package, and not just said to be."""
    module = kind.__module__
    inside = module.startswith(f"{__package__}.")
    return inside and getattr(sys.modules.get(module), kind.__name__, None) is kind


def specification_digest(specification: Mapping[str, Any]) -> str:
    """SHA-256 of a specification as canonical JSON."""
    text = json.dumps(specification, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def plain(value: Any) -> Any:
    """A parameter in JSON's types; an array as the hash of its values."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        number = float(value)
        if not math.isfinite(number):
            return str(number)  # JSON has no such numbers, and NaN would not equal itself
        return int(number) if number.is_integer() else number
    if isinstance(value, np.ndarray | list | tuple):
        array = np.asarray(value, dtype="<f8", order="C")
        return {"shape": list(array.shape), "sha256": hashlib.sha256(array.tobytes()).hexdigest()}
    if hasattr(value, "specification"):  # of a map inside a map
        return value.specification()
    raise TypeError(
        f"A feature map's parameters must be numbers, strings or arrays of them, so that "
        f"they can be part of its specification; got {type(value).__name__}."
    )
