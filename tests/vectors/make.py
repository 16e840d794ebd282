"""Vectors: what small models are, to the last bit; `tests/test_vectors.py` computes them again.

    python tests/vectors/make.py

writes the files beside it. README.md there says what each field means. A changed value is a broken
promise to those who hold models made earlier, so an old case is never written anew without a reason
in the changelog; new cases are appended.
"""

import json
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

import traceless
from traceless import ESVM, LPSVM, Knowledge, features, wESVM
from traceless.store.checkpoint import Head, hashes_text, proof_text, verifier_key
from traceless.store.entries import Entry
from traceless.store.envelope import envelope, signed_bytes
from traceless.store.keys import SigningKey
from traceless.store.merkle import Tree, leaf_hash

HERE = Path(__file__).parent
ROWS = ("X", "y", "weights", "asked")  # fields of a case
FORMS = {"LPSVM": LPSVM, "ESVM": ESVM, "wESVM": wESVM}


# --- numbers as text ---------------------------------------------------------------------------


def hexed(values):
    """Floats in hexadecimal, integers in decimal, as nested lists; labels as they are."""
    values = np.asarray(values)
    if values.dtype.kind == "f":
        return [hexed(v) for v in values] if values.ndim else float(values).hex()
    return values.tolist()


def array(values):
    """What `hexed` wrote, or plain numbers and labels."""
    flat = values
    while isinstance(flat, list) and flat:
        flat = flat[0]
    if isinstance(flat, str) and "0x" in flat:
        return np.vectorize(float.fromhex, otypes=[float])(np.array(values))
    return np.array(values)


def upper(matrix):
    """The upper triangle of each matrix, row by row, as decimal text of any length."""
    matrix = np.array(matrix, dtype=object)
    if matrix.ndim == 3:
        return [upper(one) for one in matrix]
    return [str(int(matrix[i, j])) for i in range(len(matrix)) for j in range(i, len(matrix))]


# --- what is asked of a case -------------------------------------------------------------------


def feature_map(description):
    kind, parameters = description
    return getattr(features, kind)(**parameters)


def rows_of(case):
    weights = case.get("weights")
    return array(case["X"]), array(case["y"]), None if weights is None else array(weights)


def of_map(case):
    phi = feature_map(case["map"])
    X = array(case["X"])
    bound = phi.bind(X.shape[1])
    return {
        "digest": phi.digest(),
        "steps": hexed(bound.steps),
        "codes": np.asarray(bound.codes(X)).astype(np.int64).tolist(),
    }


def of_table(case):
    table = features.Table.from_facts(case["table"])
    rows = table.rows(case["frame"])
    bound = table.bind(rows.shape[1])
    return {
        "digest": table.digest(),
        "names": table.feature_names(),
        "rows": hexed(rows),
        "codes": np.asarray(bound.codes(rows)).astype(np.int64).tolist(),
        "sums": Knowledge.of(bound, rows, list(range(len(rows)))).digest(),
    }


def of_sums(case):
    known = Knowledge.of(feature_map(case["map"]), *rows_of(case), **case["options"])
    return {
        "responses": list(known.responses),
        "counts": list(known.counts),
        "weight_bits": known.weight_bits,
        "sums": upper(known.total),
        "fingerprint": None
        if known.fingerprint is None
        else known.fingerprint.astype("<u2").tobytes().hex(),
        "digest": known.digest(),
    }


def least_squares(case):
    parameters = dict(case["parameters"])
    if "feature_map" in parameters:
        parameters["feature_map"] = feature_map(parameters["feature_map"])
    if "class_weight" in parameters and isinstance(parameters["class_weight"], list):
        parameters["class_weight"] = dict(parameters["class_weight"])
    return (FORMS.get(case["model"]) or getattr(traceless, case["model"]))(**parameters)


def of_least_squares(case):
    X, y, weights = rows_of(case)
    asked, half = array(case["asked"]), len(X) // 2
    model = least_squares(case)
    for part in (slice(half, None), slice(half)):
        model.update(add=(X[part], y[part], None if weights is None else weights[part]))
    answer = {
        "digest": model.digest(),
        "rho": hexed(model.rho_),
        "coefficients": hexed(model.feature_coef_),
        "intercepts": hexed(model.intercept_),
        "predictions": hexed(model.predict(asked)),
    }
    if case["model"] == "LSSVR":
        return answer
    answer["scores"] = hexed(model.decision_function(asked))
    if case["probabilities"]:
        answer["probabilities"] = hexed(model.predict_proba(asked))
    return answer


