"""What knowledge speaks of: feature map, number of columns, resolution of the targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from traceless.exceptions import MismatchError
from traceless.features.bound_map import PROBE, specification_digest
from traceless.knowledge.responses import SAID, Label, Task

if TYPE_CHECKING:
    from traceless.knowledge.sums import Knowledge, Recipe


def check_combinable(
    ours: Recipe | Knowledge,
    theirs: Recipe | Knowledge,
    our_responses: Sequence[Label],
    their_responses: Sequence[Label],
) -> None:
    """Raise a sentence that says why knowledge of two kinds cannot be added."""
    if ours.task != theirs.task:
        raise MismatchError(
            f"Knowledge of {SAID[ours.task]} cannot be combined with knowledge of "
            f"{SAID[theirs.task]}."
        )
    check_same_specification(ours.specification, theirs.specification)
    if ours.task != "classification":
        check_targets(ours.task, our_responses, their_responses)


def check_same_specification(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> None:
    """Raise a sentence that names the first differences of two specifications."""
    if specification_digest(ours) == specification_digest(theirs):
        return
    a, b = _flat(ours), _flat(theirs)
    keys = sorted(k for k in a.keys() | b.keys() if _typed(a, k) != _typed(b, k))
    if keys == [PROBE]:
        raise MismatchError(
            f"The feature maps differ: both are {a.get('map')!r} of version {a.get('version')} and "
            f"with the same parameters, but they {_why_not_the_same(a, b)}."
        )
    keys = [k for k in keys if k != PROBE]  # which follows from the others
    said = "; ".join(
        f"{k} is {a.get(k, 'absent')} here and {b.get(k, 'absent')} there" for k in keys
    )
    raise MismatchError(
        f"The feature maps differ: {said}. Knowledge can only be combined when it speaks of "
        "the same features; learn one side again with the other's feature map."
    )


def check_targets(task: Task, ours: Sequence[Label], theirs: Sequence[Label]) -> None:
    """Raise if there are not as many targets, or labels, on both sides."""
    if len(ours) != len(theirs):
        several = task == "multilabel"  # whose last response is the constant
        what = "labels" if several else "targets"
        raise MismatchError(
            f"There are {len(ours) - several} {what} on one side and {len(theirs) - several} on "
            "the other: give as many for each row as were learned."
        )


def _why_not_the_same(a: Mapping[str, Any], b: Mapping[str, Any]) -> str:
    if PROBE in a and PROBE in b:
        return (
            "give different codes for the same rows: they are two classes of one name, or one that "
            "was edited. Learn one side again with the other's class, and raise its `version` "
            "whenever what it computes changes"
        )
    return (
        "cannot be compared: one is a class of yours, known by what it computes, and the other is "
        "traceless's own. If they are the same, take it over with "
        "dataclasses.replace(knowledge, specification=...)"
    )


def _typed(facts: Mapping[str, Any], name: str) -> tuple[Any, ...]:
    """A fact and its type, or nothing: True equals 1 in Python, and not in a digest."""
    return (type(facts[name]), facts[name]) if name in facts else ()


def _flat(specification: Mapping[str, Any]) -> dict[str, Any]:
    rest = {k: v for k, v in specification.items() if k != "features"}
    return rest | dict(specification["features"])
