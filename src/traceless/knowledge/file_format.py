"""The file format of knowledge: how it is written, and how it is read back.

A file may say anything: what is read is checked to be integers that rows could have added up to,
in the one form in which they are kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic import integers
from traceless.features.grid import grid_steps
from traceless.files import facts, saving
from traceless.knowledge.fingerprint import LANES, Lanes, from_bytes, to_bytes
from traceless.knowledge.responses import Label, Task, check_one_type
from traceless.knowledge.sample_weights import FINEST
from traceless.knowledge.sums import Knowledge

Tensors = Mapping[str, NDArray[Any]]
_LONGEST = 128  # bytes of a sum: products of codes (2^106), weights and 2^62 rows take far fewer
_WIDEST_OF_NONE = 2**20  # features of knowledge without rows, whose width no bytes stand behind
_PARTS = {"specification", "task", "responses", "counts", "weight_bits"}


def read(said: Any, tensors: Tensors) -> Knowledge:
    """What was written; no rows may add up to it, which `check_possible` sees."""
    said = facts.named(said, _PARTS)
    task = _task(said["task"])
    names, counts = responses(said["responses"], said["counts"], task)
    triangles = sums_in(tensors, "sums")
    known = Knowledge(
        _specification(said["specification"], task),
        task,
        names,
        counts,
        integers.unpacked(triangles, width_of(triangles.shape[-1])),
        facts.whole(said["weight_bits"], 0, FINEST),
        _fingerprint(tensors),
    )
    _check_form(known)
    return known


def written(known: Knowledge) -> saving.Pieces:
    """What a file needs to make knowledge again."""
    said = {
        "specification": dict(known.specification),
        "task": known.task,
        "responses": saving.labels(known.responses),
        "counts": list(known.counts),
        "weight_bits": known.weight_bits,
    }
    tensors = {"sums": integers.to_tensor(integers.packed(known.sums))}
    if known.fingerprint is not None:
        lanes = np.frombuffer(to_bytes(known.fingerprint), dtype=np.uint8)
        tensors["fingerprint"] = lanes
    return said, tensors


def classes(values: Any) -> tuple[Label, ...]:
    """Labels of one type, in order, each once."""
    found = tuple(saving.label_from(value) for value in facts.several(values))
    check_one_type(found)
    if any(not a < b for a, b in pairwise(found)):
        raise ValueError(f"the labels are not in order: {facts.short(found)}.")
    return found


def responses(names: Any, counts: Any, task: Task) -> tuple[tuple[Label, ...], tuple[int, ...]]:
    """Labels (or numbers of targets), and how many rows there are of each (or at all)."""
    found = classes(names)
    rows = [facts.whole(n, -facts.LARGEST) for n in facts.several(counts)]
    if task == "regression" and found != tuple(range(max(1, len(found)))):
        raise ValueError("targets are not numbered 0, 1, 2 and so on.")
    if len(rows) != (len(found) if task == "classification" else 1):
        raise ValueError(f"{len(rows)} counts for {len(found)} responses.")
    return found, tuple(rows)


def width_of(triangle: int) -> int:
    """The width of a matrix from the size of its triangle."""
    width = (math.isqrt(8 * triangle + 1) - 1) // 2
    if width * (width + 1) // 2 != triangle:
        raise ValueError(f"{triangle} numbers are no triangle.")
    return width


def _task(said: Any) -> Task:
    if said not in ("classification", "regression"):
        raise ValueError("there is no such task.")
    out: Task = said
    return out


def _specification(said: Any, task: Task) -> dict[str, Any]:
    targets = {"target_resolution"} if task == "regression" else set()
    out = facts.named(said, {"features", "n_features"} | targets)
    features = facts.named(out["features"], {"map", "version"}, set(out["features"]))
    facts.text(features["map"])
    facts.whole(features["version"])
    facts.whole(out["n_features"], 0, 2**48)
    if targets:
        grid_steps(facts.number(out["target_resolution"]), 1, "target_resolution")
    return out


def sums_of(tensors: Tensors) -> list[str]:
    """The names of the tensors that knowledge has: sums, and a fingerprint of its rows or none."""
    return ["sums", *({"fingerprint"} & set(tensors))]


def sums_in(tensors: Tensors, name: str) -> NDArray[Any]:
    """Triangles, one or one for each class: int64, or Python integers that need more."""
    found = tensors.get(name)
    wide = found is not None and found.dtype == np.uint8
    if found is None or found.dtype.kind == "f" or found.ndim - wide not in (1, 2):
        raise ValueError("there are no sums that could be read.")
    if not len(found) and (wide or width_of(found.shape[-1]) > _WIDEST_OF_NONE):
        raise ValueError(f"there are no sums of shape {found.shape}.")
    if not wide:
        facts.within("sums", found, 1 - 2**63, 2**63 - 1)
    elif not 8 < found.shape[-1] <= _LONGEST:
        raise ValueError(f"no sum takes {found.shape[-1]} bytes: int64 has 8, all {_LONGEST}.")
    return integers.from_tensor(found)


def _fingerprint(tensors: Tensors) -> Lanes | None:
    if "fingerprint" not in tensors:
        return None
    return from_bytes(facts.tensor(tensors, "fingerprint", "u", (2 * LANES,)).tobytes())


def _check_form(known: Knowledge) -> None:
    """Raise unless it is in the form that knowledge has after every operation."""
    K, J = len(known.responses), known.n_outputs
    by_class = known.classwise
    if by_class and (known.task == "regression" or len(known.sums) != K):
        raise ValueError(f"{len(known.sums)} matrices cannot be those of {K} classes.")
    if J < 1:
        raise ValueError(f"sums for {J} features.")
    classes = known.sums[J:, J:] if known.task == "classification" and not by_class else None
    if classes is not None and (classes != np.diag(classes.diagonal())).any():
        raise ValueError("a row cannot be of two classes.")
    if known.specification["features"].get("bias") is True and not _constant(known):
        raise ValueError("the sums of the constant feature are not those of the rows.")
    canonical = known._canonical()
    if canonical.responses != known.responses or canonical.weight_bits != known.weight_bits:
        raise ValueError("there are classes without rows, or units finer than need be.")


def _constant(known: Knowledge) -> bool:
    """Whether the last feature is 1 for every row: its sums are those of the responses."""
    J = known.n_outputs
    if known.classwise:
        return np.array_equal(known.sums[:, J - 1], known.sums[:, J])
    if known.task == "regression":
        return True  # there is nothing beside it that counts
    return np.array_equal(known.sums[J - 1], known.sums[J:].sum(axis=0))
