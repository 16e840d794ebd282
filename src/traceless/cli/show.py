"""``traceless show``: what was declared, and the coefficients that the rows give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from traceless.cli import inputs
from traceless.cli.command import command
from traceless.cli.declaration import described
from traceless.cli.output import Grid, Result, fields

if TYPE_CHECKING:
    from traceless.store import Store

MOST = 40  # coefficients in a terminal
_LABELS = {"int": "labels, whole numbers"}


@command(
    "traceless show shop", "traceless show shop --all", "traceless show prices --level 0.9 --json"
)
@inputs.store_argument
@click.option("--level", type=float, default=0.95, help="Of the intervals [0.95].")
@click.option("--all", "all_", is_flag=True, help=f"All coefficients, not the {MOST} largest.")
def show(store: Store, level: float, all_: bool) -> Result:
    """Show columns, model and coefficients.

    Coefficients have the names of their columns and come with the largest effect first, that is
    the coefficient times the deviation of its column. Those of regressions have errors: an interval
    holds the coefficient in 95 of 100 cases (--level), if the noise is normal and rho is not too
    large.
    """
    from traceless.estimators import loading

    now, origin = store.status(), store.receipt().store
    about, model = store.about, origin["model"]
    table = about.get("table")
    if table is not None:
        inputs.declared(about)  # refuses what is none
    loading.from_description(model)  # likewise
    said = {
        "store": now.path,
        "organisation": about.get("organisation"),
        "created": origin["created"],
        "rows": now.rows,
    }
    options = described(model)
    beside = {"classes": dict(now.classes), "table": table, "model": model, "options": options}
    facts = {
        **said,
        **{f"  of {label}": count for label, count in now.classes.items()},
        "text files": _text_files(**(table or {}).get("read", {})),
    }
    shown: list[str | Grid] = [
        fields({name: value for name, value in facts.items() if value is not None}),
        "",
        Grid(columns_of(table), ["column", "kind", "meaning"]) if table else _NO_TABLE,
        "",
        fields({name: _short(value) for name, value in options.items()}),
        "",
    ]
    if now.rows and now.has_model:
        found, more = _coefficients(store.model(), table, level, all_)
        return Result(said | beside | found, shown + more)
    why = "has learned no rows yet" if now.has_model else "is destroyed"
    return Result(said | beside, [*shown, f"The model {why}: there are no coefficients."])


_NO_TABLE = "No table is declared: this store was made in Python."


def columns_of(table: Mapping[str, Any]) -> list[list[str]]:
    """Name, kind and meaning of each column of a table that `Schema.facts` describes."""
    target, columns = table.get("target", {}), table["table"]["columns"]
    found = [[said["name"], said["kind"], _meaning(**said)] for said in columns]
    classes, kind = ", ".join(map(str, target.get("classes", []))) or "any", target.get("kind")
    meaning = "numbers" if kind == "number" else f"{_LABELS.get(kind, 'labels')}: {classes}"
    names = target.get("column", [])
    found += [[n, "target", meaning] for n in ([names] if isinstance(names, str) else names)]
    if "weight" in target:
        found.append([target["weight"], "weight", "how much a row counts"])
    if "id" in table:
        meaning = "whose row it is; not learned from, and kept as a keyed hash"
        found.append([table["id"]["column"], "id", meaning])
    return found


def _meaning(*, kind: str, required: bool = False, **said: Any) -> str:
    """What becomes of the values of a column, in words."""
    from traceless.features.kinds import FALSE, TRUE

    if kind == "number":
        shift, scale = said.get("shift", 0.0), said.get("scale", 1.0)
        words = "as it is" if (shift, scale) == (0, 1) else f"(x - {shift:g}) / {scale:g}"
    elif kind == "boolean":
        words = f"1 for {', '.join(said.get('true', TRUE))}; 0 for "
        words += ", ".join(said.get("false", FALSE))
    elif kind == "date":
        words = f"{said.get('unit', 'days')} since {said.get('origin', '2000-01-01')}"
        words += f", written as {said['format']}" if "format" in said else ""
    elif kind == "category":
        words = ", ".join(said["values"])
        words += "; others count as absent" if said.get("unknown") == "zero" else ""
    else:
        words = f"{said['buckets']} buckets"
    return f"{words}; required" if required else words


def _text_files(
    delimiter: str = ",", decimal: str = ".", encoding: str = "utf-8", null: Sequence[str] = ()
) -> str | None:
    """How CSV is written, where it is not as usual."""
    if (delimiter, decimal, encoding, *null) == (",", ".", "utf-8"):
        return None
    absent = f", absent as {', '.join(null)}" if null else ""
    return f"cells between {delimiter!r}, decimal sign {decimal!r}, {encoding}{absent}"


def _coefficients(
    model: Any, table: Mapping[str, Any] | None, level: float, all_: bool
) -> tuple[dict[str, Any], list[str | Grid]]:
    """The table of coefficients, largest effect first, and how it is shown."""
    if not hasattr(model, "summary"):
        return {}, [f"A {type(model).__name__} has no coefficients: it is made of rows."]
    is_regression = hasattr(model, "predict_interval")
    found = model.summary(level) if is_regression else model.summary()
    columns = {name: list(column) for name, column in found.columns.items()}
    if "target" in columns and is_regression and table is not None:
        names = table["target"]["column"]
        columns["target"] = [names[k] for k in columns["target"]]
    deviations = _deviations(model, is_regression)
    deviations *= len(columns["name"]) // len(deviations)  # of each target
    order = _largest_first(columns, deviations, is_regression)
    columns = {name: [column[k] for k in order] for name, column in columns.items()}
    deviations = [deviations[k] for k in order]
    cells = zip(*columns.values(), deviations, strict=True)
    rows = [[_short(cell) for cell in row] for row in cells]
    kept = rows if all_ else rows[:MOST]
    said: list[str | Grid] = [
        found.title,
        fields({name: _short(value) for name, value in found.facts.items()}),
        Grid(kept, [*columns, "deviation"]),
    ]
    if len(kept) < len(rows):
        said.append(f"{len(rows) - len(kept)} smaller ones are shown with --all.")
    data = {"summary": dict(found.facts), "coefficients": columns, "deviations": deviations}
    return data, [*said, found.note]


def _deviations(model: Any, is_regression: bool) -> list[float | None]:
    """Standard deviations of the features, of the rows held; None for the intercept.

    By whole numbers: n² times the variance is nΣφ² - (Σφ)². Without a constant feature there is no
    Σφ, and the root of the mean square takes the place of the deviation.
    """
    import numpy as np

    from traceless.features import Linear

    phi, known = model.feature_map or Linear(), model.knowledge_
    S = known.feature_gram.astype(object)
    width = len(S) - bool(phi.bias)
    squares, steps = S.diagonal()[:width], np.broadcast_to(np.ravel(phi.resolution), width)
    total, sums = (
        (S[-1, -1], S[:width, -1]) if phi.bias else (known.n_samples << known.weight_bits, 0)
    )
    variances = (total * squares - sums * sums) / (total * total)
    each: list[float | None] = (np.sqrt(variances.astype(float)) * steps).tolist()
    return [None, *each] if phi.bias or not is_regression else each


def _largest_first(
    columns: Mapping[str, list[Any]], deviations: list[float | None], is_regression: bool
) -> list[int]:
    """The order of the rows: by target, the intercept first, then by effect."""
    wanted = ["coefficient"] if is_regression else [c for c in columns if c != "name"]
    targets = columns.get("target", []) if is_regression else []

    def key(k: int) -> tuple[int, float]:
        deviation = deviations[k]
        largest = max(abs(columns[name][k]) for name in wanted)
        effect = float("inf") if deviation is None else largest * deviation
        return (targets.index(targets[k]) if targets else 0, -effect)

    return sorted(range(len(deviations)), key=key)


def _short(value: Any) -> Any:
    from traceless.features.table import as_toml

    if isinstance(value, bool | Mapping):
        return as_toml(value)
    return f"{value:.6g}" if isinstance(value, float) else value
