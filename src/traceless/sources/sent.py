"""Partial sums as bytes, in the form of our files: what comes back is read, checked, never run."""

from __future__ import annotations

from typing import Any

import numpy as np

from traceless.arithmetic import integers
from traceless.files import container, facts
from traceless.files.saving import labels, labels_from
from traceless.knowledge.file_format import read, sums_in
from traceless.knowledge.groups import GroupRecipe, KnowledgeTable
from traceless.knowledge.specifications import check_same_specification
from traceless.knowledge.sums import Recipe
from traceless.sources.first_look import Looked, LookingRecipe


def sent(result: Any) -> bytes:
    """What the tasks of a recipe made, as bytes."""
    if isinstance(result, KnowledgeTable):
        keys = [labels(key) if isinstance(key, tuple) else labels([key])[0] for key in result.keys]
        names, bits = labels(result.responses), result.weight_bits
        sums = integers.to_tensor(integers.packed(result.sums))
        tensors = {"counts": result.counts.ravel(), "sums": sums}
        return container.encoded("groups", {"keys": keys, "names": names, "bits": bits}, tensors)
    known = result.knowledge if isinstance(result, Looked) else result
    said, tensors = known._pieces()
    if isinstance(result, Looked):
        said["looked"] = [*result.X.shape, result.y.shape[1]]
        tensors |= {"X": result.X.ravel(), "y": result.y.ravel()}
    return container.encoded("knowledge", said, tensors)


def received(data: bytes, recipe: Recipe) -> Any:
    """What `sent` was given, if it is of this recipe; anything else is refused."""
    there = container.parsed(data, "A partial sum")
    said, tensors = there.facts, there.tensors
    if isinstance(recipe, GroupRecipe):
        keys = tuple(
            [labels_from(k) if isinstance(k, list) else labels_from([k])[0] for k in said["keys"]]
        )
        names = labels_from(said["names"])
        shape = len(keys), len(names) if recipe.task == "classification" else 1
        counts = facts.tensor(tensors, "counts", "i", (shape[0] * shape[1],)).reshape(shape)
        width = len(recipe.phi.steps) + len(names)
        sums = integers.unpacked(sums_in(tensors, "sums"), width)
        one = Recipe(recipe.phi, recipe.task, recipe.target_resolution)
        return KnowledgeTable(one, keys, names, counts, sums, facts.whole(said["bits"]))
    known = read(said, tensors)
    check_same_specification(recipe.specification, known.specification)
    if not isinstance(recipe, LookingRecipe):
        return known
    n, *widths = map(facts.whole, said["looked"])
    X, y = (
        facts.tensor(tensors, name, "f", (n * width,), absent=True).reshape(n, width)
        for name, width in zip("Xy", widths, strict=True)
    )
    return Looked(known, X, y, np.asarray(recipe.input_steps), recipe.target_resolution)
