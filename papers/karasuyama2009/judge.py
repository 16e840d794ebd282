"""The criteria that judge the claims of Karasuyama & Takeuchi 2009.

Each public function takes tables of measurements and returns a `Finding`. The paper's words are
in `paper.toml`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from papers.claims import Case, Finding, at_least, at_most, by, every
from papers.karasuyama2009 import draw
from papers.karasuyama2009.changes import LIBSVMS, METHODS
from papers.karasuyama2009.numbers import LIMITS, PAPER, advantages, counted, good, shares, typical
from papers.karasuyama2009.plane import CROSSES, GAMMA, LATTICE, C, N
from papers.karasuyama2009.series import MONTH
from papers.page import Table
from papers.report import Plan
from papers.rows import Rows, column, groups, select, values

_by_scenario = partial(by, "scenario")


# --- (a) -----------------------------------------------------------------------------------------


def _ends(numbers: Sequence[float]) -> tuple[float, float]:
    return min(numbers), max(numbers)


def _last(numbers: Mapping[int, float]) -> float:
    """The number at the most points."""
    return list(numbers.values())[-1]


def plane_times(rows: Rows) -> Finding:
    """(a) CPU time in the plane."""
    main = select(rows, C=C)
    most = max(values(main, "points"))
    single = [r for r in select(main, points=1) if r["scenario"] != "both"]
    cases = [
        _by_scenario(main, lambda r: at_least(_last(advantages(r)), LIMITS.faster, "{:.1f} ×")),
        _by_scenario(single, _one_point_is_the_same),
        _by_scenario(main, _advantage_grows),
        _by_scenario(main, _libsvm_is_steady),
        _by_scenario(main, _always_faster_than_libsvm),
    ]
    tables = {"Median CPU time in milliseconds": _times_table(rows)}
    said = {"N": N, "gamma": GAMMA, "C": C, "trials": len(values(main, "trial")), "most": most}
    said |= _in_numbers(main, most)
    return PAPER.finding("a", rows, draw.plane_times, cases, tables, **said)


def _one_point_is_the_same(rows: Rows) -> Case:
    same = [r["breakpoints_MID"] == r["breakpoints_SID"] and r["SID_same_bits"] for r in rows]
    return every(same)


def _advantage_grows(rows: Rows) -> Case:
    ratios = advantages(rows)
    first, *_, last = ratios.values()
    rank = float(spearmanr(list(ratios), list(ratios.values())).statistic)
    words = f"{first:.1f} × to {last:.1f} ×, rank correlation {rank:.2f}"
    return at_least(rank, LIMITS.grows, words)


def _libsvm_is_steady(rows: Rows) -> Case:
    each = [typical(rows, name).values() for name in LIBSVMS]
    ratios = [max(t) / min(t) for t in each]
    return at_most(max(ratios), LIMITS.steady, ", ".join(f"{r:.2f}" for r in ratios))


def _always_faster_than_libsvm(rows: Rows) -> Case:
    ratios = [r for name in LIBSVMS for r in advantages(rows, name).values()]
    return at_least(min(ratios), 1.0, f"{min(ratios):.1f} to {max(ratios):.1f} ×")


_COMPARED = {"sid": "SID", "loose": LIBSVMS[0], "tight": LIBSVMS[2]}


def _in_numbers(rows: Rows, most: int) -> dict[str, Any]:
    """How much faster MID is, and how much of that is breakpoints."""
    both = select(rows, scenario="both")
    per_breakpoint, call = np.polyfit(column(rows, "breakpoints_MID"), column(rows, "MID"), 1)
    each = groups(rows, "scenario").values()
    ratios = {key: [_last(advantages(r, m)) for r in each] for key, m in _COMPARED.items()}
    return {
        **{key: _ends(several) for key, several in ratios.items()},
        "mid": 1e3 * typical(both, "MID")[most],
        "passed": 1 / _last(shares(both)),
        "longer": _last(advantages(both)),
        "call": 1e3 * call,
        "each": 1e6 * per_breakpoint,
    }


def _times_table(rows: Rows) -> Table:
    lines = []
    for strength in sorted(values(rows, "C")):
        for scenario, ours in groups(select(rows, C=strength), "scenario").items():
            some = sorted(values(ours, "points"))
            middle = 10 if 10 in some else some[len(some) // 2]
            for k in dict.fromkeys((some[0], middle, some[-1])):
                times = [f"{1e3 * typical(ours, m)[k]:.2f}" for m in METHODS]
                lines.append([f"{strength:g}", scenario, str(k), *times])
    return Table(["C", "Scenario", "Points", *METHODS], lines)


# --- (b) -----------------------------------------------------------------------------------------


def _off_theory(rows: Rows) -> dict[int, float]:
    """How far above SID / √(m + ℓ) MID's breakpoints are, by points."""
    return {k: share * k**0.5 - 1.0 for k, share in shares(rows).items()}


def _exponent(rows: Rows) -> float:
    """The p of ratio ~ points^p."""
    ratios = shares(rows)
    return float(np.polyfit(np.log(list(ratios)), np.log(list(ratios.values())), 1)[0])


