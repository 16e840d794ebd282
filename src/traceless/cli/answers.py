"""Commands that ask a model: predict, score, cv. The store is not changed, and not locked."""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from traceless.cli.answer import Answer, Facts, Grid
from traceless.cli.command import command
from traceless.cli.declared import listed
from traceless.cli.meter import watched
from traceless.cli.opened import open_store, table_for
from traceless.cli.options import files_argument, format_option, out_option, store_argument

if TYPE_CHECKING:
    from traceless.sources import Table


@command(
    "traceless predict shop today.csv --out answers.csv",
    "traceless predict shop today.parquet --keep id --scores",
    "traceless predict shop - < today.csv",
)
@store_argument
@files_argument
@click.option("--keep", default="", help="Columns to copy into the answers, as a,b,c.")
@click.option("--scores", is_flag=True, help="Also the score of each class.")
@out_option
@format_option
def predict(
    store: str, files: Sequence[str], keep: str, scores: bool, out: str | None, format_: str | None
) -> Answer:
    """Answer for the rows of FILES, as CSV; the target column is not needed."""
    home = open_store(store)
    model, table = home.model(), table_for(home, files, format_)
    kept = listed(keep)
    batches = _answers(model, table, kept, scores)
    header = [*kept, *_headings(model, table, scores)]
    if out is None and click.get_current_context().params["as_json"]:
        rows = [dict(zip(header, row, strict=True)) for batch in batches for row in batch]
        return Answer({"predictions": rows})
    count = 0
    with _written(out) as file:
        writer = csv.writer(file, lineterminator="\n")
        for batch in batches:
            writer.writerows(batch if count else [header, *batch])
            count += len(batch)
    said = [] if out is None else [f"{count} answers are in {out}."]
    return Answer({"rows": count, "out": out}, said)


@command("traceless score shop test.csv", "traceless score shop test.csv --json")
@store_argument
@files_argument
@format_option
def score(store: str, files: Sequence[str], format_: str | None) -> Answer:
    """Compare the model's answers with the target of FILES, which it need not have learned."""
    import numpy as np

    home = open_store(store)
    model, table = home.model(), table_for(home, files, format_)
    answered = (
        (rows[1], model.predict(rows[0]), *rows[2:])
        for rows in watched(table, table.rows(), "scoring")
    )
    y, answers, *weight = (np.concatenate(part) for part in zip(*answered, strict=True))
    weights = weight[0] if weight else None
    if table.schema.labels == "number":
        measures = _regression(y, answers, weights)
        return Answer({"rows": len(y), **measures}, [Facts({"rows": len(y), **_short(measures)})])
    measures, classes = _classification(y, answers, weights)
    grid = Grid(
        ["class", "rows", "recall", "precision"],
        [[c["class"], c["rows"], f"{c['recall']:.3f}", f"{c['precision']:.3f}"] for c in classes],
    )
    facts = Facts({"rows": len(y), **_short(measures)})
    return Answer({"rows": len(y), **measures, "classes": classes}, [facts, grid])


@command(
    "traceless cv shop january.csv february.csv",
    "traceless cv shop all.parquet --folds 10 --shuffle 0 --scoring balanced_accuracy",
)
@store_argument
@files_argument
@click.option("--folds", type=click.IntRange(min=2), default=5, help="How many folds [5].")
@click.option("--shuffle", type=int, metavar="SEED", help="Shuffle the rows before folding.")
@click.option("--scoring", help="One of scikit-learn's scores, such as balanced_accuracy.")
@format_option
def cv(
    store: str,
    files: Sequence[str],
    folds: int,
    shuffle: int | None,
    scoring: str | None,
    format_: str | None,
) -> Answer:
    """Cross-validate the store's kind of model on the rows of FILES.

    All rows are learned once and each fold is taken out again, which gives the numbers of
    learning each time anew. What the store holds plays no part. The rows must fit into memory.
    """
    from sklearn.model_selection import KFold, StratifiedKFold

    from traceless.model_selection import cross_validate

    home = open_store(store)
    table = table_for(home, files, format_)
    X, y, weight = table.arrays()
    regression = table.schema.labels == "number"
    splitter = (KFold if regression else StratifiedKFold)(
        folds, shuffle=shuffle is not None, random_state=shuffle
    )
    result = cross_validate(
        home.model(),
        X,
        y,
        cv=splitter,
        scoring=scoring,
        params=None if weight is None else {"sample_weight": weight},
        verbose=sys.stderr.isatty(),
        return_indices=True,
        error_score="raise",
    )
    scores = result["test_score"].tolist()
    sizes = map(len, result["indices"]["test"])
    mean, spread = result["test_score"].mean(), result["test_score"].std()
    name = scoring or ("r2" if regression else "accuracy")
    rows = [
        [k + 1, size, f"{s:.4f}"] for k, (size, s) in enumerate(zip(sizes, scores, strict=True))
    ]
    return Answer(
        {"scoring": name, "scores": scores, "mean": mean, "std": spread, "rows": len(X)},
        [Grid(["fold", "rows", name], rows), f"{name}: {mean:.4f} ± {spread:.4f}"],
    )


