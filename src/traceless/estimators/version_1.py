"""Files of older versions: read as if written today; the digests that version 1 was known by.

Version 2 has no `free_intercept` and no `standardize`: its models penalise the intercept, and no
scales.

Version 1 kept sums in units of 2^-16 as soon as one weight was a fraction. Its digest had the
`repr` of labels in it, which is not the same with every Python: it is computed here for nothing
but to be compared with what was stated then.
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
import warnings
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from traceless.arithmetic import integers
from traceless.features.feature_map import specification_digest
from traceless.files.container import Contents
from traceless.files.saving import LATER
from traceless.knowledge.file_format import sums_in
from traceless.knowledge.sums import Knowledge

WEIGHT_BITS = 16


def complete(said: Any) -> Any:
    """A copy of facts in which least-squares models have the parameters that came later."""
    said = copy.deepcopy(said)
    for parameters in _parameters_in(said):
        known = LATER if "class_weight" in parameters else LATER.keys() - {"priors", "decision"}
        parameters |= {name: LATER[name] for name in known if name not in parameters}
    return said


def upgraded(contents: Contents) -> Contents:
    """The contents of a file of an older version as they are written now."""
    facts, tensors = complete(contents.facts), dict(contents.tensors)
    for said in _inverses_in(facts):
        said |= {"free_intercept": False, "standardize": False}
    if contents.version > 1:
        return replace(contents, facts=facts)
    for said, name in _knowledge_in(facts):
        bits = said.get("weight_bits")
        if bits == 0 or name not in tensors:
            continue  # or it is refused by those who look for it
        sums = sums_in(tensors, name)
        spare = integers.trailing_zeros(sums, WEIGHT_BITS)
        if bits != WEIGHT_BITS or spare == WEIGHT_BITS:
            raise ValueError(f"sums in units of 2^-{bits}.")
        if integers.to_tensor(sums).shape != tensors[name].shape:
            raise ValueError("sums in more bytes than they need.")
        tensors[name] = integers.to_tensor(integers.shift_right(sums, spare))
        said["weight_bits"] = WEIGHT_BITS - spare
    for said in _models_in(facts):
        if isinstance(said.get("merged"), dict):
            said["merged"] = {k: {"times": n, "brought": {}} for k, n in said["merged"].items()}
    return replace(contents, facts=facts, tensors=tensors)


def warn_of_changes(contents: Contents, path: Any) -> None:
    """Say what the owner of a file of version 1 must know before the model is changed."""
    facts = contents.facts
    if any(known.get("weight_bits") for known, _ in _knowledge_in(facts)):
        warnings.warn(
            f"{path} was written by version 1, which rounded sample weights to multiples of 2^-16; "
            "they are rounded to 20 significant bits now. To forget rows that were learned then, "
            "without a trace, give the weights that were added: "
            "sample_weight=numpy.rint(w * 65536) / 65536. Fractional weights above 16 can have "
            "more digits than that: fit such a model anew.",
            UserWarning,
            stacklevel=3,
        )
    merged = [name for said in _models_in(facts) for name in said.get("merged") or ()]
    if any(re.fullmatch("[0-9a-f]{64}", name) for name in merged):
        warnings.warn(
            f"{path} was written by version 1, whose digests were computed in another way: slices "
            "that it merged without a name are not recognised if they are merged again.",
            UserWarning,
            stacklevel=3,
        )


def _parameters_in(said: Any) -> Iterator[dict[str, Any]]:
    """The parameters of all least-squares models that are spoken of, at any depth."""
    if isinstance(said, dict):
        for part in said.values():
            yield from _parameters_in(part)
        if "rho" in said and "solver" in said:
            yield said


def digest(known: Knowledge) -> str:
    """The digest that version 1 gave to knowledge.

    Raises
    ------
    ValueError
        If some weights have bits that version 1 could not hold.
    """
    if known.weight_bits > WEIGHT_BITS:
        raise ValueError(f"Version 1 has no digest for weights in units of 2^-{known.weight_bits}.")
    bits = WEIGHT_BITS if known.weight_bits else 0
    total = integers.shift_left(known.total, bits - known.weight_bits)
    kind = "class-wise knowledge" if known.classwise else "knowledge"
    header = [
        f"traceless {kind} 1",
        specification_digest(known.specification),
        known.task,
        [f"{type(r).__name__}:{r!r}" for r in known.responses],
        known.counts,
        bits,
    ]
    state = hashlib.sha256(json.dumps(header).encode())
    for matrix in total if known.classwise else (total,):
        for piece in integers.triangle_bytes(matrix):
            state.update(piece)
    return state.hexdigest()


def _inverses_in(facts: Any) -> Iterator[dict[str, Any]]:
    """The facts of all inverses in a file."""
    for said in _models_in(facts):
        state = said.get("state")
        inverse = state.get("inverse") if isinstance(state, dict) else None
        if isinstance(inverse, dict):
            yield inverse


def _models_in(said: Any) -> Iterator[dict[str, Any]]:
    """The facts of the model in a file, and of the one inside of it if it is a window."""
    if isinstance(said, dict):
        yield said
        state = said.get("state")
        yield from _models_in(state.get("estimator") if isinstance(state, dict) else None)


def _knowledge_in(facts: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """The facts of all knowledge in a file, and the names of their sums."""
    for depth, said in enumerate(_models_in(facts)):
        state = said.get("state")
        for known in (said, state.get("knowledge") if isinstance(state, dict) else None):
            if isinstance(known, dict) and "weight_bits" in known:
                yield known, "estimator." * depth + "sums"
