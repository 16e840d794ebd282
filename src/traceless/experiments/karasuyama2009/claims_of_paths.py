"""What Karasuyama & Takeuchi 2009 say of the path itself and of its end: (d) and (e)."""

from __future__ import annotations

from collections.abc import Mapping

from traceless.experiments.karasuyama2009 import criteria as test
from traceless.experiments.karasuyama2009 import figures
from traceless.experiments.karasuyama2009.artificial import LATTICE
from traceless.experiments.karasuyama2009.changes import LIBSVMS
from traceless.experiments.karasuyama2009.plan import Plan
from traceless.experiments.verdict import Criterion, Finding, Row, Rows, Table, by, column, select


def path(found: Rows, drawn: Rows, plan: Plan) -> Finding:
    """(d) One path, and whether its breakpoints are spread evenly."""
    aside = sum({(r["scenario"], r["trial"]): r["aside"] for r in found}.values())
    several = len({(r["scenario"], r["trial"]) for r in found})
    return Finding(
        name="d",
        title="(d) A path: coefficients over θ, and its breakpoints (section 3.4)",
        claim="Section 3.4 assumes that “the breakpoints are uniformly distributed on the path”.",
        gist="breakpoints are spread evenly over the path",
        design=f"{plan.path_points} points change, as in (a). So that a path need not be believed, "
        f"it is taken in {plan.steps:,} small steps, each an exact update to the bounds of the "
        "next θ. These lie on the one long path while every point that comes or goes is at its "
        f"bound. {several} paths, whose breakpoints are pooled, one of each kind is drawn; "
        f"{aside} others were set aside because a point left its bound on the way.",
        found="A coefficient is a polygon over θ: it bends where a point enters or leaves the "
        "margin. What is added rises straight to C and what is removed falls straight to 0; the "
        f"margin pays for it. {len(found):,} breakpoints were counted.",
        criteria=[
            Criterion(
                f"Each fifth of the paths has {test.FIFTH - test.UNEVEN:.0%} to "
                f"{test.FIFTH + test.UNEVEN:.0%} of the breakpoints",
                by("scenario", found, test.evenly_spread),
            ),
            Criterion(
                "A path in small steps has as many breakpoints as the same path at once",
                by("scenario", found, test.steps_meet_the_same),
                essential=False,
            ),
        ],
        rows=drawn,
        draw=figures.coefficients,
    )


def exactness(several: Mapping[str, Rows]) -> Finding:
    """(e) What every path ended in."""
    rows = [_result(case, r) for case, some in several.items() for r in some]
    sid = [r["SID_same_bits"] for some in several.values() for r in some if "SID_same_bits" in r]
    return Finding(
        name="e",
        title="(e) Exactness of every result above",
        claim="Section 3.2: at the end of the path “all the new data points … and existing points "
        "… satisfy the optimality conditions”. But: “If the kernel matrix happens to be singular, "
        "which typically arise when there are two or more identical data points in M, our "
        "algorithm may not work”; the paper adds a small constant to its diagonal.",
        gist="a path ends at the exact solution",
        design="Every result of MID above; a model that moved on month by month; and random "
        f"changes of points rounded to multiples of {LATTICE:g}, where many are identical. "
        "Nothing is added to the kernel matrix. KKT residuals are computed from scratch and may "
        "be max(1e-9, 10 ε Σα), what rounding allows. Decision values, once as the path left "
        "them and once in canonical form, and the bits of the canonical form (support vectors, "
        "coefficients, intercept) are compared with a fresh fit to the same rows in another order.",
        found=f"{len(rows)} results: KKT residuals up to {max(column(rows, 'residual')):.0e}, "
        f"decision values up to {max(column(rows, 'path_difference')):.0e} from a fresh fit, "
        f"{sum(column(rows, 'same_bits'))} the same bits. SID ended in the bits of MID "
        f"{sum(sid)} times of {len(sid)}. LIBSVM asked for 1e-9 is off by up to "
        f"{_worst(rows, LIBSVMS[2]):.0e}: it keeps kernel values in single precision. "
        f"{sum(column(rows, 'restarts'))} paths had to be restarted.",
        criteria=[
            Criterion(
                "The KKT residual is at most max(1e-9, 10 ε Σα)", by("case", rows, test.optimal)
            ),
            Criterion(
                f"Decision values are within {test.DECISION:g} of a fresh fit",
                by("case", rows, test.same_decisions),
            ),
            Criterion(
                "The canonical form has the bits of a fresh fit to shuffled rows, unless it says "
                "itself that its sides are in doubt",
                by("case", rows, test.same_bits_where_certain),
            ),
        ],
        rows=rows,
        draw=figures.exactness,
        tables=[_table(several, rows)],
    )


_NAMES = ("residual", "promise", "path_difference", "difference", "certain", "same_bits",
          "restarts")  # fmt: skip


def _result(case: str, row: Row) -> Row:
    libsvm = {f"difference_{m}": row.get(f"difference_{m}", "") for m in LIBSVMS}
    return {"case": case} | {name: row[name] for name in _NAMES} | libsvm


def _worst(rows: Rows, name: str) -> float:
    return max(float(r[f"difference_{name}"]) for r in rows if r[f"difference_{name}"] != "")


def _table(several: Mapping[str, Rows], rows: Rows) -> Table:
    lines = []
    for case in several:
        ours = select(rows, case=case)
        there = ours[0][f"difference_{LIBSVMS[0]}"] != ""
        lines.append(
            [
                case,
                str(len(ours)),
                f"{max(column(ours, 'residual')):.0e}",
                f"{max(column(ours, 'path_difference')):.0e}",
                f"{sum(column(ours, 'same_bits'))}",
                f"{len(ours) - sum(column(ours, 'certain'))}",
                *(f"{_worst(ours, m):.0e}" if there else "" for m in LIBSVMS),
            ]
        )
    off = [f"{m} off by" for m in LIBSVMS]
    head = ["Case", "Results", "KKT residual", "MID off by", "Same bits", "In doubt", *off]
    return Table("The worst of each case; differences of decision values", head, lines)