def _answers(model: Any, table: Table, kept: list[str], scores: bool) -> Iterator[list[Any]]:
    """Rows of the output, a batch at a time."""
    import numpy as np

    batches = ((batch.X, batch) for batch in table.batches([*table.schema.features, *kept]))
    for X, batch in watched(table, batches, "predicting"):
        columns = [batch.cells[name].array.to_pylist() for name in kept]
        parts = [model.predict(X), *([model.decision_function(X)] if scores else [])]
        for part in parts:
            columns += np.atleast_2d(part.T).tolist()
        yield list(zip(*columns, strict=True))


def _headings(model: Any, table: Table, scores: bool) -> list[str]:
    targets = table.schema.target
    if table.schema.labels == "number":
        if scores:
            raise click.UsageError("--scores is for classes, and this is a regression.")
        return ["prediction"] if len(targets) == 1 else [f"prediction_{t}" for t in targets]
    if not scores:
        return ["prediction"]
    classes = [str(label) for label in model.classes_]
    scored = classes[1:] if len(classes) == 2 else classes
    return ["prediction", *(f"score_{label}" for label in scored)]


@contextmanager
def _written(path: str | None) -> Iterator[IO[str]]:
    """Standard output, or a file that appears when it is complete."""
    if path is None:
        yield sys.stdout
        return
    target = Path(path).resolve()
    plain = target.is_file() or not target.exists()  # a pipe or a device is not replaced
    aside = target.with_name(f".{target.name}.{os.getpid()}") if plain else target
    try:
        with open(aside, "w", encoding="utf-8", newline="") as file:
            yield file
        if plain:
            os.replace(aside, target)
    except BaseException:
        if plain:
            aside.unlink(missing_ok=True)
        raise


def _regression(y: Any, answers: Any, weights: Any) -> dict[str, float]:
    from sklearn import metrics

    return {
        "r2": float(metrics.r2_score(y, answers, sample_weight=weights)),
        "rmse": float(metrics.root_mean_squared_error(y, answers, sample_weight=weights)),
        "mae": float(metrics.mean_absolute_error(y, answers, sample_weight=weights)),
    }


def _classification(y: Any, answers: Any, weights: Any) -> tuple[dict[str, float], list[Any]]:
    import numpy as np
    from sklearn import metrics

    labels = np.unique(y)
    precision, recall, _, _ = metrics.precision_recall_fscore_support(
        y, answers, labels=labels, sample_weight=weights, zero_division=0.0
    )
    counts = [int((y == label).sum()) for label in labels]
    names = ("class", "rows", "recall", "precision")
    rows = zip(labels.tolist(), counts, recall.tolist(), precision.tolist(), strict=True)
    measures = {
        "accuracy": float(metrics.accuracy_score(y, answers, sample_weight=weights)),
        "balanced_accuracy": float(np.mean(recall)),
    }
    return measures, [dict(zip(names, row, strict=True)) for row in rows]


def _short(measures: dict[str, float]) -> dict[str, str]:
    return {name: f"{value:.4f}" for name, value in measures.items()}
