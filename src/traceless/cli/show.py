"""What was declared of a model, and the coefficients that the rows give."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from traceless.cli import inputs
from traceless.cli.declaration import described
from traceless.cli.output import Grid, Result, fields

if TYPE_CHECKING:
    from traceless.store import Status, Store

MOST = 40  # coefficients in a terminal


def declared_model(store: Store, now: Status, level: float, all_: bool) -> Result:
    """The declaration, as a file has it, and the table of coefficients."""
    from traceless.estimators import loading
    from traceless.features.table import as_toml

    about, origin = store.about, store.receipt(0).store
    loading.from_description(origin["model"])  # refuses what is none
    table, options = about.get("table"), described(origin["model"])
    beside = {"organisation": about.get("organisation"), "created": origin["created"]}
    lines = "\n".join(f"{name} = {as_toml(value)}" for name, value in options.items())
    shown: list[str | Grid] = [
        "",
        fields({name: value for name, value in beside.items() if value is not None}),
        f"\n{inputs.declared(about)}" if table else "\nNo table is declared: made in Python.",
        f"\n[model]\n{lines}\n",
    ]
    data = {**beside, "table": table, "described": origin["model"], "options": options}
    if now.rows and now.has_model:
        found, more = _coefficients(store.model(), table, level, all_)
        return Result(data | found, shown + more)
    why = "has learned no rows yet" if now.has_model else "is destroyed"
    return Result(data, [*shown, f"The model {why}: there are no coefficients."])


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
