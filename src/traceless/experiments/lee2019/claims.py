"""What Lee et al. 2019 claim of Fig. 1 (a) to (f), and the criteria that judge it.

Each function takes the table of one figure (`measurements`) and returns a
`Finding`. The tests and their thresholds are in `criteria`.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from traceless.experiments.lee2019 import figures as figures
from traceless.experiments.lee2019.criteria import (
    AROUND,
    FASTER,
    FLAT,
    JITTER,
    MINOR,
    NEAR,
    RISE,
    ROW_ERROR,
    SLOWER,
    SMALLER,
    W_ERROR,
    best_around_1000,
    by_map,
    climbs,
    cutting_pays,
    dips_at_four,
    error_small,
    has_a_best,
    mostly_faster,
    much_faster,
    percent,
    rises_mostly,
    same,
    smaller,
    speedup,
    stays_flat,
)
from traceless.experiments.verdict import (
    Criterion,
    Finding,
    Rows,
    column,
    every,
    select,
    values,
)


def groups_learned(rows: Rows) -> Finding:
    """Fig. 1 (a)."""
    return Finding(
        name="1a",
        title="Fig. 1 (a): digits learned group by group",
        claim="Section 4, second paragraph, and Fig. 1 (a): trained on 0 and 1 and then given the "
        "other pairs of digits one after the other, the model gets better on the whole test set "
        "at nearly every step, so earlier knowledge is kept. After 4 and 5 it gets slightly "
        "worse for once. The updated model is exactly the retrained one (abstract, Section 3).",
        gist="accuracy rises with each group, small dip after 4&5",
        found=f"Accuracy after each group: {_series(rows)}. "
        + _exactness(rows, [r["digest"] == r["digest_from_scratch"] for r in rows]),
        criteria=[
            Criterion(
                f"Accuracy ends at least {100 * RISE:g} points above where it began, and rises in "
                "at least 3 of 4 steps",
                by_map(rows, rises_mostly),
            ),
            Criterion(
                "Every stage has the digest of a fit from scratch on the rows held then",
                by_map(
                    rows,
                    lambda r: every([x["digest"] == x["digest_from_scratch"] for x in r]),
                ),
            ),
            Criterion(
                "The step to 4&5 is the only one that lowers accuracy, by less than "
                f"{100 * MINOR:g} points",
                by_map(rows, dips_at_four),
                essential=False,
            ),
        ],
        rows=rows,
        draw=figures.groups_learned,
    )


def wrong_labels_forgotten(rows: Rows) -> Finding:
    """Fig. 1 (b)."""
    flipped = select(rows, wrong_labels="flipped")
    drawn = select(rows, wrong_labels="drawn at random")
    last = select(rows, removed=1.0)
    return Finding(
        name="1b",
        title="Fig. 1 (b): wrong labels forgotten step by step",
        claim="Section 4, third paragraph, and Fig. 1 (b): half of the training rows get "
        "erroneous labels “randomly assigned”. As more of these rows are removed from the model, "
        "its accuracy increases. (Whether the labels are flipped or drawn by lot is not said: "
        "both are shown. A label drawn by lot is right half of the time.)",
        gist="accuracy rises as wrongly labelled rows are forgotten",
        found=f"Labels flipped: {_from_to(flipped)}. Labels drawn at random: {_from_to(drawn)}; "
        "half of these are right by chance and least squares averages the others out. "
        + _exactness(last, column(last, "equals_never_learned"), "the rows with right labels"),
        criteria=[
            Criterion(
                f"Flipped labels: accuracy ends at least {100 * RISE:g} points above where it "
                f"began and never falls by more than {100 * JITTER:g} points",
                by_map(flipped, lambda r: climbs(r, RISE)),
            ),
            Criterion(
                "Labels drawn at random: accuracy ends above where it began and never falls by "
                f"more than {100 * JITTER:g} points",
                by_map(drawn, lambda r: climbs(r, 0.0)),
                essential=False,
            ),
            Criterion(
                "With all wrong rows forgotten, the digest is that of a model which never saw them",
                by_map(last, lambda r: every(column(r, "equals_never_learned"))),
            ),
        ],
        rows=rows,
        draw=figures.wrong_labels_forgotten,
    )


def update_times(rows: Rows) -> Finding:
    """Fig. 1 (c)."""
    size = max(column(rows, "size"))
    return Finding(
        name="1c",
        title="Fig. 1 (c): time of an update against retraining",
        claim="Section 4, fourth paragraph, and Fig. 1 (c): updating the model with a batch takes "
        "much less time than training it again from scratch with 10 new rows, in most of the "
        "settings tried (original training sets of up to 55,000 rows).",
        gist="an update is much faster than retraining",
        found=f"With {size:,} rows held, times for 10 new rows: {_speedups(rows, size)}. "
        f"From {min(column(rows, 'size')):,} rows to {size:,}, an update with 10 rows takes "
        f"{_growth(rows, 'update')} the time, retraining {_growth(rows, 'retrain')}.",
        criteria=[
            Criterion(
                f"With {size:,} rows held, an update with 10 rows is at least {FASTER:g} times "
                "faster than retraining",
                by_map(select(rows, size=size), much_faster),
            ),
            Criterion(
                "An update is faster than retraining in more than half of all pairs of training "
                "size and batch",
                by_map(rows, mostly_faster),
            ),
        ],
        rows=rows,
        draw=figures.update_times,
    )


def times_per_row(rows: Rows) -> Finding:
    """Fig. 1 (d)."""
    block, ours = select(rows, how="one block"), select(rows, how="traceless")
    return Finding(
        name="1d",
        title="Fig. 1 (d): time per row against batch size",
        claim="Sections 3 and 4 (fifth paragraph) and Fig. 1 (d): the cost of an update is cubic "
        "in the batch, and small batches suffer from overhead, so the time per row is lowest at "
        "batches of around 1,000. As updates are exact, a large batch may be cut into small ones, "
        "which saves much time.",
        gist="best batch around 1000; cutting larger ones pays",
        found=f"The paper's equations 5 and 6 on the whole batch at once: {_best(block)}. "
        f"traceless, which cuts large batches into blocks, and from about half as many rows as "
        f"features inverts its exact sums anew because that is cheaper still: {_best(ours)}.",
        criteria=[
            Criterion(
                "Equations 5 and 6 in one block: single rows and the largest batch both take at "
                f"least {SLOWER - 1:.0%} more time per row than the best batch",
                by_map(block, has_a_best),
            ),
            Criterion(
                f"The largest batch is at least {SLOWER - 1:.0%} slower in one block than cut",
                by_map(rows, cutting_pays),
            ),
            Criterion(
                f"Equations 5 and 6 in one block: a batch of {1000 / AROUND:.0f} to "
                f"{1000 * AROUND:.0f} rows comes within {NEAR - 1:.0%} of the best time per row",
                by_map(block, best_around_1000),
                essential=False,
            ),
            Criterion(
                f"Cut into blocks, the largest batch takes at most {FLAT:g} times the best time "
                "per row",
                by_map(ours, stays_flat),
                essential=False,
            ),
        ],
        rows=rows,
        draw=figures.times_per_row,
    )


def storage(rows: Rows) -> Finding:
    """Fig. 1 (e)."""
    size = max(column(rows, "size"))
    return Finding(
        name="1e",
        title="Fig. 1 (e): storage",
        claim="Section 4, sixth paragraph, and Fig. 1 (e): retraining needs all rows to be kept, "
        "an update only the vector w and the matrix C, whose size does not grow. That is much "
        "less.",
        gist="w and C need much less storage than the rows",
        found=f"{size:,} rows: {_sizes(rows, size)}. The whole model is a pickle of all that "
        "traceless keeps: exact integer sums, w, the inverse matrix and the feature map. Stored "
        "as one byte per pixel instead of float64, rows take an eighth.",
        criteria=[
            Criterion(
                "w and C take the same space for every number of rows",
                by_map(rows, lambda r: same(column(r, "w_and_C"))),
            ),
            Criterion(
                f"{size:,} rows as float64 take at least {SMALLER:g} times the space of w and C",
                by_map(
                    select(rows, size=size),
                    lambda r: smaller(r, "rows_float64", "w_and_C"),
                ),
            ),
        ],
        rows=rows,
        draw=figures.storage,
    )


def estimates_forgotten(rows: Rows) -> Finding:
    """Fig. 1 (f)."""
    small, large = min(column(rows, "size")), max(column(rows, "size"))
    at = select(rows, row_error=ROW_ERROR)
    ink, everywhere = select(at, noise="on the ink"), select(at, noise="everywhere")
    limit = f"w is wrong by less than {W_ERROR:.0%}"
    return Finding(
        name="1f",
        title="Fig. 1 (f): forgetting an estimate of a row",
        claim="Section 4, last paragraph, and Fig. 1 (f): if a row to be removed is no longer "
        "there, an estimate of it may do. With an error below 10% in the row, the error in w is "
        "below 1%. (Neither the kind of error, nor ρ, nor the number of rows held is given.)",
        gist="10% error in a forgotten row gives under 1% in w",
        found=_estimates_in_words(rows, small, large),
        criteria=[
            Criterion(
                f"{large:,} rows held, {ROW_ERROR:.0%} error on the ink: {limit}",
                by_map(select(ink, size=large), error_small),
            ),
            Criterion(
                f"{large:,} rows held, {ROW_ERROR:.0%} error spread over all pixels: {limit}",
                by_map(select(everywhere, size=large), error_small),
                essential=False,
            ),
            Criterion(
                f"{small:,} rows held, {ROW_ERROR:.0%} error on the ink: {limit}",
                by_map(select(ink, size=small), error_small),
                essential=False,
            ),
        ],
        rows=rows,
        draw=figures.estimates_forgotten,
    )


# --- numbers in words --------------------------------------------------------------------------


def _each(rows: Rows, words: Callable[[Rows], str]) -> str:
    return "; ".join(f"{name} {words(select(rows, map=name))}" for name in values(rows, "map"))


def _series(rows: Rows) -> str:
    return _each(rows, lambda r: " → ".join(f"{v:.1%}" for v in column(r, "accuracy")))


def _from_to(rows: Rows) -> str:
    return _each(rows, lambda r: f"{r[0]['accuracy']:.1%} → {r[-1]['accuracy']:.1%}")


def _exactness(rows: Rows, equal: list[bool], of: str = "the rows held then") -> str:
    return (
        f"In {sum(equal)} of {len(rows)} comparisons the digest was that of a fit from scratch on "
        f"{of}. Equal digests mean the same model to the last bit, which is more than the paper "
        "asks for."
    )


def _speedups(rows: Rows, size: int) -> str:
    def words(r: Rows) -> str:
        update = select(r, how="update", batch=10)[0]["seconds"]
        retrain = select(r, how="retrain")[0]["seconds"]
        return f"{1e3 * update:.3g} ms against {1e3 * retrain:,.0f} ms ({speedup(r):.3g} ×)"

    return _each(select(rows, size=size), words)


def _growth(rows: Rows, how: str) -> str:
    def words(r: Rows) -> str:
        seconds = column(select(r, how=how, batch=10), "seconds")
        return f"{seconds[-1] / seconds[0]:.2g} ×"

    return " and ".join(words(select(rows, map=name)) for name in values(rows, "map"))


def _best(rows: Rows) -> str:
    def words(r: Rows) -> str:
        best = min(r, key=lambda x: float(x["seconds_per_row"]))
        last = r[-1]
        return (
            f"{1e6 * best['seconds_per_row']:,.0f} µs per row at best (batch of "
            f"{best['batch']:,}), {1e6 * last['seconds_per_row']:,.0f} µs at {last['batch']:,}"
        )

    return _each(rows, words)


def _sizes(rows: Rows, size: int) -> str:
    def words(r: Rows) -> str:
        kept, whole = r[0]["w_and_C"] / 1e6, r[0]["whole_model"] / 1e6
        raw = r[0]["rows_float64"] / 1e6
        return f"{raw:.3g} MB of rows, {kept:.2g} MB for w and C, {whole:.2g} MB the whole model"

    return _each(select(rows, size=size), words)


def _estimates_in_words(rows: Rows, small: int, large: int) -> str:
    at = select(rows, row_error=ROW_ERROR)

    def words(r: Rows) -> str:
        return ", ".join(
            f"{percent(median(column(select(r, noise=noise), 'w_error')))} ({noise})"
            for noise in values(r, "noise")
        )

    large_only = select(at, size=large)
    kept = _each(large_only, lambda r: percent(median(column(r, "w_error_not_forgotten"))))
    little = max(column(large_only, "w_error_not_forgotten")) < W_ERROR
    remark = f", below {W_ERROR:.0%} too, so the claim says little here" if little else ""
    return (
        f"Median error of w with {ROW_ERROR:.0%} error in the row, {large:,} rows held: "
        f"{_each(large_only, words)}. With {small:,}: {_each(select(at, size=small), words)}. Not "
        f"forgetting the row at all leaves {kept} ({large:,} rows){remark}. Where training rows "
        "are all but constant, as at the margins of images, nothing but ρ holds w, so that noise "
        "there counts most. Estimates are refused where no data with such a row could have the "
        "model's sums; curves end there."
    )