def of_path(case):
    X, y, weights = rows_of(case)
    options = {} if weights is None else {"sample_weight": weights}
    model = getattr(traceless, case["model"])(**case["parameters"])
    if case["model"] == "PathOneClass":
        model.fit(X, **options)
    else:
        model.fit(X, y, **options)
    model.forget(ids=case["forgotten"])
    asked = array(case["asked"])
    if case["parameters"].get("kernel") == "precomputed":
        asked = asked[:, model.ids_]
    if case["parameters"].get("kernel") == "linear":  # where rows depend, α is that of the path
        solution = {"coefficients": hexed(model.coef_)}
    else:
        solution = {"support": model.support_.tolist(), "duals": hexed(model.dual_coef_)}
    return {
        "digest": model.digest(),
        **solution,
        "intercepts": hexed(model.intercept_),
        "decision": hexed(
            model.predict(asked) if case["model"] == "PathSVR" else model.decision_function(asked)
        ),
    }


def of_record(case):
    """Statements of entries, signed with a key of this seed, as a log."""
    key = SigningKey(Ed25519PrivateKey.from_private_bytes(bytes.fromhex(case["seed"])))
    payloads, tree = [text.encode() for text in case["statements"]], Tree({})
    for i, payload in enumerate(payloads):
        tree.append(i, payload)
        assert Entry.from_payload(payload).sequence == i
    n = len(payloads)
    head = Head.signed(case["log"], n, tree.root(n), [key])
    return {
        "public": key.public,
        "verifier": verifier_key(case["log"], key.public),
        "envelopes": [
            envelope(payload, key.signature(signed_bytes(payload)), key.public)
            for payload in payloads
        ],
        "leaves": [leaf_hash(payload).hex() for payload in payloads],
        "head": str(head),
        "proofs": [proof_text(i, tree.inclusion(i, n), head) for i in range(n)],
        "consistency": [hashes_text(tree.consistency(old, n)) for old in range(1, n + 1)],
    }


KINDS = {
    "maps": of_map,
    "tables": of_table,
    "sums": of_sums,
    "least_squares": of_least_squares,
    "path": of_path,
    "record": of_record,
}


def record_cases():
    key = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"  # RFC 8032, test 1
    said = {"signer": key, "since": 0, "origin": "0f" * 32, "records": "ab" * 32}
    said |= {"generation": "1-00.traceless", "sha256": "cd" * 32, "digest_before": None}
    said |= {"digest_after": None, "root_before": None, "root_after": None}
    changes = [
        {"kind": "new", "held": 0},
        {"kind": "learn", "held": 2, "rows": 2, "added": 2, "classes": {"Zoë": 2}},
        {"kind": "queue", "held": 2, "rows": 1, "waiting": 1, "keys": ("letter 7",)},
        {"kind": "forget", "held": 1, "rows": 1, "removed": 1, "revealing": True},
        {"kind": "key", "held": 1, "subject": "3d" * 32},
    ]
    facts = ({"sequence": i, "time": f"2026-11-19T20:38:0{i}Z"} | c for i, c in enumerate(changes))
    statements = [json.dumps(Entry(**said | one).statement()) for one in facts]
    seed = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"
    for n in (1, len(statements)):
        yield {
            "name": f"a log of {n}",
            "log": "traceless/" + "5e" * 16,
            "seed": seed,
            "statements": statements[:n],
        }


# --- the cases ---------------------------------------------------------------------------------

