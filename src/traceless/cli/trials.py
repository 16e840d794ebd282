"""Try, confirm and make a change, and show its receipt."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from traceless.cli import inputs
from traceless.cli.inputs import Function
from traceless.cli.output import Grid, Result, ask, can_be_asked, fields

if TYPE_CHECKING:
    from traceless.store import Queued, Receipt, Store

Change = Callable[..., "Receipt | Queued | None"]
_MANY = 10  # ask for confirmation if more than a tenth of the rows change

_DRY_RUN = click.option(
    "--dry-run", is_flag=True, help="Show what would happen, and change nothing."
)
_SCORE = inputs.rows_option(
    "--score", help="With --dry-run: how the scores on the rows of FILE would move."
)
_YES = click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
_REQUEST = click.option(
    "--request",
    metavar="NAME",
    help="A name for this request: the same one again is recognised, and changes nothing.",
)
_WAIT = click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=0.0,
    metavar="SECONDS",
    help="How long to wait for another process that is writing.",
)
_SIGNING_KEY = inputs.path_option(
    "--signing-key", help="The key that signs the change, if it is not in the folder of the store."
)


def change_options(
    *, scores: bool = True, asks: bool = False, named: bool = True
) -> Callable[[Function], Function]:
    """Add the options of a change, --score, --yes and --request where they have a meaning.

    The function gets `how`; `inputs.store_argument` takes --wait and --signing-key.
    """

    def decorated(function: Function) -> Function:
        @functools.wraps(function)
        def called(
            store: Store,
            *,
            dry_run: bool,
            score: Sequence[str] = (),
            yes: bool = not asks,
            **options: Any,
        ) -> Result:
            request = {"key": options.pop("request")} if named else {}
            return function(store, how=How(store, dry_run, score, yes, request), **options)

        wanted: list[Any] = [_DRY_RUN, *[_SCORE] * scores, *[_YES] * asks, *[_REQUEST] * named]
        wanted += [_WAIT, _SIGNING_KEY]
        return functools.reduce(lambda inner, option: option(inner), reversed(wanted), called)

    return decorated


@dataclass(frozen=True)
class How:
    """How a change is to be made.

    Attributes
    ----------
    store : Store
    dry_run : bool
        Only try.
    score : sequence of str
        Files on which the models before and after a trial are compared.
    yes : bool
        Ask nothing.
    request : dict
        The ``key`` of the request, where it has one.
    verb : str
        What is done with rows, for the question.
    """

    store: Store
    dry_run: bool
    score: Sequence[str]
    yes: bool
    request: Mapping[str, Any]
    verb: str = "forgotten"

    def made(
        self, change: Change, count: Callable[[], int] | None = None, question: str | None = None
    ) -> Result:
        """Make a change, or try it: once.

        Parameters
        ----------
        change : callable
            Takes ``dry_run``, and ``key`` where a request has one; gives the answer of the store,
            or None if there was nothing to do.
        count : callable, optional
            How many rows it forgets or replaces: a terminal asks if they are more than a tenth.
        question : str, optional
            Always asked.
        """
        if self.score and not self.dry_run:
            raise click.UsageError(
                "--score FILE says how a change would move the scores: give --dry-run too. Nothing "
                "was changed."
            )
        if self.dry_run:
            return self._tried(change)
        if question and not self.yes:
            ask(question, "--yes")
        elif count and not self.yes and can_be_asked():
            rows, held = count(), self.store.status().rows
            if _MANY * rows > held:
                ask(f"{rows} of the {held} rows held will be {self.verb}. Go on?", "--yes")
        return self._told(change(**self.request, dry_run=False))

    def _tried(self, change: Change) -> Result:
        answer = change(**self.request, dry_run=True)
        told, receipt = self._told(answer), _receipt_of(answer)
        data, shown = {**told.data, "dry_run": True}, [*told.shown]
        if self.score:
            table = inputs.open_table(self.store.about, self.score, None)
            before = after = _scores(self.store.model(), self.store.status().rows, table)
            if receipt is not None and not receipt.replayed:
                after = _scores(receipt.tried, receipt.held, table)
            data["scores"] = {"before": before, "after": after}
            shown.append(_moved(before, after))
        last = "This was a trial: nothing was changed, and no receipt was signed."
        return Result(data, [*shown, last])

    def _told(self, answer: Receipt | Queued | None) -> Result:
        """The answer of the store, in words."""
        receipt = _receipt_of(answer)
        if answer is None or receipt is None:
            return Result({"receipt": None})
        data: dict[str, Any] = {"receipt": {**receipt.as_dict(), "replayed": answer.replayed}}
        again = ["This request was answered before; nothing was changed again."]
        if answer is not receipt:
            names = ("time", "rows", "classes", "sequence", "replayed")
            data["queued"] = {name: getattr(answer, name) for name in names}
            data["queued"]["request"] = next(iter(receipt.keys), None)
            shown = _waiting(receipt, self.store.path)
        else:
            shown = [fields(_done(receipt))]
        return Result(data, [*shown, *(again if answer.replayed else [])])


def _receipt_of(answer: Receipt | Queued | None) -> Receipt | None:
    from traceless.store import Queued

    return answer.receipt if isinstance(answer, Queued) else answer


def _held_before(receipt: Receipt) -> int:
    return receipt.held + (receipt.removed or 0) - (receipt.added or 0)


def _done(receipt: Receipt) -> dict[str, Any]:
    """What was done, or what would be."""
    said = {"change": f"{receipt.sequence} ({receipt.kind})", "rows": receipt.rows}
    digest = {"digest": receipt.digest_after}
    if not receipt.dry_run:
        return said | {"rows held": receipt.held} | digest | {"receipt": receipt.hash}
    said |= {f"  of {label}": f"{n:+}" for label, n in receipt.classes.items()}
    said |= {"rows held": f"{_held_before(receipt)} → {receipt.held}"}
    return said | {"digest before": receipt.digest_before} | digest


def _waiting(receipt: Receipt, path: Any) -> list[str | Grid]:
    number, verb = receipt.sequence, "would wait" if receipt.dry_run else "wait"
    said = f"{receipt.rows} rows {verb} in the queue, as request {number}; see traceless queue list"
    found = f"Its receipt, that the request has arrived: traceless receipt {path} {number}"
    return [f"{said} and flush.", *([] if receipt.dry_run else [found])]


def _scores(model: Any, rows: int, table: Any) -> dict[str, float]:
    """The measures of a model on a table; none without rows, or without a model."""
    from traceless.cli.models import scored

    found = scored(model, table)[2] if rows and model is not None else {}
    return {name: value for name, value in found.items() if isinstance(value, float)}


def _moved(before: dict[str, float], after: dict[str, float]) -> Grid:
    rows = []
    for name in {**before, **after}:
        old, new = before.get(name), after.get(name)
        told = [None if value is None else f"{value:.4f}" for value in (old, new)]
        moved = None if old is None or new is None else f"{new - old:+.4f}"
        rows.append([name.replace("_", " "), *told, moved])
    return Grid(rows, ["score", "before", "after", "change"])
