"""Commands that use the model: predict, export. The store stays as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from traceless.cli import inputs
from traceless.cli.chosen import Chosen, files_argument
from traceless.cli.command import command
from traceless.cli.output import Grid, Outputs, Result, csv_text, echo, fields, target_of
from traceless.exceptions import StoreError

if TYPE_CHECKING:
    from traceless.sources import Files
    from traceless.store import Store


@command(
    "traceless predict shop today.csv --out answers.csv",
    "traceless predict shop today.parquet --keep id --probabilities",
    "traceless predict prices today.csv --interval 0.9",
    "traceless predict shop - < today.csv",
    "traceless predict shop test.csv --compare",
)
@inputs.store_argument
@files_argument
@click.option("--keep", default="", help="Columns to copy into the answers, as a,b,c.")
@click.option("--scores", is_flag=True, help="Also the score of each class.")
@click.option("--probabilities", is_flag=True, help="Also the probability of each class.")
@click.option("--interval", type=float, metavar="LEVEL", help="Also where targets will be.")
@click.option("--compare", is_flag=True, help="Only how good they are: FILES have the target.")
@inputs.out_option
def predict(
    store: Store,
    chosen: Chosen,
    keep: str,
    scores: bool,
    probabilities: bool,
    interval: float | None,
    compare: bool,
    out: str | None,
) -> Result:
    """Predict for the rows of files, as CSV, or compare with the target.

    The target column is not needed, but for --compare, which says how good the predictions are:
    use rows that the model has not learned. With --interval 0.95 a target lies between the columns
    "low" and "high" in 95 of 100 cases.
    """
    if compare:
        return _compared(store, chosen)
    files = Outputs(out)
    model, table, kept = _model(store), chosen.table, inputs.split_names(keep)
    answers = _answers(model, table, scores, probabilities, interval)
    header = [*kept, *(heading for headings, _ in answers for heading in headings)]
    batches = _predictions([answer for _, answer in answers], table, kept)
    if out is None and click.get_current_context().meta["as_json"]:
        rows = [dict(zip(header, row, strict=True)) for batch in batches for row in batch]
        return Result({"predictions": rows})
    count = 0

    def texts() -> Iterator[str]:
        nonlocal count
        for batch in batches:
            text = csv_text(batch if count else [header, *batch])
            count += len(batch)
            yield text

    if out is None:
        echo(texts())
    else:
        files.write(out, texts())
    return Result({"rows": count, "out": out}, [f"{count} answers are in {out}."] if out else [])


def _compared(store: Store, chosen: Chosen) -> Result:
    """How good the predictions for some rows are."""
    y, _, measures = scored(_model(store), chosen.table)
    numbers = {name: f"{v:.4f}" for name, v in measures.items() if isinstance(v, float)}
    shown = [fields({"rows": len(y), **numbers})]
    classes = measures.get("classes", [])
    if classes:
        rows = [[label, n, f"{r:.3f}", f"{p:.3f}"] for label, n, r, p in map(dict.values, classes)]
        shown.append(Grid(rows, list(classes[0])))
    return Result({"rows": len(y), **measures}, shown)


@command("traceless export shop shop.traceless", "traceless export shop shop.onnx")
@inputs.store_argument
@click.argument("out", type=click.Path())
@inputs.force_option
def export(store: Store, out: str) -> Result:
    """Write the model to a file, or as ONNX.

    OUT ends in .traceless, to go on learning elsewhere, or in .onnx, to serve predictions.

    The file does not change with the store: rows that are forgotten later are still in it.
    """
    suffix = Path(out).suffix
    if suffix not in (".traceless", ".onnx"):
        raise click.UsageError(f"{out}: the name must end in .traceless or .onnx.")
    target = target_of(out)
    model = _model(store)
    if suffix == ".traceless":
        model.save(target)
    else:
        from traceless.estimators.onnx import to_onnx

        to_onnx(model, target)
    size, digest = target.stat().st_size, model.digest()
    data = {"out": out, "digest": digest, "bytes": size}
    return Result(data, [f"{out}: {size} bytes, digest {digest}"])


def _model(store: Store) -> Any:
    """The model, if it has learned anything."""
    if not store.status().rows:
        raise StoreError(f"{store.path} holds no rows yet: traceless learn {store.path} FILES.")
    return store.model()


def scored(model: Any, table: Files) -> tuple[Any, Any, dict[str, Any]]:
    """Targets, predictions, and what compares them."""
    import numpy as np

    if not table.schema.target:
        raise click.UsageError("The table of this store has no target to compare answers with.")
    answered = (
        (y, model.predict(X), *weight)
        for X, y, *weight in inputs.rows_of(table, "scoring", ids="never")
    )
    y, answers, *weight = map(np.concatenate, zip(*answered, strict=True))
    measure = _regression if table.schema.labels == "number" else _classification
    return y, answers, measure(y, answers, sample_weight=weight[0] if weight else None)


_Answer = tuple[list[str], Callable[[Any], Any]]  # headings, and the columns for some rows


def _answers(
    model: Any, table: Files, scores: bool, probabilities: bool, interval: float | None
) -> list[_Answer]:
    """What is to be written for each row; refuses what the model has not."""
    import numpy as np

    targets, is_regression = table.schema.target, table.schema.labels == "number"
    untold = probabilities and not hasattr(model, "predict_proba")
    refusals = {
        "--scores is for classes, and this is a regression.": scores and is_regression,
        "--probabilities is for classes, as --scores is.": probabilities and is_regression,
        f"--probabilities cannot be told by a {type(model).__name__}.": untold,
        "--interval is for numbers, not classes.": interval is not None and not is_regression,
    }
    for said, refused in refusals.items():
        if refused:
            raise click.UsageError(said)
    ends = [""] if len(targets) == 1 or not is_regression else [f"_{t}" for t in targets]
    out: list[_Answer] = [([f"prediction{end}" for end in ends], model.predict)]
    if scores:
        classes = list(model.classes_)[len(model.classes_) == 2 :]
        out.append(([f"score_{label}" for label in classes], model.decision_function))
    if probabilities:
        out.append(([f"probability_{label}" for label in model.classes_], model.predict_proba))
    if interval is not None:
        names = [f"{side}{end}" for side in ("low", "high") for end in ends]
        out.append((names, lambda X: np.column_stack(model.predict_interval(X, interval))))
    return out


def _predictions(
    answers: list[Callable[[Any], Any]], table: Files, kept: list[str]
) -> Iterator[list[Any]]:
    """Rows of the output, a batch at a time."""
    import numpy as np

    batches = ((batch.X, batch) for batch in table.batches([*table.schema.table.names, *kept]))
    for X, batch in inputs.with_progress(batches, "predicting"):
        columns = [batch.cells(name).array.to_pylist() for name in kept]
        for answer in answers:
            columns += np.atleast_2d(answer(X).T).tolist()
        yield list(zip(*columns, strict=True))


def _regression(y: Any, answers: Any, sample_weight: Any) -> dict[str, Any]:
    from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error

    scores = {"r2": r2_score, "rmse": root_mean_squared_error, "mae": mean_absolute_error}
    return {k: float(score(y, answers, sample_weight=sample_weight)) for k, score in scores.items()}


def _classification(y: Any, answers: Any, sample_weight: Any) -> dict[str, Any]:
    import numpy as np
    from sklearn import metrics

    labels, counts = np.unique(y, return_counts=True)
    precision, recall, _, _ = metrics.precision_recall_fscore_support(
        y, answers, labels=labels, sample_weight=sample_weight, zero_division=0.0
    )
    columns = {"class": labels, "rows": counts, "recall": recall, "precision": precision}
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return {
        "accuracy": float(metrics.accuracy_score(y, answers, sample_weight=sample_weight)),
        "balanced_accuracy": float(np.mean(recall)),
        "classes": [dict(zip(columns, row, strict=True)) for row in rows],
    }
