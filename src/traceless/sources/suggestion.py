"""A proposal for files: how they are written, and what their columns mean."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from traceless.exceptions import TableError
from traceless.features.cells import Cells, Frame
from traceless.features.dates import moment_of
from traceless.features.suggestion import FORMATS, ROWS, Seen, is_number, looked_at, proposals
from traceless.features.table import Table
from traceless.sources.arrow import check_present
from traceless.sources.formats import format_of
from traceless.sources.reader import column_names, first_rows, header_of
from traceless.sources.schema import Schema, TextFormat

FEWEST_REGRESSION = 20  # different numbers of a target that is no label
NULLS = ("NA", "N/A", "n/a", "NULL", "null", "None", "?", "-", "--", ".")


def suggest_schema(
    path: str,
    target: Sequence[str],
    ids: str | None = None,
    format_: str | None = None,
    scales: bool = False,
) -> tuple[Schema, int]:
    """A proposal for a file, and how many rows were looked at.

    Parameters
    ----------
    path : str
    target : sequence of str
        The columns to predict.
    ids : str, optional
        The column of ids; by default one is looked for.
    format_ : str, optional
        As for `Files`.
    scales : bool, default=False
        Whether to propose scales for all numbers.
    """
    text = _text_format(path, format_)
    names = column_names(path, format_, text)
    check_present(names, [*target, *([] if ids is None else [ids])], path)
    data = first_rows(path, format_, text, ROWS)
    is_text = (format_ or format_of(path)) in ("csv", "tsv")
    seen = looked_at(Frame.of_arrow(data))
    if is_text:
        text = TextFormat(text.delimiter, _decimal(seen), text.encoding, _nulls(seen))
    frame = Frame.of_arrow(data, Cells(None, "", path, decimal=text.decimal))
    known = [one for one in looked_at(frame, text.null) if one.name not in target]
    if ids is None:
        ids = next((one.name for one in known if one.looks_like_ids), None)
    columns, reasons = proposals(frame, target, ids, scales, text.null)
    aims = [one for one in looked_at(frame, text.null) if one.name in target]
    labels: Any = "number" if aims and all(map(_is_regression, aims)) else "text"
    schema = Schema(Table.of(columns, reasons), tuple(target), labels, id=ids, text=text)
    return schema, data.num_rows


def _is_regression(seen: Seen) -> bool:
    if not seen.is_number or seen.odd:
        return False
    whole = seen.all(lambda word: float(word.replace(seen.decimal, ".")).is_integer())
    return not whole or len(seen.counts) > FEWEST_REGRESSION


def _text_format(path: str, format_: str | None) -> TextFormat:
    """The encoding in which a CSV file can be read, and what cuts its header the most."""
    if (format_ or format_of(path)) != "csv":
        return TextFormat()
    found: dict[TextFormat, int] = {}
    failed: dict[TableError, int] = {}
    for encoding in ("utf-8", "utf-16", "cp1252"):
        for sign in ",;\t|":
            text = TextFormat(sign, encoding=encoding)
            try:  # quotes may end elsewhere, or it is another encoding
                names, text = header_of(path, format_, text)
            except TableError:
                continue
            try:
                first_rows(path, format_, text, 1)
                found[text] = len(names)
            except TableError as error:
                failed[error] = len(names)
        if found or failed:
            break
    if failed and max(failed.values()) > max(found.values(), default=0):
        raise max(failed, key=failed.__getitem__)
    return max(found, key=found.__getitem__, default=TextFormat())


def _decimal(columns: list[Seen]) -> str:
    """The decimal sign of most columns of numbers with a fraction."""

    def fractions(sign: str) -> int:
        texts = [Seen(one.name, one.words, one.kind, sign) for one in columns]
        return sum(
            one.kind == "text" and one.is_number and any(sign in word for word in one.counts)
            for one in texts
        )

    return "," if fractions(",") > fractions(".") else "."


def _nulls(columns: list[Seen]) -> tuple[str, ...]:
    """Words for absent values that stand among numbers or dates."""
    found: dict[str, None] = {}
    for column in columns:
        others = sorted({word for word in column.counts if word in NULLS})
        rest = Seen(column.name, [word for word in column.words if word not in NULLS], column.kind)
        dates = any(rest.all(partial(moment_of, form=form)) for form in (None, *FORMATS))
        numbers = any(rest.all(partial(is_number, decimal=sign)) for sign in ".,")
        if others and column.kind == "text" and (dates or numbers):
            found |= dict.fromkeys(others)
    return tuple(found)
