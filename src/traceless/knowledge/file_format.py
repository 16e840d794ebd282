"""Reading knowledge from a file; `Knowledge._pieces` says what is written. And training rows.

A file may say anything: what is read is checked to be integers that rows could have added up to,
in the one form in which they are kept.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from traceless.arithmetic import integers
from traceless.arithmetic.integers import Integers, Sums, wide
from traceless.features.grid import grid_step
from traceless.files import facts, saving
from traceless.knowledge.fingerprint import LANES, from_bytes
from traceless.knowledge.responses import SAID, Label, Task, indicators, label_array
from traceless.knowledge.sample_weights import FINEST
from traceless.knowledge.sums import Knowledge
from traceless.knowledge.training_rows import Batch, plain_labels, plain_values

Tensors = Mapping[str, NDArray[Any]]
_LONGEST = 16  # bytes of a sum
_WIDEST_OF_NONE = 2**20  # features of knowledge without rows, whose width no bytes stand behind
_SPECIFICATION = {"features", "n_features"}


def read(said: Any, tensors: Tensors) -> Knowledge:
    """Knowledge from a file; `check_possible` then says whether any rows add up to it."""
    specification, task = said["specification"], said["task"]
    features = specification["features"]
    targets = {"target_resolution"} if task == "regression" else set()
    if task not in SAID or not isinstance(features["map"], str):
        raise ValueError("there is no such task or feature map.")
    if specification.keys() != _SPECIFICATION | targets:
        raise ValueError(f"a {task} has no specification {facts.short(specification)}.")
    facts.whole(specification["n_features"], 0, 2**48)
    facts.whole(features["version"])
    bits = facts.whole(said["weight_bits"], 0, FINEST)
    for resolution in map(specification.get, targets):
        grid_step(facts.number(resolution), "target_resolution")
    triangles, lanes = sums_in(tensors, "sums"), None
    names, counts = responses(said["responses"], said["counts"], task)
    sums = integers.unpacked(triangles, width_of(triangles.shape[-1]))
    if "fingerprint" in tensors:
        lanes = from_bytes(facts.tensor(tensors, "fingerprint", "u", (2 * LANES,)).tobytes())
    _check_form(sums, len(names), task, features.get("bias") is True)
    known = Knowledge(specification, task, names, counts, sums, bits, lanes)
    canonical = known._canonical()
    if canonical.responses != names or canonical.weight_bits != bits:
        raise ValueError("there are classes without rows, or units finer than need be.")
    return known


def classes(values: Any) -> tuple[Label, ...]:
    """Labels of one type, in order, each once."""
    found = saving.labels_from(values)
    if len({*map(type, found)}) > 1 or list(found) != sorted({*found}):
        raise ValueError(f"labels of several types, or not in order: {facts.short(found)}.")
    return found


def responses(
    names: list[Any], counts: list[Any], task: Task
) -> tuple[tuple[Label, ...], tuple[int, ...]]:
    """Labels (or numbers of targets), and how many rows there are of each (or at all)."""
    found, rows = classes(names), tuple([facts.whole(n, -facts.LARGEST) for n in counts])
    least = {"classification": 0, "regression": 1, "multilabel": 3}[task]
    if task != "classification" and found != tuple(range(max(least, len(found)))):
        raise ValueError("targets or labels are not numbered 0, 1, 2 and so on.")
    if len(rows) != (1 if task == "regression" else len(found)):
        raise ValueError(f"{len(rows)} counts for {len(found)} responses.")
    return found, rows


def classes_of(values: Any, codes: Integers) -> NDArray[Any]:
    """Labels of rows that have these numbers of their classes; every class has a row."""
    found = classes(values)
    facts.within("labels", codes, 0, len(found) - 1)
    if len(np.unique(codes)) != len(found):
        raise ValueError("there is a class without rows.")
    return label_array(found) if found else np.zeros(0, dtype=np.int64)


def width_of(triangle: int) -> int:
    """The width of a matrix from the size of its triangle."""
    width = (math.isqrt(8 * triangle + 1) - 1) // 2
    if width * (width + 1) // 2 != triangle:
        raise ValueError(f"{triangle} numbers are no triangle.")
    return width


def sums_in(tensors: Tensors, name: str) -> Sums:
    """Triangles, one or one for each class: int64, or bytes beyond."""
    found = tensors.get(name)
    wide = found is not None and found.dtype == np.uint8
    if found is None or found.dtype.kind == "f" or found.ndim - wide not in (1, 2):
        raise ValueError("there are no sums that could be read.")
    if not len(found) and (wide or width_of(found.shape[-1]) > _WIDEST_OF_NONE):
        raise ValueError(f"there are no sums of shape {found.shape}.")
    if not wide:
        if (found == -(2**63)).any():  # int64 has no 2^63, so it could not be negated
            raise ValueError("there is a sum of -2^63.")
        return found
    if not 8 < found.shape[-1] <= _LONGEST:
        raise ValueError(f"no sum takes {found.shape[-1]} bytes: int64 has 8, all {_LONGEST}.")
    return integers.from_tensor(found)


def row_pieces(rows: Batch, labelled: bool) -> saving.Pieces:
    """Rows as facts and tensors: values dense or by place, labels by number."""
    X, y, weight = rows
    said: dict[str, Any] = {"classes": None}
    tensors: dict[str, Any] = {"weights": weight}
    if sparse.issparse(X):
        tensors |= {"places": X.indices.astype(np.int64), "ends": X.indptr[1:].astype(np.int64)}
        X = X.data
    if labelled and y.ndim == 1:
        names, y = np.unique(plain_labels(y), return_inverse=True)
        said["classes"] = saving.labels(names.tolist())
    kind = np.int64 if labelled else np.float64
    return said, tensors | {"rows": X.astype(np.float64), "responses": y.astype(kind)}


def rows_from(
    said: Any, tensors: Mapping[str, Any], n_features: int, absent: bool = False
) -> Batch:
    """The rows that `row_pieces` wrote, checked; some values may be `absent`."""
    weight = facts.tensor(tensors, "weights", "f", (None,))
    X = _values(tensors, (len(weight), n_features), absent)
    if said["classes"] is None:
        found = tensors["responses"]
        shape = (len(weight), None) if found.ndim == 2 else (len(weight),)
        kind = "i" if found.dtype.kind == "i" else "f"  # several labels for each row, or targets
        y = facts.tensor(tensors, "responses", kind, shape) + 0
        if kind == "i":
            indicators(y)  # raises if it is no matrix of 0 and 1
    else:
        codes = facts.tensor(tensors, "responses", "i", (len(weight),))
        y = classes_of(said["classes"], codes)[codes]
    if not (weight > 0.0).all():
        raise ValueError("a row of the window has no weight.")
    return plain_values(X), y, weight.copy()


def _values(tensors: Mapping[str, Any], shape: tuple[int, int], absent: bool) -> Any:
    if "ends" not in tensors:
        return facts.tensor(tensors, "rows", "f", shape, absent).copy()
    ends = facts.tensor(tensors, "ends", "i", (shape[0],))
    starts = np.concatenate([[0], ends])
    values = facts.tensor(tensors, "rows", "f", (int(starts[-1]),))
    places = facts.tensor(tensors, "places", "i", values.shape)
    facts.within("places", places, 0, shape[1] - 1)
    facts.within("ends", np.diff(starts), 0, len(values))
    X = sparse.csr_matrix((values.copy(), places, starts), shape=shape)
    if not X.has_canonical_format:
        raise ValueError("places are not in order.")
    return X


def _check_form(sums: Sums, K: int, task: Task, biased: bool) -> None:
    """Raise unless sums for K responses have the form that they have after every operation."""
    classified, several, by_class = task == "classification", task == "multilabel", sums.ndim == 3
    J = sums.shape[-1] - (1 if by_class else K)
    if by_class and not (classified and len(sums) == K):
        raise ValueError(f"{len(sums)} matrices cannot be those of {K} classes.")
    if J < 1:
        raise ValueError(f"sums for {J} features.")
    if classified and not by_class:
        classes = wide(sums[J:, J:])
        if (classes != np.diag(classes.diagonal())).any():
            raise ValueError("a row cannot be of two classes.")
    if several and not np.array_equal(sums.diagonal()[J:], sums[J:, -1]):
        raise ValueError("a row cannot have a label more than once.")
    if (classified or several) and biased:
        # the last feature is 1 for every row, so its sums are those of the responses
        ones = sums[:, J] if by_class else sums[-1] if several else wide(sums[J:]).sum(axis=0)
        if not np.array_equal(wide(sums[..., J - 1, :]), wide(ones)):
            raise ValueError("the sums of the constant feature are not those of the rows.")
