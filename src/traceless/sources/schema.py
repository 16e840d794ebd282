"""What the columns of files are for: features, target, id; and how the files are written.

[table]  the features; this alone enters digests         [id]    whose row it is
[target] what is to be predicted, and weights            [read]  how CSV is written
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import Integers
from traceless.exceptions import TableError
from traceless.features.cells import Cells
from traceless.features.table import Table, as_toml
from traceless.files.limits import refusal
from traceless.files.words import canonical_id

_PERIOD = "24 months"
Labels = Literal["text", "int", "number", "none"]


@dataclass(frozen=True)
class TextFormat:
    """How CSV is written.

    Parameters
    ----------
    delimiter : str, default=","
        The sign between the cells of CSV; TSV has tabs.
    decimal : {".", ","}, default="."
        The sign before the fraction of a number.
    encoding : str, default="utf-8"
        As Python names it: Excel's "CSV" is "cp1252" in Western Europe.
    null : sequence of str, optional
        Words that mean that a value is absent, as an empty cell does.
    """

    delimiter: str = ","
    decimal: str = "."
    encoding: str = "utf-8"
    null: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "null", tuple(self.null))
        if not all(isinstance(word, str) for word in self.null):
            raise ValueError(f"The words for absent values must be text, got {list(self.null)}.")
        if self.delimiter not in tuple(",;|:\t "):
            raise ValueError(
                f"The delimiter must be one of , ; | : or a tab or a blank, got {self.delimiter!r}."
            )
        if self.decimal not in (".", ","):
            raise ValueError(f"The decimal sign must be . or , and not {self.decimal!r}.")
        try:
            codecs.lookup(self.encoding)
        except (LookupError, TypeError):
            raise ValueError(
                f"There is no encoding {self.encoding!r}; utf-8 and cp1252 are usual."
            ) from None

    def facts(self) -> dict[str, Any]:
        """What differs from the default, as JSON can hold it."""
        said = asdict(self) | {"null": list(self.null)}
        return {k: v for k, v in said.items() if v != getattr(TextFormat, k) and v != []}


@dataclass(frozen=True)
class Schema:
    """Which columns are features, target, weight and id.

    Parameters
    ----------
    table : Table
        The features.
    target : sequence of str
        One column of labels, one or more of numbers to predict, or none.
    labels : {"text", "int", "number", "none"}, default="text"
        What the target is: words (the number 3 is then the word "3"), whole numbers as
        labels, or the numbers of a regression. "none" is for models that need no target.
    weight : str, optional
        Column of weights.
    classes : sequence of str or int, optional
        The labels that may occur; others are refused. By default any may.
    id : str, optional
        Column of the texts by which rows are known: no feature, and never needed to predict.
    text : TextFormat, optional
        How CSV is written; by default with commas (or tabs), decimal points and UTF-8.
    suppress : str, default="24 months"
        How long a store does not learn forgotten ids again, as `Store.new` takes it; or "none".

    Examples
    --------
    >>> from traceless.features import Category, Number, Table
    >>> from traceless.sources import Schema
    >>> schema = Schema(Table([Number("age"), Category("color", ["red", "green"])]), ["bought"])
    >>> print(schema)
    [table]
    [table.columns]
    "age" = { kind = "number" }
    "color" = { kind = "category", values = ["red", "green"] }
    <BLANKLINE>
    [target]
    column = "bought"
    >>> Schema.from_facts(schema.facts()).facts() == schema.facts()
    True
    """

    table: Table
    target: tuple[str, ...]
    labels: Labels = "text"
    weight: str | None = None
    classes: tuple[str, ...] | tuple[int, ...] = ()
    id: str | None = None
    text: TextFormat = field(default_factory=TextFormat)
    suppress: str = _PERIOD

    def __post_init__(self) -> None:
        for name in ("target", "classes"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if self.labels not in ("text", "int", "number", "none"):
            raise ValueError(f"Labels must be text, int, number or none, got {self.labels!r}.")
        most = {"none": 0, "number": len(self.target)}.get(self.labels, 1)
        if len(self.target) > most or bool(self.target) == (self.labels == "none"):
            raise ValueError(
                "A column of labels is needed, or one or more of numbers to predict, or none with "
                f"kind = 'none'; got {len(self.target)} columns of kind = {self.labels!r}."
            )
        names = [*self.names, *([] if self.id is None else [self.id])]
        twice = [name for k, name in enumerate(names) if name in names[:k]]
        if twice or not all(isinstance(name, str) and name for name in names):
            raise ValueError(
                "The names of features, target, weight and id must be text and differ, got "
                f"{twice[0] if twice else names!r}{' twice' if twice else ''}."
            )
        wanted = {"text": str, "int": int}.get(self.labels)
        if any(type(label) is not wanted for label in self.classes):
            raise ValueError(f"Classes {list(self.classes)} do not suit kind = {self.labels!r}.")

    @property
    def names(self) -> list[str]:
        """Names of all columns: features, target, weight."""
        weight = [] if self.weight is None else [self.weight]
        return [*self.table.names, *self.target, *weight]

    def facts(self) -> dict[str, Any]:
        """The sections of a file, as JSON can hold them."""
        said: dict[str, Any] = {"table": self.table.facts()}
        if self.target:
            one = self.target[0] if len(self.target) == 1 else list(self.target)
            kind = {} if self.labels == "text" else {"kind": self.labels}
            said["target"] = {"column": one, **kind}
        if self.classes:
            said["target"]["classes"] = list(self.classes)
        if self.weight is not None:
            said.setdefault("target", {})["weight"] = self.weight
        if self.id is not None:
            period = {} if self.suppress == _PERIOD else {"suppress": self.suppress}
            said["id"] = {"column": self.id, **period}
        return said | ({"read": self.text.facts()} if self.text.facts() else {})

    def __str__(self) -> str:
        parts = [str(self.table).rstrip()]
        for name, facts in self.facts().items():
            if name != "table":
                parts.append(
                    "\n".join([f"[{name}]", *(f"{k} = {as_toml(facts[k])}" for k in facts)])
                )
        return "\n\n".join(parts)

    @classmethod
    def from_facts(cls, facts: Any) -> Schema:
        """The schema that these sections describe; anything else is refused."""
        if not isinstance(facts, Mapping):
            raise ValueError(f"Sections are needed, as in a model.toml, got {facts!r:.60}.")
        target = _section(facts, "target", "column", "kind", "classes", "weight")
        chosen = target.get("column", [])
        columns = [chosen] if isinstance(chosen, str) else chosen
        ids = _section(facts, "id", "column", "suppress")
        read = _section(facts, "read", "delimiter", "decimal", "encoding", "null")
        return cls(
            Table.from_facts(facts.get("table")),
            tuple(columns),
            target.get("kind", "text" if columns else "none"),
            target.get("weight"),
            tuple(target.get("classes", ())),
            ids.get("column"),
            TextFormat(**read),
            ids.get("suppress", _PERIOD),
        )

    def target_of(self, cells: Cells) -> NDArray[Any]:
        """Any column as numbers to predict, or as labels of the declared type and classes."""
        if self.labels == "number":
            found = cells.numbers()
            cells.check_each(~np.isnan(found), "a number is needed")
            return found
        found = _integers(cells) if self.labels == "int" else _labels(cells)
        if self.classes:
            listed = ", ".join(map(repr, self.classes[:20]))
            known = np.isin(found, self.classes)
            cells.check_each(known, f"one of the classes {listed} is needed")
        return found


def weights_of(cells: Cells) -> NDArray[Any]:
    """Numbers, none of them absent."""
    found = cells.numbers()
    cells.check_each(~np.isnan(found), "a number is needed")
    return found


def ids_of(cells: Cells) -> list[str]:
    """The canonical text of ids; absent ids are refused.

    17, 17.0, "17" and " 17.0 " are one id (`canonical_id`).
    """
    words, places = cells.words()
    ids = [canonical_id(word) for word in words]
    cells.check_each(np.array([one != "" for one in ids])[places], "an id is needed")
    return [ids[k] for k in places.tolist()]


def _integers(cells: Cells) -> Integers:
    words, places = cells.words()
    whole = [re.fullmatch(r"[+-]?[0-9]{1,18}", word.strip()) for word in words]
    cells.check_each(
        np.array([one is not None for one in whole])[places], "a whole number is needed"
    )
    return np.array([int(one[0]) if one else 0 for one in whole], dtype=np.int64)[places]


def _labels(cells: Cells) -> NDArray[Any]:
    words, places = cells.words()
    cells.check_each(np.array([word != "" for word in words])[places], "the label is missing")
    longest = max(map(len, words), default=0)  # NumPy gives each as much room
    what = f"{cells.where}: the labels of column {cells.name!r}"
    if said := refusal(what, 4 * len(places) * longest):
        raise TableError(said)
    return np.array(words, dtype=np.str_)[places]


def _section(facts: Mapping[str, Any], name: str, *known: str) -> dict[str, Any]:
    said = facts.get(name, {})
    if not isinstance(said, Mapping):
        raise ValueError(f"[{name}] must be a section, got {said!r:.60}.")
    if other := sorted({*said} - {*known}):
        raise ValueError(f"[{name}] has no {other[0]!r}; it has {', '.join(known)}.")
    return dict(said)
