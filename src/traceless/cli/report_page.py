"""The page of a store: its history, the queue, scores, receipts and proof."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from traceless.cli.models import scored
from traceless.store.page import code, document, named, text

if TYPE_CHECKING:
    from traceless.sources import Files
    from traceless.store import Queued, Status, Store, Verification
    from traceless.store.entries import Entry

PERIODS = 40  # lines of the history: of days, of months if there are more, or of years
CLASSES, MATRIX, RECEIPTS = 8, 15, 12  # named one by one; lines of the table of receipts
OTHERS = "other classes"
OVERDUE = 30  # days: most laws give an organisation a month to answer


def page(store: Store, found: Verification, scores: str, now: datetime) -> str:
    """The page, as HTML.

    Parameters
    ----------
    store : Store
    found : Verification
        Of the store, as it is now.
    scores : str
        What `scores_on` made of files, or nothing.
    now : datetime
    """
    status, entries, pending = store.status(), store.history(), store.pending()
    name, owner = store.path.resolve().name, store.about.get("organisation")
    body = [
        f"<header>{f'<p>{text(owner)}</p>' if owner else ''}<h1><bdi>{text(name)}</bdi></h1>"
        f"<p>{status.model}. {now:%Y-%m-%d %H:%M} UTC</p></header>",
        _overview(status, entries, pending, now),
        f"<h2>Rows over time</h2>{_history(entries)}",
        f"<h2>Requests that wait</h2>{_queue(pending, now)}",
        scores,
        f"<h2>The last receipts</h2>{_receipts(entries[-RECEIPTS:])}",
        f"<h2>Proof</h2>{_proof(store, found)}",
        "<footer>This page is a copy. It keeps what it says when rows are forgotten: give it to "
        "those only who may know these numbers, and write a new one after a change.</footer>",
    ]
    return document(f"Report on {name}", "\n".join(body))


def number(value: float) -> str:
    """A whole number with thin spaces between thousands."""
    return f"{value:,.0f}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def decimal(value: float) -> str:
    """A number with some four digits."""
    return number(value) if 1000 <= abs(value) < 1e9 else f"{value:.4g}"


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells that are escaped already; a minus before a heading marks numbers."""
    kinds = [' class="number"' if heading.startswith("-") else "" for heading in headings]
    head = "".join(
        f'<th{kind} scope="col">{heading.removeprefix("-")}</th>'
        for kind, heading in zip(kinds, headings, strict=True)
    )
    body = "".join(
        f"<tr>{''.join(f'<td{k}>{c}</td>' for k, c in zip(kinds, row, strict=True))}</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _facts(numbers: Mapping[str, str]) -> str:
    return _table([f"-{name}" for name in numbers], [list(numbers.values())])


# --- history ------------------------------------------------------------------------------------


def _overview(
    status: Status, entries: Sequence[Entry], pending: Sequence[Queued], now: datetime
) -> str:
    learned, forgotten = map(sum, zip(*_changes(entries), strict=True))
    oldest = max((_days(queued, now) for queued in pending), default=0)
    numbers = {
        "rows held": status.rows,
        "rows learned in all": learned,
        "rows forgotten in all": forgotten,
        "changes": status.sequence,
        f"rows wait{f', the oldest {oldest} days' if pending else ''}": status.waiting,
    }
    return _facts({name: number(n) for name, n in numbers.items()})


def _changes(entries: Sequence[Entry]) -> list[tuple[int, int]]:
    """Rows that each entry learned and forgot."""
    held = [0, *(entry.held for entry in entries)]
    differences = [after - before for before, after in pairwise(held)]
    return [(max(n, 0), max(-n, 0)) for n in differences]


def _history(entries: Sequence[Entry]) -> str:
    """Rows learned, forgotten and held, in all and of each class, by days, months or years."""
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
    headings = ["period", "-learned", "-forgotten", "-held", *(f"-{text(c)}" for c in classes)]
    return _table(headings, [[text(period), *map(number, line)] for period, line in lines.items()])


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


# --- the queue ----------------------------------------------------------------------------------


def _queue(pending: Sequence[Queued], now: datetime) -> str:
    if not pending:
        return '<p class="soft">None.</p>'
    rows, late = [], 0
    for queued in pending:
        days = _days(queued, now)
        late += days > OVERDUE
        classes = ", ".join(f"{named(label)} {n}" for label, n in list(queued.classes.items())[:8])
        age = _bad(number(days)) if days > OVERDUE else number(days)
        key = named(queued.key) if queued.key else ""
        rows.append([text(queued.time), age, key, number(queued.rows), classes])
    verb = "request waits" if late == 1 else "requests wait"
    said = f"<p>{_bad(f'{late} {verb} for more than {OVERDUE} days.')}</p>" if late else ""
    how = f"{code('traceless queue flush STORE')} forgets them once enough are together"
    return (
        f"{said}{_table(['came (UTC)', '-days', 'key', '-rows', 'classes'], rows)}"
        f'<p class="soft">{how}, with {code("--force")} now.</p>'
    )


def _days(queued: Queued, now: datetime) -> int:
    return max(0, (now - datetime.fromisoformat(queued.time)).days)


# --- scores -------------------------------------------------------------------------------------


_MEASURES = {"r2": "R²", "rmse": "root of the mean squared error", "mae": "mean absolute error"}


def scores_on(store: Store, table: Files, files: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """The part of the page about these files, and the numbers in it."""
    y, answers, measures = scored(store.model(), table)
    numbers = {k: decimal(value) for k, value in measures.items() if isinstance(value, float)}
    facts = {_MEASURES.get(k, k.replace("_", " ")): value for k, value in numbers.items()}
    confusion = "" if table.schema.labels == "number" else _confusion(y, answers)
    where = ", ".join(named(file) for file in files[:5])
    said = f"<h2>Scores on {where}</h2>{_facts({'rows': number(len(y)), **facts})}{confusion}"
    return said, {"rows": len(y), **measures}


def _confusion(y: Any, answers: Any) -> str:
    """A line for each class, a column for each answer."""
    true, answered = list(map(str, y.tolist())), list(map(str, answers.tolist()))
    names = _grouped([Counter(true), dict.fromkeys(answered, 0)], MATRIX)
    labels = list(dict.fromkeys(names.values()))
    pairs = Counter((names[t], names[a]) for t, a in zip(true, answered, strict=True))
    rows = [[text(t), *(number(pairs[t, a]) for a in labels)] for t in labels]
    return _table(["true \\ predicted", *(f"-{text(label)}" for label in labels)], rows)


# --- receipts and proof -------------------------------------------------------------------------


def _receipts(entries: Sequence[Entry]) -> str:
    rows = []
    for e in reversed(entries):
        keys = ", ".join(named(key) for key in e.keys[:3]) + ("…" if len(e.keys) > 3 else "")
        what = [str(e.sequence), text(e.time), text(e.kind), number(e.rows), number(e.held)]
        rows.append([*what, keys, code(e.hash[:16])])
    command_ = code(f"traceless receipt STORE {entries[-1].sequence} --html receipt.html")
    headings = ["-change", "time (UTC)", "kind", "-rows", "-held", "key", "hash"]
    return f'{_table(headings, rows)}<p class="soft">{command_} writes one of them as a page.</p>'


def _proof(store: Store, found: Verification) -> str:
    said = "All is as it should be." if found.ok else _bad("A check failed.")
    checks = [
        [text(check.name), "ok" if check.ok else _bad("failed"), text(check.said, 400)]
        for check in found.checks
    ]
    head = map(code, store.head().splitlines())
    return (
        f"<p>The ledger and the files were checked for this page. {said}</p>"
        f"{_table(['check', 'result', 'said'], checks)}"
        "<p>Keep these lines where nobody can change them, in a mail or with a notary. A store "
        f"that was set back or rewritten does not continue them.</p><p>{'<br>'.join(head)}</p>"
        f"<p>To check: {code('traceless verify STORE --head FILE')}, and with all rows that should "
        f"be held {code('traceless verify STORE rows.csv')}.</p>"
    )


def _bad(said: str) -> str:
    return f'<span class="bad">{said}</span>'