MAPS = [
    ("Linear", {}),
    ("Linear", {"bias": False, "resolution": 2**-8}),
    ("Linear", {"resolution": [2**-2, 2**-20, 1.0]}),
    ("Polynomial", {"degree": 2}),
    ("Polynomial", {"degree": 3, "gamma": 0.5, "coef0": 0.0, "bias": False}),
    ("RandomFourier", {"n_components": 9, "gamma": 0.5, "random_state": 3}),
    ("RandomLayer", {"n_units": 7, "random_state": 1}),
    ("RandomLayer", {"n_units": 7, "activation": "tanh", "bias": False}),
    ("RandomLayer", {"n_units": 7, "activation": "relu", "scale": 2.0}),
    ("RandomLayer", {"n_units": 7, "activation": "sine", "scale": 0.5}),
    ("Table", {}),
]
COLUMNS = {
    "age": {"kind": "number", "shift": 40, "scale": 12.5},
    "weight": {"kind": "number", "required": True},
    "smokes": {"kind": "boolean", "true": ["ja"], "false": ["nein"]},
    "island": {"kind": "category", "values": ["Dream", "Biscoe", "Zürich"]},
    "ward": {"kind": "category", "values": ["1", "2"], "unknown": "zero"},
    "seen": {"kind": "date", "origin": "2010-01-01", "unit": "365.25 days"},
    "came": {"kind": "date", "unit": "hours", "format": "%d.%m.%Y %H:%M"},
    "city": {"kind": "hashed", "buckets": 5},
}
FRAME = [
    [31, 70.5, "ja", "Dream", 1, "2024-02-29", "01.03.2024 10:30", "Oslo"],
    [None, -0.1, "nein", "Biscoe", 2, "2024-03-01T12:00+02:00", "28.02.1999 00:00", "Bergen"],
    [40.25, 1e6, None, "Zu\u0308rich", 3, None, None, None],
    ["52", "3e-3", "JA", None, None, "1969-12-31T23:59:59.5", "", 17],
]
X = ((np.arange(60) * 7919) % 101 / 32.0 - 1.5).reshape(20, 3)
THREE = [["cat", "dog", "owl"][(7 * i) % 5 % 3] for i in range(20)]
TWO = [(3 * i) % 7 % 2 for i in range(20)]
TARGETS = np.stack([X[:, 0] * 2 - X[:, 2], X[:, 1] ** 2], axis=1)
LABELS = np.stack([X[:, 0] > 0, X[:, 1] > 0.5, X[:, 2] < 1], axis=1).astype(int)
WEIGHTS = {
    "tiny": np.ldexp(1.0 + np.arange(20) % 5 / 8, -30),
    "whole": 1.0 + np.arange(20) % 4,
    "fractional": 0.1 + np.arange(20) % 7 / 3.0,
}
PENALTIES = [
    {"free_intercept": free, "standardize": scaled}
    for free in (True, False)
    for scaled in (True, False)
]
DUPLICATES = np.concatenate([X, X[3:9], X[3:5]])


def of(name, **case):
    return {"name": name} | {key: _plain(value) for key, value in case.items()}


def _plain(value):
    return hexed(value) if isinstance(value, np.ndarray) else value


def map_cases():
    values = np.array([[0.1, -0.3, 2.5], [1e3, -1e-9, 0.0], [-7.25, 1 / 3, 1e-3]])
    for kind, parameters in MAPS:
        yield of(f"{kind} {parameters}", map=[kind, parameters], X=np.concatenate([X[:3], values]))


def table_cases():
    frame = [dict(zip(COLUMNS, row, strict=True)) for row in FRAME]
    for more in ({}, {"bias": False, "resolution": 2**-8}):
        yield of(f"all kinds {more}", table=more | {"columns": COLUMNS}, frame=frame)


def sums_cases():
    for kind, parameters in MAPS:
        yield of(f"{kind} {parameters}", map=[kind, parameters], X=X[:8], y=THREE[:8], options={})
    linear = ["Linear", {}]
    for name, weights in WEIGHTS.items():
        for task, y, options in [
            ("three classes", THREE, {}),
            ("apart", THREE, {"classwise": True}),
            ("targets", TARGETS, {"task": "regression"}),
            ("labels", LABELS, {"task": "multilabel"}),
        ]:
            yield of(
                f"{name} weights, {task}", map=linear, X=X, y=y, weights=weights, options=options
            )
    for task, y, options in [
        ("whole labels", TWO, {}),
        ("true and false", [bool(v) for v in TWO], {}),
        ("apart", TWO, {"classwise": True}),
        ("one target", TARGETS[:, 0], {"task": "regression", "target_resolution": 2**-20}),
        ("targets", TARGETS, {"task": "regression"}),
        ("labels", LABELS, {"task": "multilabel"}),
    ]:
        yield of(task, map=linear, X=X, y=y, options=options)
        yield of(
            f"{task}, fingerprint", map=linear, X=X, y=y, options=options | {"fingerprint": True}
        )
    fine = ["Linear", {"resolution": 2**-40}]
    large = np.ldexp(X, 8) + 1 / 3
    yield of("beyond 2^63", map=fine, X=large, y=THREE, options={})
    yield of("beyond 2^63, apart", map=fine, X=large, y=THREE, options={"classwise": True})
    yield of(
        "beyond 2^63, weights, targets",
        map=fine,
        X=large,
        y=np.ldexp(TARGETS, 20),
        weights=WEIGHTS["fractional"],
        options={"task": "regression", "target_resolution": 2**-20},
    )


