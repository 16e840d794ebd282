"""Files of the path family: rows and solutions, and a kernel matrix only where it was given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from traceless.files import facts
from traceless.files.saving import Pieces, labels
from traceless.hinge.machines import Classifier, Regressor
from traceless.knowledge.file_format import classes_of, width_of

if TYPE_CHECKING:
    from traceless.estimators.path_machine import PathMachine
    from traceless.hinge.model import HingeModel

Tensors = Mapping[str, NDArray[Any]]
_TENSORS = {"rows", "weights", "ids", "last_ids"}
_TENSORS |= {"alpha", "intercepts"}


def pieces(model: HingeModel) -> Pieces:
    """The facts and tensors that are written of a model."""
    said, tensors = model.content()
    if "classes" in said:
        said |= {"classes": labels(said["classes"].tolist())}
    return said, tensors


def restore_hinge(estimator: PathMachine, said: Any, tensors: Tensors) -> None:
    """Fit an estimator with what a file says, without solving anything."""
    from traceless.hinge.model import HingeModel

    settings = estimator._settings()
    given = {"gram"} if settings.name == "precomputed" else set()
    ours = {"classes": {"labels"}, "numbers": {"targets"}, "none": set[str]()}[estimator._labels]
    facts.only(tensors, *_TENSORS, *given, *ours)
    named = {"classes"} if estimator._labels == "classes" else set()
    said = dict(facts.named(said, {"gamma", "next_id", "n_breakpoints"} | named))
    said["gamma"] = facts.number(said["gamma"], 0.0)
    facts.whole(said["n_breakpoints"])
    n, width = _check_rows(tensors, facts.whole(said["next_id"]))
    if given:
        width = n
        _check_gram(tensors)
    expected = estimator.n_features_in_
    if estimator.table is not None:
        expected = estimator.table.width(expected)
    if width != expected:
        raise ValueError(f"rows of {width} columns, where {expected} are expected.")
    if isinstance(settings.machine, Classifier):
        codes = facts.tensor(tensors, "labels", "i", (len(tensors["ids"]),))
        said["classes"] = classes_of(said["classes"], codes)
    elif isinstance(settings.machine, Regressor):
        targets = facts.tensor(tensors, "targets", "f", (len(tensors["ids"]),))
        if (np.signbit(targets) & (targets == 0.0)).any():
            raise ValueError("a target is a zero with a sign.")
    facts.tensor(tensors, "intercepts", "f", (None,))  # `restored` counts all against rows
    facts.within("alpha", facts.tensor(tensors, "alpha", "f", (None,)), 0.0, np.inf)
    last = facts.tensor(tensors, "last_ids", "i", (None,))
    estimator.last_ids_ = facts.within("last_ids", last, -1, said["next_id"] - 1).copy()
    estimator._model = HingeModel.restored(settings, said, tensors)
    estimator._tell(estimator._model)


def _check_rows(tensors: Tensors, next_id: int) -> tuple[int, int]:
    """Check the rows; returns their shape."""
    X = facts.tensor(tensors, "rows", "f", (None, None))
    n, width = X.shape
    if not width or (np.signbit(X) & (X == 0.0)).any():
        raise ValueError("rows have no columns, or a zero with a sign.")
    weight = facts.tensor(tensors, "weights", "f", (n,))
    ids = facts.tensor(tensors, "ids", "i", (n,))
    if not (weight > 0.0).all() or (np.diff(ids) <= 0).any():
        raise ValueError("weights are not positive, or ids not in order.")
    facts.within("ids", ids, 0, next_id - 1)
    return n, width


def _check_gram(tensors: Tensors) -> None:
    """Check the kernel matrix; rows are then numbers of its rows."""
    n = len(facts.tensor(tensors, "gram", "f", (None,)))
    size, points = width_of(n), tensors["rows"][:, 0]
    if tensors["rows"].shape[1] != 1 or (points != np.rint(points)).any():
        raise ValueError("points are not numbered.")
    facts.within("rows", points, 0, size - 1)
    if len(np.unique(points)) < len(points):
        raise ValueError("two points have one number.")