def signed(share: float) -> str:
    """Percent with a sign, and with a minus as people write it.

    Examples
    --------
    >>> signed(0.254), signed(-0.1), signed(-0.001)
    ('+25%', '−10%', '0%')
    """
    whole = round(100 * share)
    return f"{whole:+d}%".replace("-", "−") if whole else "0%"


def breakpoints(rows: Rows, widths: Rows) -> Finding:
    """(b) Breakpoints in the plane, and what becomes of them with kernels of other widths."""
    main = select(rows, C=C)
    each = groups(main, "scenario")
    falls = ", ".join(f"{_exponent(r):.2f} ({s})".replace("-", "−") for s, r in each.items())
    off = [v for r in each.values() for v in _off_theory(r).values()]
    names = ("scenario", "C", "points", "trial", "breakpoints_MID", "breakpoints_SID", "theory")
    kept = [{name: r[name] for name in names} for r in rows]
    tests = (_fewer_breakpoints, _close_to_theory, _falls_as_the_root)
    cases = [_by_scenario(main, test) for test in tests]
    other = f"Kernels of other widths, C = {C:g}, and points of one class only"
    tables = {
        "Breakpoints, means over trials": _breakpoints_table(rows, "C", "C"),
        other: _breakpoints_table(widths, "gamma", "γ"),
    }
    said = {"falls": falls, "low": signed(min(off)), "high": signed(max(off))}
    said |= _other_widths(widths)
    return PAPER.finding("b", kept, draw.breakpoints, cases, tables, **said)


def _fewer_breakpoints(rows: Rows) -> Case:
    ratios = list(shares(rows).values())
    return Case(f"{ratios[0]:.2f} to {ratios[-1]:.2f} of SID's", max(ratios) < 1.0)


def _close_to_theory(rows: Rows) -> Case:
    off = list(_off_theory(rows).values())
    words = f"{signed(min(off))} to {signed(max(off))}"
    return at_most(max(map(abs, off)), LIMITS.close, words)


def _falls_as_the_root(rows: Rows) -> Case:
    p = _exponent(rows)
    return at_most(abs(p - LIMITS.half), LIMITS.near, f"{p:.2f}".replace("-", "−"))


def _other_widths(widths: Rows) -> dict[str, str]:
    """How far from the theory other kernels and points of one class are."""
    off: dict[str, list[float]] = {}
    kinds = [r | {"kind": (r["gamma"], r["scenario"])} for r in widths]
    for (gamma, scenario), some in groups(kinds, "kind").items():
        key = CROSSES if scenario == CROSSES else f"γ = {gamma:g}"
        off.setdefault(key, []).append(_last(_off_theory(some)))
    (crosses,) = off.pop(CROSSES)
    spans = (f"{signed(min(v))} to {signed(max(v))} at {kernel}" for kernel, v in off.items())
    return {"spans": ", ".join(spans), "crosses": signed(crosses)}


def _breakpoints_table(rows: Rows, key: str, symbol: str) -> Table:
    lines = []
    for value in sorted(values(rows, key)):
        for scenario, ours in groups(select(rows, **{key: value}), "scenario").items():
            sid, mid = (counted(ours, f"breakpoints_{how}") for how in ("SID", "MID"))
            for k, off in _off_theory(ours).items():
                counts = [str(k), f"{sid[k]:.0f}", f"{mid[k]:.0f}"]
                ratios = [f"{mid[k] / sid[k]:.3f}", f"{k**-0.5:.3f}", signed(off)]
                lines.append([f"{value:g}", scenario, *counts, *ratios])
    return Table([symbol, "Scenario", "Points", "SID", "MID", "Ratio", "Theory", "Off by"], lines)


# --- (c) -----------------------------------------------------------------------------------------


def series_times(rows: Rows, name: str) -> Finding:
    """(c) The monthly update of a time series."""
    named = [r | {"case": f"γ = {r['gamma']:g}"} for r in rows]

    def more_at_large_c(libsvm: str) -> dict[str, Case]:
        def test(r: Rows) -> Case:
            first, last = (r[k][libsvm] / r[k]["MID"] for k in (0, -1))
            return Case(f"{first:.0f} × to {last:.0f} ×", last > first)

        return by("case", named, test)

    def slows_down(r: Rows) -> Case:
        return at_least(r[-1][LIBSVMS[0]] / r[0][LIBSVMS[0]], LIMITS.rises, "{:.1f} ×")

    return PAPER.finding(
        "c1",
        rows,
        draw.series_times,
        [
            by("case", named, _faster_than_the_others),
            more_at_large_c(LIBSVMS[0]),
            more_at_large_c(LIBSVMS[2]),
            by("case", named, slows_down),
        ],
        {"The update: points, breakpoints and CPU time in milliseconds": _series_table(rows)},
        name=name,
        data=PAPER.say(PAPER.texts["data"][name]),
        month=MONTH,
        **{key: _ends([r[m] / r["MID"] for r in rows]) for key, m in _COMPARED.items()},
    )


def _faster_than_the_others(rows: Rows) -> Case:
    ratios = [r[name] / r["MID"] for r in rows for name in METHODS[1:]]
    return Case(f"{min(ratios):.1f} to {max(ratios):.0f} ×", min(ratios) > 1.0)