def least_squares_cases():
    asked = X[:4] + 0.125
    common = {"X": X, "asked": asked, "probabilities": True}
    for kind, parameters in MAPS:
        for penalty in PENALTIES:
            given = {"feature_map": [kind, parameters], "rho": 0.75} | penalty
            name = f"{kind} {parameters}, {penalty}"
            yield of(name, model="LSSVC", parameters=given, y=THREE, **common)
            yield of(name, model="LSSVR", parameters=given, y=TARGETS, **common)
    for penalty in PENALTIES:
        yield of(f"two classes, {penalty}", model="LSSVC", parameters=penalty, y=TWO, **common)
        labels = common | {"probabilities": False}
        yield of(f"labels, {penalty}", model="LSSVC", parameters=penalty, y=LABELS, **labels)
        for name, weights in WEIGHTS.items():
            rows = common | {"weights": weights}
            yield of(f"{name}, {penalty}", model="LSSVC", parameters=penalty, y=THREE, **rows)
            yield of(f"{name}, {penalty}", model="LSSVR", parameters=penalty, y=TARGETS, **rows)
        for rule in ("balanced", "inverse", "golden", [["cat", 2.5], ["owl", 0.1]]):
            given = penalty | {"class_weight": rule}
            name = f"{rule}, {penalty}"
            yield of(name, model="LSSVC", parameters=given, y=THREE, **common)
            yield of(
                f"one against the rest, {name}",
                model="LSSVC",
                parameters=given | {"weighting": "one_vs_rest"},
                y=THREE,
                **(common | {"probabilities": False}),
            )
    apart = {"classwise": True, "decision": "posterior", "priors": [0.5, 0.25, 0.25]}
    yield of("classes apart, priors", model="LSSVC", parameters=apart, y=THREE, **common)
    wide = common | {"X": np.ldexp(X, 8) + 1 / 3, "asked": np.ldexp(asked, 8)}
    fine = {"feature_map": ["Linear", {"resolution": 2**-40}], "rho": 2.0**-10}
    for penalty in PENALTIES:
        yield of(
            f"beyond 2^63, {penalty}", model="LSSVC", parameters=fine | penalty, y=THREE, **wide
        )
        yield of(
            f"beyond 2^63, {penalty}", model="LSSVR", parameters=fine | penalty, y=TARGETS, **wide
        )
    far = common | {"X": X + 2.0**20, "asked": asked + 2.0**20}
    yield of("far from zero", model="LSSVR", parameters={"rho": 1e-6}, y=TARGETS + 1e6, **far)
    few = common | {"X": X[:3]}
    yield of("fewer rows than columns", model="LSSVR", parameters={}, y=TARGETS[:3], **few)
    evidence = {"rho": "evidence"}
    yield of("evidence", model="LSSVC", parameters=evidence, y=THREE, **common)
    yield of("evidence", model="LSSVR", parameters=evidence, y=TARGETS, **common)
    machine = {"n_units": 7, "C": 8.0, "random_state": 2}
    yield of("ESVM", model="ESVM", parameters=machine, y=THREE, **common)
    yield of("wESVM", model="wESVM", parameters=machine, y=THREE, **common)
    yield of("LPSVM", model="LPSVM", parameters={"C": 4.0}, y=TWO, **common)
    uneven = ["ant"] * 3 + ["bee"] * 1 + ["cat"] * 9 + ["dog"] * 7  # n / (K n_c) = 5/3, 5, 5/9, 5/7
    rows = common | {"y": uneven}
    for rule in ("balanced", "inverse", "golden", [["ant", 1 / 3], ["cat", 2.0**-30], ["dog", 0]]):
        for penalty in PENALTIES:
            given = penalty | {"class_weight": rule}
            yield of(f"uneven, {rule}, {penalty}", model="LSSVC", parameters=given, **rows)
        for name, weights in WEIGHTS.items():
            given = {"class_weight": rule, "weighting": "one_vs_rest"}
            asked = rows | {"weights": weights, "probabilities": False}
            yield of(f"uneven, {rule}, {name}", model="LSSVC", parameters=given, **asked)
            given = {"class_weight": rule, "decision": "posterior"}
            asked = rows | {"weights": weights}
            yield of(f"uneven, {rule}, {name}, shared", model="LSSVC", parameters=given, **asked)
    for name, weights in WEIGHTS.items():
        for penalty in PENALTIES:
            asked = common | {"weights": weights, "probabilities": False}
            yield of(
                f"labels, {name}, {penalty}", model="LSSVC", parameters=penalty, y=LABELS, **asked
            )


