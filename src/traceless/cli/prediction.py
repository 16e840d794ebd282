"""Commands that predict: predict, score, cv. The store is not changed, and not locked."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from traceless.cli.command import command
from traceless.cli.inputs import (
    out_option,
    rows_of,
    split_names,
    store_argument,
    table_argument,
    with_progress,
)
from traceless.cli.output import Grid, Result, fields

if TYPE_CHECKING:
    from traceless.store import Store
    from traceless.tables import Table


@command(
    "traceless predict shop today.csv --out answers.csv",
    "traceless predict shop today.parquet --keep id --scores",
    "traceless predict shop - < today.csv",
)
@store_argument
@table_argument
@click.option("--keep", default="", help="Columns to copy into the answers, as a,b,c.")
@click.option("--scores", is_flag=True, help="Also the score of each class.")
@out_option
def predict(store: Store, table: Table, keep: str, scores: bool, out: str | None) -> Result:
    """Answer for the rows of FILES, as CSV; the target column is not needed."""
    model, kept = store.model(), split_names(keep)
    header = [*kept, *_headings(model, table, scores)]
    batches = _predictions(model, table, kept, scores)
    if out is None and click.get_current_context().meta["as_json"]:
        rows = [dict(zip(header, row, strict=True)) for batch in batches for row in batch]
        return Result({"predictions": rows})
    count = 0

    def texts() -> Iterator[str]:
        nonlocal count
        for batch in batches:
            text = io.StringIO()
            rows = batch if count else [header, *batch]
            csv.writer(text, lineterminator="\n").writerows(rows)
            count += len(batch)
            yield text.getvalue()

    _write(texts(), out)
    return Result({"rows": count, "out": out}, [f"{count} answers are in {out}."] if out else [])


@command("traceless score shop test.csv", "traceless score shop test.csv --json")
@store_argument
@table_argument
def score(store: Store, table: Table) -> Result:
    """Compare the model's answers with the target of FILES, which it need not have learned."""
    import numpy as np

    model = store.model()
    answered = ((rows[1], model.predict(rows[0]), *rows[2:]) for rows in rows_of(table, "scoring"))
    y, answers, *weight = map(np.concatenate, zip(*answered, strict=True))
    measure = _regression if table.schema.labels == "number" else _classification
    measures = measure(y, answers, sample_weight=weight[0] if weight else None)
    numbers = {name: f"{v:.4f}" for name, v in measures.items() if isinstance(v, float)}
    shown = [fields({"rows": len(y), **numbers})]
    classes = measures.get("classes", [])
    if classes:
        rows = [[label, n, f"{r:.3f}", f"{p:.3f}"] for label, n, r, p in map(dict.values, classes)]
        shown.append(Grid(rows, list(classes[0])))
    return Result({"rows": len(y), **measures}, shown)


@command(
    "traceless cv shop january.csv february.csv",
    "traceless cv shop all.parquet --folds 10 --shuffle 0 --scoring balanced_accuracy",
)
@store_argument
@table_argument
@click.option("--folds", type=click.IntRange(min=2), default=5, help="How many folds [5].")
@click.option("--shuffle", type=int, metavar="SEED", help="Shuffle the rows before folding.")
@click.option("--scoring", help="One of scikit-learn's scores, such as balanced_accuracy.")
def cv(store: Store, table: Table, folds: int, shuffle: int | None, scoring: str | None) -> Result:
    """Cross-validate the store's kind of model on the rows of FILES.

    All rows are learned once and each fold is taken out again, which gives the same scores as
    learning each time anew. The rows that the store holds play no part. The rows of FILES must fit
    into memory.
    """
    from sklearn.model_selection import KFold, StratifiedKFold

    from traceless.model_selection import cross_validate

    model, (X, y, weight) = store.model(), table.arrays()
    splitter, name = StratifiedKFold, "accuracy"
    if table.schema.labels == "number":
        splitter, name = KFold, "r2"
    result = cross_validate(
        model,
        X,
        y,
        cv=splitter(folds, shuffle=shuffle is not None, random_state=shuffle),
        scoring=scoring,
        params=None if weight is None else {"sample_weight": weight},
        verbose=sys.stderr.isatty(),
        return_indices=True,
        error_score="raise",
    )
    name, scores, tests = scoring or name, result["test_score"], result["indices"]["test"]
    mean, spread = scores.mean(), scores.std()
    rows = [[k + 1, len(tests[k]), f"{s:.4f}"] for k, s in enumerate(scores)]
    return Result(
        {"scoring": name, "scores": scores, "mean": mean, "std": spread, "rows": len(X)},
        [Grid(rows, ["fold", "rows", name]), f"{name}: {mean:.4f} ± {spread:.4f}"],
    )


def _predictions(model: Any, table: Table, kept: list[str], scores: bool) -> Iterator[list[Any]]:
    """Rows of the output, a batch at a time."""
    import numpy as np

    batches = ((batch.X, batch) for batch in table.batches([*table.schema.features, *kept]))
    for X, batch in with_progress(table, batches, "predicting"):
        columns = [batch.cells[name].array.to_pylist() for name in kept]
        for answers in (model.predict(X), *([model.decision_function(X)] if scores else [])):
            columns += np.atleast_2d(answers.T).tolist()
        yield list(zip(*columns, strict=True))


def _headings(model: Any, table: Table, scores: bool) -> list[str]:
    targets = table.schema.target
    if table.schema.labels == "number":
        if scores:
            raise click.UsageError("--scores is for classes, and this is a regression.")
        return ["prediction"] if len(targets) == 1 else [f"prediction_{t}" for t in targets]
    classes = list(model.classes_)[len(model.classes_) == 2 :] if scores else []
    return ["prediction", *(f"score_{label}" for label in classes)]


def _write(texts: Iterator[str], path: str | None) -> None:
    """Write to standard output, or to a file that appears when it is complete."""
    from traceless.files import container

    if path is None:
        sys.stdout.writelines(texts)
    elif Path(path).exists() and not Path(path).is_file():  # a pipe or a device is not replaced
        with open(path, "w", encoding="utf-8", newline="") as file:
            file.writelines(texts)
    else:
        container.replace(Path(path).resolve(), (text.encode() for text in texts))


def _regression(y: Any, answers: Any, sample_weight: Any) -> dict[str, Any]:
    from sklearn import metrics

    scores = {
        "r2": metrics.r2_score,
        "rmse": metrics.root_mean_squared_error,
        "mae": metrics.mean_absolute_error,
    }
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