def _series_table(rows: Rows) -> Table:
    head = ["γ", "C", "On the margin", "α = C", "Breakpoints MID", "SID", *METHODS]
    line = "{gamma:g}|{C:g}|{margin}|{bounded}|{breakpoints_MID}|{breakpoints_SID}"
    times = [[f"{1e3 * r[m]:.3g}" for m in METHODS] for r in rows]
    return Table(head, [line.format(**r).split("|") + t for r, t in zip(rows, times, strict=True)])


def cost_and_error(rows: Rows, name: str) -> Finding:
    """(c) Cost where generalisation is good."""

    def cheap_where_good(libsvm: str) -> Case:
        there, all_ = (median(r[libsvm] / r["MID"] for r in some) for some in (good(rows), rows))
        return Case(f"{there:.1f} × against {all_:.1f} ×", there > all_)

    cases = [{libsvm: cheap_where_good(libsvm) for libsvm in LIBSVMS}]
    said = {"name": name, "settings": len(rows), "found_good": len(good(rows))}
    said |= {"points": 100 * LIMITS.good, "best": min(rows, key=lambda r: float(r["cv_error"]))}
    said |= {"remark": PAPER.say(PAPER.texts["remarks"].get(name, ""))}
    return PAPER.finding("c2", rows, draw.cost_and_error, cases, **said)


# --- (d) and (e) ---------------------------------------------------------------------------------


def path(found: Rows, drawn: Rows, plan: Plan) -> Finding:
    """(d) One path, and whether its breakpoints are spread evenly."""
    aside = {(r["scenario"], r["trial"]): r["aside"] for r in found}
    cases = [_by_scenario(found, test) for test in (_evenly_spread, _steps_meet_the_same)]
    said = {"points": plan.path_points, "steps": plan.steps, "paths": len(aside)}
    said |= {"aside": sum(aside.values()), "counted": len(found)}
    return PAPER.finding("d", drawn, draw.coefficients, cases, **said)


def _evenly_spread(rows: Rows) -> Case:
    parts = np.histogram(column(rows, "theta"), 5, (0.0, 1.0))[0] / len(rows)
    least, most = LIMITS.fifth
    held = bool(((parts >= least) & (parts <= most)).all())
    return Case(", ".join(f"{s:.0%}" for s in parts), held)


def _steps_meet_the_same(rows: Rows) -> Case:
    pairs = {r["trial"]: r["in_steps"] == r["at_once"] for r in rows}
    return every(list(pairs.values()), " paths")


_RESULT = ("residual", "promise", "path_difference", "difference", "certain", "same_bits",
           "restarts")  # fmt: skip


def exactness(several: Mapping[str, Rows]) -> Finding:
    """(e) What every path ended in."""
    off = [f"difference_{name}" for name in LIBSVMS]
    rows = [
        {"case": case} | {n: r[n] for n in _RESULT} | {n: r.get(n, "") for n in off}
        for case, some in several.items()
        for r in some
    ]
    sid = [r["SID_same_bits"] for some in several.values() for r in some if "SID_same_bits" in r]
    return PAPER.finding(
        "e",
        rows,
        draw.exactness,
        [by("case", rows, test) for test in (_optimal, _same_decisions, _same_bits_where_certain)],
        {"The worst of each case; differences of decision values": _exactness_table(rows, off)},
        lattice=LATTICE,
        results=len(rows),
        tightest=max(r[off[2]] for r in rows if r[off[2]] != ""),
        sid=(sum(sid), len(sid)),
        **{name: max(column(rows, name)) for name in ("residual", "path_difference")},
        **{name: sum(column(rows, name)) for name in ("same_bits", "restarts")},
    )


def _optimal(rows: Rows) -> Case:
    kept = [r["residual"] <= r["promise"] for r in rows]
    worst = max(column(rows, "residual"))
    return Case(f"{worst:.0e} at most, {sum(kept)} of {len(kept)}", all(kept))


def _same_decisions(rows: Rows) -> Case:
    worst = max(max(r["path_difference"], r["difference"]) for r in rows)
    return at_most(worst, LIMITS.decision, "{:.0e} at most")


def _same_bits_where_certain(rows: Rows) -> Case:
    certain = select(rows, certain=True)
    return every(column(certain, "same_bits"), f"; {len(rows) - len(certain)} in doubt")


def _exactness_table(rows: Rows, off: list[str]) -> Table:
    lines = []
    for case, ours in groups(rows, "case").items():
        worst = [max(column(ours, name)) for name in ("residual", "path_difference", *off)]
        errors = [f"{w:.0e}" if w != "" else "" for w in worst]
        doubt = len(ours) - sum(column(ours, "certain"))
        counts = [str(sum(column(ours, "same_bits"))), str(doubt)]
        lines.append([case, str(len(ours)), *errors[:2], *counts, *errors[2:]])
    head = ["Case", "Results", "KKT residual", "MID off by", "Same bits", "In doubt"]
    return Table([*head, *(f"{name} off by" for name in LIBSVMS)], lines)