def path_cases():
    n = len(DUPLICATES)
    weights = np.array([1.0, 0.5, 2.0, 0.25])[np.arange(n) % 4]
    three = np.array(THREE + THREE[3:9] + THREE[3:5]).tolist()
    flipped = [*three[:-1], "dog"]  # the same row with two labels
    two = TWO + TWO[3:9] + TWO[3:5]
    target = np.round(DUPLICATES @ [1.0, -0.5, 0.25], 3)
    rows = {"X": DUPLICATES, "asked": X[:5] + 0.125, "forgotten": [1, 21, 26]}
    kernels = [
        {"kernel": "rbf", "gamma": 0.5},
        {"kernel": "rbf"},
        {"kernel": "linear"},
        {"kernel": "poly", "degree": 2, "coef0": 1.0, "gamma": 0.25},
    ]
    for kernel in kernels:
        for C in (0.5, 10.0):
            given = kernel | {"C": C}
            yield of(f"three, {given}", model="PathSVC", parameters=given, y=three, **rows)
            yield of(
                f"{given}", model="PathSVR", parameters=given | {"epsilon": 0.125}, y=target, **rows
            )
        given = kernel | {"nu": 0.25}
        yield of(f"{given}", model="PathOneClass", parameters=given, y=[], **rows)
        given = kernel | {"C": 2.0, "class_weight": "balanced"}
        yield of(f"two, {given}", model="PathSVC", parameters=given, y=two, **rows)
    rbf = {"gamma": 0.5, "C": 3.0}
    yield of("flipped", model="PathSVC", parameters=rbf, y=flipped, **rows)
    yield of("rest", model="PathSVC", parameters=rbf | {"strategy": "ovr"}, y=three, **rows)
    ovo = rbf | {"decision_function_shape": "ovo"}
    yield of("pairs", model="PathSVC", parameters=ovo, y=three, **rows)
    rows |= {"weights": weights}
    yield of("weights", model="PathSVC", parameters=rbf, y=three, **rows)
    yield of("weights", model="PathSVR", parameters=rbf, y=target, **rows)
    yield of("weights", model="PathOneClass", parameters={"nu": 0.5, "gamma": 0.5}, y=[], **rows)
    given = {"kernel": "precomputed", "C": 2.0}
    kernel = (1 + DUPLICATES @ DUPLICATES.T) ** 2
    rows = {"X": kernel, "asked": kernel[:5], "forgotten": [1, 21]}
    yield of("precomputed", model="PathSVC", parameters=given, y=two, **rows)


CASES = {
    "maps": map_cases,
    "tables": table_cases,
    "sums": sums_cases,
    "least_squares": least_squares_cases,
    "path": path_cases,
    "record": record_cases,
}


# --- files -------------------------------------------------------------------------------------


def written(cases):
    """Cases as text: rows once, at the head, and in each case the places of its rows there."""
    rows, lines = [], []
    for case in cases:
        for name in filter(case.__contains__, ROWS):
            text = json.dumps(case[name])
            if text not in rows:
                rows.append(text)
            case[name] = rows.index(text)
        lines.append(json.dumps(case))
    table, listed = ",\n".join(rows), ",\n".join(lines)
    return f'{{"rows": [\n{table}\n], "cases": [\n{listed}\n]}}\n'


def read(kind):
    """The cases of a file, each with its rows."""
    held = json.loads((HERE / f"{kind}.json").read_text())
    for case in held["cases"]:
        yield case | {name: held["rows"][case[name]] for name in ROWS if name in case}


if __name__ == "__main__":
    for kind, answer in KINDS.items():
        answered = [case | {"answer": answer(case)} for case in CASES[kind]()]
        (HERE / f"{kind}.json").write_text(written(answered))
