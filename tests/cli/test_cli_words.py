"""No message that a command can meet speaks of Python."""

import ast
import re
import time
from pathlib import Path

import click
import pytest

import traceless
from traceless.cli.defaults import all_commands
from traceless.cli.group import root
from traceless.cli.words import PHRASES, in_commands

SOURCE = Path(traceless.__file__).parent
PYTHON = re.compile(
    r"\b\w+=(?:True|False|None|'|\{|\()"  # a parameter
    r"|\b\w+\(\)|\.\w+\(|\bStore[.(]|`|\w_\b"  # a method, a class, an attribute
    r"|\bpartial_fit\b|(?<!not )\bfit\b|\bsample_weight\b|\bKnowledge\b|\bestimator\b|\bndarray\b"
    r"|\b(?:numpy|sklearn)\.|\bX\b|\by\b|\biterable\b|\bos\.|\bdict\b|\bcallable\b"
)
LIBRARY = re.compile(PYTHON.pattern.replace(r"|`|\w_\b", r"|`").replace(r"|\bX\b|\by\b", ""))
SAYING = (
    "UsageError",
    "ValueError",
    "TypeError",
    "Result",
    "fields",
    "Grid",
    "say",
    "ask",
    "append",
)
ROOMS = ("estimators", "features", "files", "hinge", "knowledge", "solvers", "sources", "store")
# no command calls what is in these files: engines, sources and windows are for Python only
NO_COMMAND = {
    *("estimators/columns.py", "estimators/exported_state.py", "estimators/row_guard.py"),
    *("estimators/sliding_window.py", "estimators/window_rows.py", "estimators/rhos.py"),
    *("features/columns.py", "features/feature_map.py", "knowledge/columns.py"),
    *("hinge/precomputed.py", "hinge/problem.py", "sources/arrays.py", "sources/dask.py"),
    *("sources/partitions.py", "sources/scanning.py", "sources/source.py", "sources/spark.py"),
    *("sources/answers.py", "sources/spark_answers.py", "sources/spark_ml.py"),
    *("sources/streams.py", "sources/written_answers.py", "estimators/by_group.py"),
    "sources/remote.py",
}
# nor do commands pass arguments of these kinds: they read tables, and know no precomputed kernels,
# guards, sources, views of models or knowledge without a model; and a schema is checked by `new`
NO_ARGUMENT = (
    "Rows must come as a tuple (X, y)",
    "guard=True keeps a digest",
    "to_frame makes",
    "the window does not hold",
    "forget needs rows (X, y)",
    "priors must be",
    "{} has one {} for each column, as with Linear()",
    "class_weight and classwise are for one label",
    "A model made by without()",
    "With kernel='precomputed'",
    "Rows of a precomputed kernel",
    "A model with kernel={} has no digest",
    "ids must be whole numbers",
    "There is no row to forget for each of",
    "A fingerprint is a sum of hashes",
    "Rows need labels or targets: give X and y",
    "A batch must be (X, y)",
    "kernel {}: expected 'rbf', 'linear', 'poly' or 'sigmoid', 'precomputed'",
    "{} cannot be written to a file",
    "Found array with 0 sample(s)",  # of tensors
)


def messages():
    """All texts in errors and warnings, with {} for what is filled in."""
    for path in sorted(SOURCE.rglob("*.py")):
        place = path.relative_to(SOURCE).as_posix()
        if not place.startswith(ROOMS) or place in NO_COMMAND:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Assign | ast.Return) and node.value is not None:
                said = _texts(node.value)  # a sentence that has a name
                yield from ((place, text) for text in said if re.search(r" .* .*[.] ?$", text))
            if isinstance(node, ast.Call) and _name(node.func).endswith(
                ("Error", "Warning", "warn")
            ):
                for part in node.args:
                    yield from ((place, text) for text in _texts(part))


def _name(function):
    return getattr(function, "attr", getattr(function, "id", ""))


def _texts(node):
    """The texts that an argument may become."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.JoinedStr):
        return [
            "".join(p.value if isinstance(p, ast.Constant) else "{}" for p in node.values).replace(
                "({})", "(32)"
            )
        ]
    if isinstance(node, ast.IfExp):
        return _texts(node.body) + _texts(node.orelse)
    if isinstance(node, ast.BinOp):
        return [a + b for a in _texts(node.left) or [""] for b in _texts(node.right) or [""]]
    return []


def test_messages_are_in_the_words_of_commands():
    found = sorted(set(messages()))
    assert len(found) > 150
    left = [
        (place, text)
        for place, text in found
        if not text.startswith(NO_ARGUMENT) and PYTHON.search(in_commands(text))
    ]
    assert left == []


def test_the_commands_own_texts_are_in_their_words():
    """Help, options and what commands print: Python is named only where it is meant."""
    texts = []
    for one in [root, *(one for _, one in all_commands(root))]:
        texts.append(one.help)
        texts += [o.help for o in one.params if isinstance(o, click.Option)]
    checks = [SOURCE / "store" / name for name in ("verification.py", "chain.py", "kept.py")]
    for path in [*checks, *sorted((SOURCE / "cli").glob("*.py"))]:
        if path.name != "words.py":  # which translates
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and _name(node.func) in SAYING:
                    inner = [one for part in node.args for one in ast.walk(part)]
                    texts += [text for one in inner for text in _texts(one)]
    assert len(texts) > 200
    assert [text for text in texts if text and LIBRARY.search(text)] == []


def test_exceptions_are_still_there():
    """What is exempt must exist: neither list may outlive its messages."""
    texts = [text for _, text in messages()]
    assert [said for said in NO_ARGUMENT if not any(t.startswith(said) for t in texts)] == []
    assert [place for place in NO_COMMAND if not (SOURCE / place).is_file()] == []
    everything = "\n".join(texts)
    assert [phrase for phrase in PHRASES if phrase not in everything] == []


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("s is not a store. Store.new (or traceless new) makes one.", "s is not a store. "
         "traceless new makes one."),
        ("Collect them with batch=True (--batch).", "Collect them with --batch."),
        ("use standardize=True, or solver='cholesky'.", "use --standardize, or --solver cholesky."),
        ("Set free_intercept=False.", "Set --no-free-intercept."),
        ("rho=1e-300 is too small", "--rho 1e-300 is too small"),
        ("set class_weight=None.", "set no --class-weight."),
        ("column 'y': a number is needed, got 'X'.", "column 'y': a number is needed, got 'X'."),
    ],
)  # fmt: skip
def test_parameters_become_options(said, shown):
    assert in_commands(said) == shown


def test_a_long_word_takes_no_time():
    """A store that somebody made up can put one into a message: square time would be minutes."""
    began = time.perf_counter()
    for long in ("x" * 10**6, "a=" + "b" * 10**6, "a(" * 10**5, "rho='" * 10**5):
        in_commands(long)
    assert time.perf_counter() - began < 20.0
