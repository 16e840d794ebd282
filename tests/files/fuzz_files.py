"""Mutated files: each must be refused, or be a file that would be written byte for byte so.

    python tests/files/fuzz_files.py --count 10000 --seed 1

Files of every kind are forged: bits, facts, shapes and numbers are replaced by others, often absurd
ones, and the hash is made right again. (With a wrong hash none is read, whatever is in it.) A
forged file may say something else that could be true; then it is loaded, saved again and compared,
and asked. Memory beyond what Python and its libraries take is limited, and so is time.
"""

import argparse
import collections
import contextlib
import copy
import json
import math
import random
import resource
import signal
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from forge import Forged, rehashed
from scipy import sparse
from sklearn.base import clone

import traceless
from traceless import LSSVC, LSSVR, Knowledge, PathSVC, SlidingWindow
from traceless.exceptions import FileError
from traceless.features import Linear, Polynomial, RandomFourier, RandomLayer

MEMORY = 256 << 20  # bytes beyond those taken at the start
SECONDS = 20  # for one file

NASTY = [
    None, True, False, 0, 1, -1, 2, 3, 16, 17, 10**12, 2**53, 2**62, 2**63, 2**64, -(2**70),
    10**400, 0.5, -0.5, 1e-320, 1e308, -0.0, 2.0**-14, "", "x", "cholesky", "woodbury",
    "../../etc/passwd", "__import__('os')", "\ud800", [], [0], [[]], [0, 0], [1e308], {},
    "a" * 10_000, ["a", "b", "c" * 20_000], {"kind": "array"},
    *({"kind": "array", "shape": shape, "float64": ""} for shape in ([0], [2**40, 0], [0, 2**40])),
    {"kind": "LSSVC", "parameters": {}}, {"bytes": "00"}, {"bytes": "zz"},
    {"kind": "Linear", "parameters": {"bias": True, "resolution": 1}},
    {"kind": "RandomFourier", "parameters": {
        "n_components": 10**12, "gamma": 1.0, "random_state": 0, "bias": True,
        "resolution": 1, "input_resolution": 1}},
]  # fmt: skip
FLOATS = [0.0, -0.0, 1.0, -1.0, 1e308, -1e308, 5e-324, math.nan, math.inf, 0.5, 2.0**53]
HOLLOW = [  # shapes that no byte stands behind; the last axis of some is that of a triangle
    [0], [2**24, 0], [2**47, 0], [0, 2**47], [0, 2**23 * (2**24 + 1)], [0, 2**15 * (2**16 + 1)],
    [0, 0], [3, 0, 2**40], [2**40, 0, 9], [0, 2**40, 9],
]  # fmt: skip
WHOLE = [0, 1, -1, 2, 2**62, 2**63 - 1, -(2**63), 1000]


