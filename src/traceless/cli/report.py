"""``traceless report``: one page that shows the history, the queue, the scores and the proof."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from traceless.cli import inputs
from traceless.cli.command import command
from traceless.cli.output import Outputs, Result
from traceless.cli.queue import waiting

if TYPE_CHECKING:
    from traceless.store import Store
    from traceless.store.entries import Entry

PERIODS = 40  # lines of the history: of days, of months if there are more, or of years
CLASSES, MATRIX, RECEIPTS = 8, 15, 12  # named one by one; lines of the table of receipts
OTHERS = "other classes"
_WAITING = "time", "due", "days_left", "request", "rows", "classes"
_MEASURES = {"r2": "R²", "rmse": "root of the mean squared error", "mae": "mean absolute error"}


@command(
    "traceless report shop --html shop.html", "traceless report shop --html shop.html --on test.csv"
)
@inputs.store_argument
@inputs.path_option("--html", required=True, help="The page to write.")
@inputs.rows_option("--on", help="Score the model on the rows of FILE.")
@inputs.format_option
@inputs.force_option
def report(store: Store, html: str, on: Sequence[str], format_: str | None) -> Result:
    """Write a page: history, queue, scores, receipts.

    The page is one file that loads nothing from elsewhere. With --on FILE, which may be given many
    times, it has the scores on these rows, and the confusion matrix. The ledger and the files
    of the store are verified; the exit code is 1 if a check fails.
    """
    from traceless.pages import code, names, number, render

    files = Outputs(html)
    scores = _scores(store, on, format_) if on else None
    status, entries, found, now = store.status(), store.history(), store.verify(), datetime.now(UTC)
    learned, forgotten = map(sum, zip(*_changes(entries), strict=True))
    overview = {"rows held": status.rows, "rows learned in all": learned}
    overview |= {"rows forgotten in all": forgotten, "changes": status.sequence}
    overview |= {"rows wait": status.waiting}
    classes, periods = _history(entries)
    queue = waiting(store, now.date())
    page = render(
        "report.html",
        store=store.path.resolve().name,
        owner=store.about.get("organisation"),
        status=status,
        now=f"{now:%Y-%m-%d %H:%M}",
        overview=[(f"-{name}", number(n)) for name, n in overview.items()],
        classes=[f"-{name}" for name in classes],
        periods=[[period, *map(number, line)] for period, line in periods.items()],
        late=sum(one["days_left"] < 0 for one in queue),
        waiting=[list(map(one.get, _WAITING)) for one in queue],
        scores=scores,
        receipts=[
            [e.sequence, e.time, e.kind, e.rows, e.held, names(e.keys), code(e.hash[:16])]
            for e in reversed(entries[-RECEIPTS:])
        ],
        found=found,
        checks=[[c.name, "ok" if c.ok else "FAILED", c.said] for c in found.checks],
        head=store.head().splitlines(),
    )
    files.write(html, [page])
    data = {"written": html, "verified": found.ok, "scores": scores and scores["said"]}
    said = [] if found.ok else ["A check failed: see traceless verify."]
    return Result(data, [f"Written: {html}", *said], found.ok)


def _changes(entries: Sequence[Entry]) -> list[tuple[int, int]]:
    """Rows that each entry learned and forgot."""
    held = [0, *(entry.held for entry in entries)]
    differences = [after - before for before, after in pairwise(held)]
    return [(max(n, 0), max(-n, 0)) for n in differences]


def _history(entries: Sequence[Entry]) -> tuple[list[str], dict[str, list[int]]]:
    """Classes; and rows learned, forgotten and held, in all and of each class, by periods."""
    days = list(accumulate((entry.time[:10] for entry in entries), max))  # clocks run back
    size = next((n for n in (10, 7) if len({day[:n] for day in days}) <= PERIODS), 4)
    names = _grouped([entry.classes for entry in entries], CLASSES)
    classes = list(dict.fromkeys(names.values()))
    held = Counter[str]()
    lines: dict[str, list[int]] = {}
    for entry, day, (learned, forgotten) in zip(entries, days, _changes(entries), strict=True):
        for label, rows in entry.classes.items():
            held[names[label]] += rows
        before = lines.get(day[:size], [0, 0])
        line = [before[0] + learned, before[1] + forgotten, entry.held]
        lines[day[:size]] = [*line, *(held[name] for name in classes)]
    return classes, lines


def _grouped(several: Sequence[Mapping[str, int]], most: int) -> dict[str, str]:
    """Labels and the names under which they are counted: those of the small classes are one."""
    totals, peaks = Counter[str](), Counter[str]()
    for counts in several:
        totals.update(counts)
        peaks |= totals
    order = sorted(peaks, key=lambda label: (-peaks[label], label))
    large = sorted(order if len(order) <= most else order[: most - 1])
    return {label: label for label in large} | {
        label: OTHERS for label in order if label not in large
    }


def _scores(store: Store, files: Sequence[str], format_: str | None) -> dict[str, Any]:
    """Measures on the rows of files, and the confusion matrix of classes."""
    from traceless.cli.models import scored
    from traceless.pages import decimal, number

    table = inputs.open_table(store.about, files, format_)
    y, answers, measures = scored(store.model(), table)
    numbers = {k: decimal(value) for k, value in measures.items() if isinstance(value, float)}
    shown = [("-rows", number(len(y)))]
    shown += [(f"-{_MEASURES.get(k, k.replace('_', ' '))}", said) for k, said in numbers.items()]
    found = {"files": list(files), "measures": shown, "said": {"rows": len(y), **measures}}
    if table.schema.labels == "number":
        return found | {"labels": []}
    true, answered = list(map(str, y.tolist())), list(map(str, answers.tolist()))
    names = _grouped([Counter(true), dict.fromkeys(answered, 0)], MATRIX)
    labels = list(dict.fromkeys(names.values()))
    pairs = Counter((names[t], names[a]) for t, a in zip(true, answered, strict=True))
    rows = [[t, *(number(pairs[t, a]) for a in labels)] for t in labels]
    return found | {"labels": [f"-{label}" for label in labels], "confusion": rows}
