"""Open a file of a model: read, audit, and only then construct.

Files are data. What is in one is looked up in a closed list of kinds, every fact is checked by
type and range and against the shapes of the tensors, and nothing larger than the file is made
before that: no code is run, nothing is imported by name, and no path in a file is followed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from traceless.exceptions import FileError
from traceless.files import container
from traceless.loading.descriptions import from_description
from traceless.loading.kinds import made
from traceless.loading.version_1 import upgraded, warn_of_changes

__all__ = ["constructed", "from_description", "load"]


def load(path: Any) -> Any:
    """What `save` wrote to a file: an estimator, as it was, or a piece of knowledge.

    Parameters
    ----------
    path : str or path

    Returns
    -------
    LSSVC, LSSVR, PathSVC, SlidingWindow or Knowledge
        With the same parameters, digest and predictions, ready to go on learning and forgetting.

    Raises
    ------
    FileError
        If the file is not one of traceless, was written by a newer version, or is not to the
        last byte what was written.

    Warns
    -----
    UserWarning
        If the file is of version 1 and has fractional weights, or slices merged without a name:
        the message says how rows learned then are forgotten exactly.

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
        out = constructed(contents)
    except FileError as error:
        raise FileError(f"{path}: {error}") from None
    if contents.version == 1:
        warn_of_changes(contents, path)
    return out


def constructed(contents: container.Contents) -> Any:
    """What a file that has been read holds, audited and made."""
    try:
        contents = upgraded(contents) if contents.version == 1 else contents
        with np.errstate(all="ignore"):  # numbers may be absurd until they have been looked at
            out = made(contents.kind, contents.facts, contents.tensors)
        _check_same(contents, *out._pieces())
    except (ValueError, TypeError, ArithmeticError, LookupError, RecursionError) as error:
        raise FileError(f"what the file says cannot be: {error}") from None
    return out


def _check_same(contents: container.Contents, facts: Any, tensors: container.Tensors) -> None:
    """There is one file for a model: taken apart again, it is what was read."""
    same = container.canonical_json(facts) == container.canonical_json(contents.facts)
    if not same or tensors.keys() != contents.tensors.keys():
        raise ValueError("it would be written otherwise.")
    for name, tensor in tensors.items():
        found = contents.tensors[name]
        if tensor.shape != found.shape or tensor.tobytes() != found.tobytes():
            raise ValueError(f"its {name} would be written otherwise.")