def models(rng):
    """One of every kind, and of every form it has."""
    X = rng.normal(size=(30, 3))
    y = np.array(["a", "b", "c"])[(np.abs(X[:, 0]) * 3).astype(int) % 3]
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    twice = y != "c"
    yield LSSVC()
    yield LSSVC(RandomFourier(8)).fit(X, y)
    yield LSSVC(solver="woodbury", fingerprint=True).fit(X, y)
    yield LSSVC(Polynomial(2), class_weight="balanced").fit(X, twice, X[:, 0] ** 2 + 0.1)
    yield LSSVC(class_weight={"a": 2.0}, classwise=True).fit(X, y).merge(Knowledge.of(
        Linear(), X, y, classwise=True), name="north")  # fmt: skip
    each = Linear(resolution=np.full(3, 2**-10))
    yield LSSVC(each, solver="woodbury").fit(X, twice * 7).forget(X[:2], twice[:2] * 7)
    paper = LSSVC(solver="woodbury", free_intercept=False, standardize=False)
    yield clone(paper).import_state(paper.fit(X, y).export_state())
    yield LSSVR(RandomLayer(5)).fit(X, X[:, 0])
    yield LSSVR(Linear(resolution=2**-40), solver="woodbury").fit(X * 1e3, X[:, :2]).seal()
    yield PathSVC(gamma=0.5).fit(X, y).forget(ids=[3, 4])
    yield PathSVC(kernel="linear", class_weight={True: 2}).fit(X, twice, np.arange(30.0) % 3)
    yield PathSVC(kernel="poly", strategy="ovr", class_weight="balanced").fit(X, y.astype("S"))
    yield PathSVC(kernel="precomputed").fit(K, twice).forget(ids=[7])
    yield SlidingWindow(PathSVC(), size=9)
    yield SlidingWindow(LSSVC(), size=20).fit(X, y)
    yield SlidingWindow(LSSVR(), size=20).fit(
        sparse.csr_matrix(X * (X > 0)), X[:, :2], X[:, 0] ** 2
    )
    yield SlidingWindow(PathSVC(gamma=0.2), size=20).fit(X, twice)
    yield Knowledge.of(Linear(), X, y) - Knowledge.of(Linear(), X[:3], y[3:6])
    yield Knowledge.of(Linear(), X * 2.0**30, X[:, 0], task="regression", fingerprint=True)


# --- mutations ---------------------------------------------------------------------------------


def flip_bits(raw, rng):
    out = bytearray(raw)
    for _ in range(rng.choice([1, 1, 2, 8])):
        out[rng.randrange(len(out))] ^= 1 << rng.randrange(8)
    return bytes(out)


def nodes(tree, path=()):
    yield path
    keys = tree if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ()
    for key in keys:
        yield from nodes(tree[key], (*path, key))


def forge_facts(forged, rng):
    """Other facts: absurd values, things left out, repeated or added."""
    facts = forged.facts
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        path = rng.choice([p for p in nodes(facts | {"x": None}) if p])
        parent = facts
        for key in path[:-1]:
            parent = parent[key]
        if path == ("x",) or rng.random() < 0.6:
            parent[path[-1]] = copy.deepcopy(rng.choice(NASTY))
        elif rng.random() < 0.3:
            del parent[path[-1]]
        elif rng.random() < 0.5:
            often = rng.choice([1, 2, 1000])
            small = len(json.dumps(facts)) < 10_000  # the forger, too, has little memory
            parent[path[-1]] = [parent[path[-1]]] * (often if small else 1)
        elif isinstance(parent, dict):
            parent[rng.choice(["kind", "state", "sealed"])] = copy.deepcopy(rng.choice(NASTY))
    forged.facts = facts


def forge_numbers(forged, rng):
    """Other numbers in a tensor."""
    name = rng.choice(list(forged.tensors))
    spec = forged.tensors[name]
    begin, end = spec["data_offsets"]
    dtype = {"F64": "<f8", "I64": "<i8", "U8": "u1"}[spec["dtype"]]
    a = np.frombuffer(bytes(forged.data[begin:end]), dtype).copy()
    if a.size:
        with np.errstate(all="ignore"):
            how = rng.randrange(4)
            at = rng.randrange(a.size)
            if how == 0 and dtype != "u1":
                a[at] = rng.choice(FLOATS if dtype == "<f8" else WHOLE)
            elif how == 1:
                a[:] = a[::-1]
            elif how == 2:
                a[at] = a[rng.randrange(a.size)]
            else:
                a[at] = -a[at]
    forged.data[begin:end] = a.tobytes()


