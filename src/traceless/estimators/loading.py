"""Open a file of a model: read, audit, and only then construct.

Files are data. What is in one is looked up in a closed list of kinds, every fact is checked by
type and range and against the shapes of the tensors, and nothing larger than the file is made
before that: no code is run, nothing is imported by name, and no path in a file is followed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceless.estimators import file_format
from traceless.estimators.least_squares import LeastSquares
from traceless.estimators.lssvm import LSSVC, LSSVR
from traceless.estimators.path_one_class import PathOneClass
from traceless.estimators.path_svc import PathSVC
from traceless.estimators.path_svr import PathSVR
from traceless.estimators.sliding_window import SlidingWindow
from traceless.exceptions import FileError
from traceless.features import MAPS
from traceless.features.table import table_of
from traceless.files import container, facts, limits, saving
from traceless.hinge.file_format import restore_hinge
from traceless.knowledge import file_format as knowledge_format
from traceless.knowledge.training_rows import TrainingRows

__all__ = ["check_size", "constructed", "from_description", "load"]

Tensors = Mapping[str, NDArray[Any]]
_KINDS = (LSSVC, LSSVR, PathSVC, PathSVR, PathOneClass, SlidingWindow)
_ESTIMATORS = {kind.__name__: kind for kind in _KINDS}


def load(path: Any) -> Any:
    """What `save` wrote to a file: an estimator, as it was, or a piece of knowledge.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    LSSVC, LSSVR, PathSVC, PathSVR, PathOneClass, SlidingWindow or Knowledge
        With the same parameters, digest and predictions, ready to go on learning and forgetting.

    Raises
    ------
    FileError
        If the file is not one of traceless, was written by a newer version, or is not to the
        last byte what was written.

    Examples
    --------
    >>> import tempfile
    >>> import traceless
    >>> clf = traceless.LSSVC().fit([[0.0], [1.0]], ["no", "yes"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sha256 = clf.save(f"{folder}/model.traceless")
    ...     again = traceless.load(f"{folder}/model.traceless")
    >>> again.digest() == clf.digest()
    True
    """
    contents = container.read(path)
    try:
        return constructed(contents)
    except FileError as error:
        raise FileError(f"{path}: {error}") from None


def constructed(contents: container.Contents) -> Any:
    """What a file that has been read holds, audited and made.

    There is one file for a model. So what was made is taken apart again and compared with what
    was read: a name or a tensor too many, or a value of another type, shows in that.
    """
    try:
        with np.errstate(all="ignore"):  # numbers may be absurd until they have been looked at
            out = _made(contents.kind, contents.facts, contents.tensors)
        said, tensors = out._pieces()
        same = container.canonical_json(said) == container.canonical_json(contents.facts)
        if not same or tensors.keys() != contents.tensors.keys():
            raise ValueError("the file is not in canonical form.")
        for name, tensor in tensors.items():
            found = contents.tensors[name]
            if tensor.shape != found.shape or tensor.tobytes() != found.tobytes():
                raise ValueError(f"its {name} is not in canonical form.")
    except LookupError as error:
        raise FileError(f"what the file says cannot be: it has no {error}.") from None
    except (ValueError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise FileError(f"what the file says cannot be: {error}") from None
    return out


def from_description(description: Any) -> Any:
    """The estimator that `saving.described` described; it has learned nothing.

    Parameters
    ----------
    description : dict
        In JSON's types: ``kind`` and ``parameters``.
    """
    if not isinstance(description, dict) or description.keys() != {"kind", "parameters"}:
        raise ValueError(f"expected kind and parameters, got {facts.short(description)}.")
    kind, parameters = str(description["kind"]), description["parameters"]
    try:
        estimator = saving.made(kind, parameters, _ESTIMATORS, MAPS)
        same = parameters == saving.parameters(estimator)
    except (LookupError, AttributeError, RecursionError):
        same = False
    if not same:
        raise ValueError(f"expected other parameters than {facts.short(parameters)}.")
    return estimator


def check_size(estimator: Any, n_columns: int) -> None:
    """Raise if a described estimator would take too much memory to learn rows of so many columns.

    Somebody else chose its number of features, and its sums are those of each of them with each.
    """
    if isinstance(estimator, LeastSquares):
        n = estimator._map().n_outputs(n_columns)
        what = f"A model with {n} features ({type(estimator._map()).__name__})"
        if said := limits.refusal(what, 8 * n * n):
            raise FileError(said)


def _made(kind: str, said: Any, tensors: Tensors) -> Any:
    """What a file of a kind holds."""
    if kind == "Knowledge":
        return knowledge_format.read(said, tensors)
    estimator = saving.made(kind, said["parameters"], _ESTIMATORS, MAPS)
    if "state" not in said:
        return estimator
    n, names = said["columns"]["n"], said["columns"]["names"]
    if type(n) is not int or not 0 <= n <= 2**48:
        raise ValueError(f"rows of {facts.short(n)} columns.")
    estimator.n_features_in_ = n
    if names is not None:
        if len(names) != n:
            raise ValueError(f"{len(names)} names for {n} columns.")
        estimator.feature_names_in_ = np.array(names, dtype=object)
    if isinstance(estimator, SlidingWindow):
        _restore_window(estimator, said["state"], tensors)
    elif isinstance(estimator, LeastSquares):
        file_format.restore(estimator, said, tensors)
    else:
        restore_hinge(estimator, said["state"], tensors)
        file_format.restore_label_type(estimator, said)
    return estimator


def _restore_window(window: SlidingWindow, said: Any, tensors: Tensors) -> None:
    kind, inside = type(window.estimator).__name__, "estimator."
    theirs = {name.removeprefix(inside): t for name, t in tensors.items() if inside in name}
    ours = {name: tensor for name, tensor in tensors.items() if inside not in name}
    inner = _made(kind, said["estimator"], theirs)
    absent = table_of(window.estimator) is not None
    rows = TrainingRows.of(knowledge_format.rows_from(said, ours, window.n_features_in_, absent))
    if (
        not len(rows) == inner.n_samples_ <= window.size
        or inner.n_features_in_ != window.n_features_in_
        or (rows.y.dtype.kind != "f") != hasattr(inner, "classes_")
    ):
        raise ValueError("the window does not hold the rows of its estimator.")
    window._model, window._rows = inner, rows
