"""A `PathSVC` from a file: its rows, and solutions that fit them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic import integers
from traceless.arithmetic.integers import Floats, Integers
from traceless.files import facts
from traceless.hinge.held_rows import HeldRows, numbered
from traceless.knowledge.file_format import classes as classes_from
from traceless.knowledge.file_format import width_of

Tensors = Mapping[str, NDArray[Any]]
_TENSORS = {"rows", "weights", "ids", "labels", "last_ids", "alpha", "slopes", "intercepts"}


def restore_hinge(estimator: Any, said: Any, tensors: Tensors) -> None:
    """Fit an estimator with what a file says, without solving anything."""
    from traceless.hinge.model import Hinge

    settings = estimator._settings()
    given = {"gram"} if settings.precomputed else set()
    facts.only(tensors, *_TENSORS, "residuals", *given)
    said = facts.named(said, {"gamma", "classes", "next_id", "n_breakpoints"})
    rows = _rows(said, tensors)
    gram = _gram(rows, tensors) if settings.precomputed else None
    width = len(rows) if settings.precomputed else rows.X.shape[1]
    if width != estimator.n_features_in_:
        raise ValueError(f"rows of {width} columns, where {estimator.n_features_in_} are expected.")
    model = Hinge.restored(
        rows,
        settings,
        facts.number(said["gamma"], 0.0),
        gram,
        estimator._memory(),
        _solutions(len(rows.classes), settings.strategy, tensors),
        facts.whole(said["n_breakpoints"]),
    )
    last = facts.tensor(tensors, "last_ids", "i", (None,))
    estimator.last_ids_ = facts.within("last_ids", last, -1, rows.next_id - 1).copy()
    estimator._model = model


def _rows(said: Mapping[str, Any], tensors: Tensors) -> HeldRows:
    X = facts.tensor(tensors, "rows", "f", (None, None))
    n, next_id = len(X), facts.whole(said["next_id"])
    if not X.shape[1] or (np.signbit(X) & (X == 0.0)).any():
        raise ValueError("rows have no columns, or a zero with a sign.")
    weight = facts.tensor(tensors, "weights", "f", (n,))
    ids = facts.tensor(tensors, "ids", "i", (n,))
    if not (weight > 0.0).all() or (np.diff(ids) <= 0).any():
        raise ValueError("weights are not positive, or ids not in order.")
    facts.within("ids", ids, 0, next_id - 1)
    y = labels_of(said["classes"], facts.tensor(tensors, "labels", "i", (n,)))
    return HeldRows.restored(X.copy(), y, weight.copy(), ids.copy(), next_id)


def labels_of(classes: Any, codes: Integers) -> NDArray[Any]:
    """Labels from their numbers; every class has one."""
    names = classes_from(classes)
    facts.within("labels", codes, 0, len(names) - 1)
    if len(np.unique(codes)) != len(names):
        raise ValueError("there is a class without rows.")
    return numbered(names, codes) if names else np.zeros(0, dtype=np.int64)


def _gram(rows: HeldRows, tensors: Tensors) -> Floats:
    """The kernel matrix of points that rows are numbers of."""
    triangle = facts.tensor(tensors, "gram", "f", (None,))
    size = width_of(len(triangle))
    points = rows.X[:, 0]
    if rows.X.shape[1] != 1 or (points != np.rint(points)).any():
        raise ValueError("points are not numbered.")
    facts.within("rows", points, 0, size - 1)
    if len(np.unique(points)) < len(points):
        raise ValueError("two points have one number.")
    return integers.unpacked(triangle, size)


def _solutions(n_classes: int, strategy: str, tensors: Tensors) -> dict[str, Floats]:
    """Numbers for each problem; whether there are as many as rows is for the model to see."""
    pairs = n_classes * (n_classes - 1) // 2
    n = pairs if strategy == "ovo" or n_classes <= 2 else n_classes
    alpha = facts.tensor(tensors, "alpha", "f", (None,))
    out = {name: facts.tensor(tensors, name, "f", (n,)) for name in ("intercepts", "residuals")}
    facts.within("alpha", alpha, 0.0, np.inf)
    facts.within("residuals", out["residuals"], 0.0, np.inf)
    return out | {"alpha": alpha, "slopes": facts.tensor(tensors, "slopes", "f", (len(alpha),))}
