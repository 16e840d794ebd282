"""Messages in the words of the command line.

The library's messages are for people who write Python: they name parameters and methods. A command
shows the same message with the options and commands that do the same:

1. Where a message gives both, as ``Store.new (or traceless new)`` and ``batch=True (--batch)``, the
   second is kept.
2. A parameter that is an option of `traceless new` becomes that option: ``solver='cholesky'`` is
   ``--solver cholesky``, and ``standardize=True`` is ``--standardize``.
3. What is left is in `PHRASES`. A test reads all messages that a command can meet, and fails if a
   word of the library is left in one of them.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

_BOTH = re.compile(  # only from where a word begins: a text of one long word takes no longer
    r"(?<![A-Za-z_.])[A-Za-z_.]+(?:\([^()]*\)|=[\w']+)? \((?:or )?((?:traceless |--)[^()]+)\)"
)
_OPTIONS = (
    *("rho", "C", "gamma", "degree", "coef0", "kernel", "strategy", "activation", "solver"),
    *("decision", "weighting", "class_weight", "standardize", "free_intercept", "resolution"),
    *("input_resolution", "target_resolution", "labels", "classes"),
)
_PARAMETER = re.compile(rf"\b({'|'.join(_OPTIONS)})=('[^']*'|\{{\}}|[\w.+*-]*\w)")

PHRASES = {
    # rows
    "Input X contains": "The table contains",
    "X contains": "The table contains",
    "y contains": "The target contains",
    "X has": "The table has",
    "but y has": "but the target has",
    "sample_weight must": "weights must",
    "sample_weight zero": "weight zero",
    "Give y as the matrix of 0 and 1 that it was learned with; fit starts anew": (
        "Such a model is made in Python"
    ),
    "and y is a matrix with several columns. Models take one kind from their first rows on, so fit "
    "a new one to several labels; traceless.model_selection takes single labels only, "
    "scikit-learn's functions both": "and there are several target columns. Such models are made "
    "in Python",
    # stores and models
    "call fit or partial_fit first": "learn some rows first (traceless learn)",
    "fit it anew": "make a new store",
    "fit such a model anew": "learn such rows in a new store",
    "Open it with Store(path), or choose": "Choose",
    "an estimator that can forget any row, LSSVC(), LSSVR() or PathSVC()": (
        "a model that can forget any row (lssvc, lssvr, pathsvc)"
    ),
    "secret must be": "The file of --secret must hold",
    "such as os.urandom(32)": "such as the file secret of another store",
    "whole slices can be forgotten (a Knowledge, or the file of a model)": (
        "whole slices can be forgotten (--slice)"
    ),
    "Give a file, a store, an LSSVC, an LSSVR or a Knowledge": "Give a store or a model in a file",
    "has no knowledge that could be": "has no sums that could be",
    "merge takes a fitted": "A merge takes a fitted",
    "or a Knowledge, got": "or its sums, got",
    "Pass again=True if that is meant; merge(-knowledge) takes a slice out": (
        "Give --again if that is meant; traceless forget --slice takes a slice out"
    ),
    "Make that with fingerprint=True too (a parameter of estimators and of Knowledge.of), or learn "
    "its rows here": "Merge its store, or learn its rows here",
    "Gather the other again with fingerprint=True, or combine it with without_fingerprint() of the "
    "one": "Merge the store that the other came from, or learn its rows here",
    "Gather the pooled one again with classwise=True, or combine it with pooled() of the other": (
        "Make both with the same --class-weight"
    ),
    "Learn with class_weight set, or with classwise=True to be able to set it later; or set "
    "class_weight=None": "Make a store with --class-weight, or without",
    "Knowledge can only be combined when it speaks": "Sums can only be combined when they speak",
    "Knowledge of": "Sums of",
    "with knowledge of": "with sums of",
    "; see n_samples": "",
    "Leave classes out to allow new ones": "Leave out --classes to allow new ones",
    "None, 'balanced', 'inverse', 'golden', a dict of labels, or a callable of the counts": (
        "balanced, inverse, golden, or numbers by label as yes=2,no=1"
    ),
    "Save the knowledge_ of a model instead": "Such models are kept in Python only",
    "coef_ is only there": "Coefficients are only there",
    "cale the columns, for example with sklearn.preprocessing.StandardScaler": (
        "cale the columns (traceless new --scale)"
    ),
    "Learn one LSSVC for each label (sklearn.multioutput.MultiOutputClassifier)": (
        "Make one store for each label"
    ),
    "Use sklearn.preprocessing.MultiLabelBinarizer to make one, or a regressor for several": (
        "Such models are made in Python; a regression may have several"
    ),
    "above tol=": "above ",
    "no longer fit memory=": "no longer go into ",
    ": raise `memory`": ". Forget rows, or raise the parameter memory in Python",
    "(for columns, an array with one number for each)": "",
    "give the weights that were added: sample_weight=numpy.rint(w * 65536) / 65536": (
        "give the weights that were added: whole multiples of 1/65536"
    ),
    "save numpy.ascontiguousarray(...) of it": "save it row by row (C order)",
    "Scan one kind at a time; a model can learn from several sources with partial_fit": (
        "Give one kind at a time; a store can learn several times"
    ),
    "in the order of classes_": "in the order of the labels",
}


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question with similar names for an unknown one; empty if there are none."""
    near = difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.65)
    return f" Did you mean {' or '.join(near)}?" if near else ""


def in_commands(message: str) -> str:
    """A message of the library in the words of the command line."""
    for phrase, ours in PHRASES.items():
        message = message.replace(phrase, ours)
    return _PARAMETER.sub(_option, _BOTH.sub(r"\1", message))


def _option(found: re.Match[str]) -> str:
    """A parameter and its value as an option."""
    name, value = found[1].replace("_", "-"), found[2].strip("'")
    if value in ("True", "False"):
        return f"--{name}" if value == "True" else f"--no-{name}"
    return f"no --{name}" if value == "None" else f"--{name} {value}"
