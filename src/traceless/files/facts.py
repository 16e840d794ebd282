"""Facts and tensors of a file: each function returns what it was given, or raises ValueError."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

LARGEST = 2**62


def named(facts: Any, needed: set[str]) -> dict[str, Any]:
    """A mapping with exactly these names."""
    if not isinstance(facts, dict) or facts.keys() != needed:
        raise ValueError(f"expected {sorted(needed)}, got {short(facts)}.")
    return facts


def whole(value: Any, low: int = 0, high: int = LARGEST) -> int:
    """A whole number."""
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"expected a whole number from {low} to {high}, got {short(value)}.")
    return value


def number(value: Any, low: float = -math.inf) -> float:
    """A finite number."""
    if type(value) not in (int, float) or not low <= float(value) < math.inf:
        least = "" if low == -math.inf else f" of at least {low}"
        raise ValueError(f"expected a finite number{least}, got {short(value)}.")
    return float(value)


def tensor(
    tensors: Mapping[str, NDArray[Any]],
    name: str,
    kind: str,
    shape: tuple[int | None, ...],
    absent: bool = False,
) -> NDArray[Any]:
    """A tensor of a kind ("f" or "i") and shape, in which None stands for any length.

    `absent`: whether NaN, in its one pattern of bits, may stand for absent values.
    """
    found = tensors.get(name)
    expected = f"expected a tensor {name!r} of shape {shape}"
    if found is None:
        raise ValueError(f"{expected}, got no tensor.")
    same = found.dtype.kind == kind and found.ndim == len(shape)
    if not same or any(
        wanted not in (None, n) for n, wanted in zip(found.shape, shape, strict=True)
    ):
        raise ValueError(f"{expected}, got one of {found.dtype} and shape {found.shape}.")
    if absent:
        found = np.where(np.isnan(found), np.nan, found)
    finite = ~np.isinf(found) if absent else np.isfinite(found)
    if kind == "f" and not finite.all():
        raise ValueError(f"the tensor {name!r} has NaN or infinity.")
    return found


def within(name: str, values: NDArray[Any], low: Any, high: Any) -> NDArray[Any]:
    """Values that are all from low to high."""
    if not ((values >= low) & (values <= high)).all():
        raise ValueError(f"the tensor {name!r} has values that are not from {low} to {high}.")
    return values


def only(tensors: Mapping[str, Any], *used: str) -> None:
    """No tensor but these."""
    if set(tensors) != set(used):
        raise ValueError(f"expected the tensors {sorted(used)}, got {sorted(tensors)}.")


def short(value: Any) -> str:
    """A value for a message, whatever its size."""
    said = repr(value) if not isinstance(value, int) or abs(value) < LARGEST * 2 else "a huge one"
    return said if len(said) <= 80 else f"{said[:77]}..."