def forge_shapes(forged, rng):
    """Tensors longer, shorter, of other shapes and types, gone or doubled; offsets fit."""
    name = rng.choice(list(forged.tensors))
    spec, pieces = forged.tensors[name], forged.pieces()
    how = rng.randrange(7)
    if how == 6:
        forged.reshape(name, rng.choice(HOLLOW), rng.choice(["F64", "I64", "U8"]))
        return
    if how == 0:
        n = len(pieces[name]) // 8
        spec["shape"] = rng.choice(
            [[n], [n, 1], [1, n], [n // 2, 2], [0], [], [10**9, 10**9], [2**60]]
        )
    elif how == 1:
        spec["dtype"] = rng.choice(["F64", "I64", "U8", "F32", "BOOL"])
    elif how == 2 and spec["shape"]:
        rest = math.prod(spec["shape"][1:]) * (1 if spec["dtype"] == "U8" else 8)
        spec["shape"][0] = max(0, spec["shape"][0] + rng.choice([-1, 1, -5, 20]))
        pieces[name] = (pieces[name] * 20)[: spec["shape"][0] * rest]
    elif how == 3:
        del forged.tensors[name], pieces[name]
    elif how == 4:
        forged.tensors["zz"], pieces["zz"] = dict(spec), pieces[name]
    else:
        other = rng.choice(list(forged.tensors))
        forged.tensors[name], forged.tensors[other] = forged.tensors[other], forged.tensors[name]
        pieces[name], pieces[other] = pieces[other], pieces[name]
    forged.put(pieces)


FORGERY = [forge_facts, forge_facts, forge_numbers, forge_shapes]


def mutated(raws, rng, path):
    """Write a forged file; returns what was done to it, and what it was before."""
    raw, kind = rng.choice(raws), rng.random()
    if kind < 0.25:
        path.write_bytes(rehashed(flip_bits(raw, rng)))
        return "flip_bits", raw
    path.write_bytes(raw)
    forged = Forged(path)
    how = rng.choice(FORGERY if forged.tensors else FORGERY[:2])
    how(forged, rng)
    if rng.random() < 0.05:
        forged.metadata["kind"] = rng.choice(["LSSVC", "LSSVR", "PathSVC", "Knowledge", "os"])
    forged.write(path)
    return how.__name__, raw


# --- verdict -----------------------------------------------------------------------------------


def verdict(path, raw):
    """'refused', 'the same' or 'another model'; raises if it is neither."""
    data = path.read_bytes()
    try:
        model = traceless.load(path)
    except FileError:
        assert data != raw, "an honest file was refused"
        return "refused"
    again = path.with_suffix(".again")
    model.save(again)
    assert again.read_bytes() == data, "it is saved otherwise than it was read"
    n = getattr(model, "n_features_in_", 10**9)
    if n < 1000:  # what a loaded model answers is an answer, or a sentence
        with contextlib.suppress(ValueError, ArithmeticError):
            model.predict(np.ones((2, n)))
    return "the same" if data == raw else "another model"


def run(count, seed):
    """Counts of what was done and what came of it."""
    rng, found = random.Random(seed), collections.Counter()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = Path(folder) / "x.traceless"
        raws = []
        for model in models(np.random.default_rng(0)):
            model.save(path)
            raws.append(path.read_bytes())
            assert verdict(path, raws[-1]) == "the same"
        limit_memory()
        signal.signal(signal.SIGALRM, _too_long)
        for i in range(count):
            how, raw = mutated(raws, rng, path)
            signal.alarm(SECONDS)
            try:
                found[how, verdict(path, raw)] += 1
            except BaseException as error:
                kept = Path(tempfile.gettempdir()) / f"fuzz-{seed}-{i}.traceless"
                kept.write_bytes(path.read_bytes())
                raise AssertionError(f"{how}, file {i} of seed {seed}, kept as {kept}") from error
            finally:
                signal.alarm(0)
    return found


def _too_long(*_):
    raise AssertionError(f"it took more than {SECONDS} s")


def limit_memory():
    """What a file may make this process take is bounded."""
    taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(
        resource.RLIMIT_AS, (taken + MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1])
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    say = sys.stdout.write
    result = run(asked.count, asked.seed)
    for (how, what), n in sorted(result.items()):
        say(f"{how:15} {what:14} {n}\n")
    say(json.dumps({what: sum(n for (_, w), n in result.items() if w == what)
                    for what in ("refused", "the same", "another model")}) + "\n")  # fmt: skip
