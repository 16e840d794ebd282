"""``traceless report``: one page that shows the history, the queue, the scores and the proof."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from traceless.cli import inputs
from traceless.cli.command import command
from traceless.cli.output import Outputs, Result

if TYPE_CHECKING:
    from traceless.store import Store


@command(
    "traceless report shop --html shop.html", "traceless report shop --html shop.html --on test.csv"
)
@inputs.store_argument
@inputs.path_option("--html", required=True, help="The page to write.")
@inputs.path_option("--on", multiple=True, help="Score the model on the rows of FILE.")
@inputs.format_option
@inputs.force_option
def report(store: Store, html: str, on: Sequence[str], format_: str | None) -> Result:
    """Write a page: history, queue, scores, receipts.

    The page is one file that loads nothing from elsewhere. With --on FILE, which may be given many
    times, it has the scores on these rows, and the confusion matrix. The ledger and the files
    of the store are verified; the exit code is 1 if a check fails.
    """
    from traceless.cli import report_page

    files = Outputs(html)
    scores, measures = "", None
    if on:
        table = inputs.open_table(store.about, on, format_)
        scores, measures = report_page.scores_on(store, table, on)
    found = store.verify()
    files.write(html, [report_page.page(store, found, scores, datetime.now(UTC))])
    data = {"written": html, "verified": found.ok, "scores": measures}
    said = [] if found.ok else ["A check failed: see traceless verify."]
    return Result(data, [f"Written: {html}", *said], found.ok)
