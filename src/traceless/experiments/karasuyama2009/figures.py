"""Pictures of the findings, from the tables of the measurements."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from traceless.experiments.karasuyama2009 import criteria as test
from traceless.experiments.karasuyama2009.changes import LIBSVMS, METHODS
from traceless.experiments.karasuyama2009.plan import C
from traceless.experiments.pictures import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    legend_below,
    panels,
    plain_log,
)
from traceless.experiments.verdict import Rows, column, select, values

_STYLE = {
    "MID": (BLUE, "o-", 2.0),
    "SID": (ORANGE, "s-", 1.5),
    LIBSVMS[0]: ("#bdbdbd", "^--", 1.2),
    LIBSVMS[1]: ("#8c8c8c", "v--", 1.2),
    LIBSVMS[2]: ("#4d4d4d", "D--", 1.2),
}
_TITLES = {
    "adding": "adding m points",
    "removing": "removing ℓ points",
    "both": "adding m and removing ℓ points, m = ℓ",
}
_ROLES = {
    "goes": (ORANGE, 2.0, "points removed"),
    "comes": (BLUE, 2.0, "points added"),
    "stays": (GREY, 0.7, "points that stay"),
    "lively": (GREEN, 1.5, "the liveliest of these"),
}
_GAMMAS = (BLUE, GREEN, ORANGE, PURPLE)


def _label(name: str) -> str:
    """The name of a method, its tolerance as a power of ten."""
    return name.replace("1e-", "$10^{-") + "}$" if name in LIBSVMS else name


def plane_times(rows: Rows) -> Any:
    """(a) CPU time of all methods by points that change."""
    rows = select(rows, C=C)
    figure, axes = panels(3, height=9.0)
    for axis, scenario in zip(axes, values(rows, "scenario"), strict=True):
        ours = select(rows, scenario=scenario)
        for name in METHODS:
            colour, style, width = _STYLE[name]
            times = test.typical(ours, name)
            milliseconds = [1e3 * t for t in times.values()]
            axis.plot(list(times), milliseconds, style, color=colour, lw=width, ms=4.5,
                      label=_label(name))  # fmt: skip
        axis.set_title(_TITLES[scenario], loc="left", fontsize=11)
        axis.set_ylabel("CPU time, ms")
        plain_log(axis, "y")
        _round_ticks(axis)
    axes[-1].set_xlabel("points that change, m + ℓ")
    legend_below(figure, axes[0], 5)
    return figure


def breakpoints(rows: Rows) -> Any:
    """(b) Breakpoints of MID and SID, and the theory; below, the ratio."""
    rows = select(rows, C=C)
    figure, axes = panels(4, height=8.2, columns=2, sharey=False)
    scenarios = values(rows, "scenario")
    for axis, scenario in zip(axes, scenarios, strict=False):
        ours = select(rows, scenario=scenario)
        for name, column_ in (("SID", "breakpoints_SID"), ("MID", "breakpoints_MID")):
            colour, style, width = _STYLE[name]
            counts = test.counted(ours, column_)
            axis.plot(list(counts), list(counts.values()), style, color=colour, lw=width, ms=4.5,
                      label=f"{name}, counted")  # fmt: skip
        theory = test.counted(ours, "theory")
        axis.plot(list(theory), list(theory.values()), ":", color="black", lw=1.6,
                  label="MID, theory: SID / √(m + ℓ)")  # fmt: skip
        axis.set_title(_TITLES[scenario].replace(" and removing", ",\nremoving"), loc="left",
                       fontsize=10)  # fmt: skip
        axis.set_ylim(0, 1.05 * max(_most(rows), 1))
    _ratios(axes[3], rows)
    for axis in (axes[0], axes[2]):
        axis.set_ylabel("breakpoints, mean")
    for axis in axes[2:]:
        axis.set_xlabel("points that change, m + ℓ")
    legend_below(figure, axes[0], 3)
    return figure


def _most(rows: Rows) -> float:
    each = (select(rows, scenario=s) for s in values(rows, "scenario"))
    return max(max(test.counted(r, "breakpoints_SID").values()) for r in each)


def _ratios(axis: Any, rows: Rows) -> None:
    """MID to SID in all scenarios, against 1/√(m + ℓ)."""
    for (colour, mark), scenario in zip(
        ((BLUE, "o-"), (GREEN, "s-"), (PURPLE, "D-")), values(rows, "scenario"), strict=True
    ):
        ours = select(rows, scenario=scenario)
        mid, sid = (test.counted(ours, f"breakpoints_{name}") for name in ("MID", "SID"))
        ratio = [mid[k] / sid[k] for k in mid]
        axis.plot(list(mid), ratio, mark, color=colour, lw=1.2, ms=4, label=scenario)
    several = sorted(k for k in values(rows, "points") if k > 1)
    axis.plot(several, [k**-0.5 for k in several], ":", color="black", lw=1.6, label="1 / √(m + ℓ)")
    axis.set_title("MID's breakpoints to SID's", loc="left", fontsize=10)
    axis.set_ylim(0, 1)
    axis.legend(frameon=False, fontsize=8.5)


def series_times(rows: Rows) -> Any:
    """(c) CPU time of the monthly update by C, one panel for each γ."""
    gammas = values(rows, "gamma")
    figure, axes = panels(len(gammas), height=1.4 + 1.55 * len(gammas), columns=2)
    for k, (axis, gamma) in enumerate(zip(axes, gammas, strict=True)):
        ours = select(rows, gamma=gamma)
        for name in METHODS:
            colour, style, width = _STYLE[name]
            milliseconds = [1e3 * t for t in column(ours, name)]
            axis.plot(column(ours, "C"), milliseconds, style, color=colour, lw=width, ms=4.5,
                      label=_label(name))  # fmt: skip
        axis.set_title(f"γ = {gamma:g}", loc="left", fontsize=11)
        axis.set_xscale("log")
        plain_log(axis, "y")
        axis.minorticks_off()
        if k % 2 == 0:
            axis.set_ylabel("CPU time, ms")
    for axis in axes[-2:]:
        axis.set_xlabel("C")
    legend_below(figure, axes[0], 5)
    return figure


def cost_and_error(rows: Rows) -> Any:
    """(c) Error of cross-validation by C, and the advantage where the error is small."""
    figure, (errors, scatter) = panels(2, height=7.0, sharex=False, sharey=False)
    good = test.good(rows)
    for colour, gamma in zip(_GAMMAS, values(rows, "gamma"), strict=False):
        ours = select(rows, gamma=gamma)
        label = f"γ = {gamma:g}"
        errors.plot(column(ours, "C"), column(ours, "cv_error"), "o-", color=colour, label=label)
        for r in ours:
            face = colour if r in good else "white"
            advantage = r[LIBSVMS[0]] / r["MID"]
            scatter.plot(r["cv_error"], advantage, "o", color=colour, mfc=face, ms=7)
    errors.set(xscale="log", xlabel="C", ylabel="error of cross-validation")
    errors.minorticks_off()
    _percents(errors, "y")
    best = min(column(rows, "cv_error"))
    scatter.axvspan(best - 0.002, best + test.GOOD, color="#f2f2f2", lw=0)
    scatter.set(xlabel="error of cross-validation", ylabel="times faster than LIBSVM $10^{-3}$")
    filled = "shaded and filled: within one point of the smallest error"
    scatter.set_title(filled, loc="left", fontsize=10)
    _percents(scatter, "x")
    plain_log(scatter, "y")
    _round_ticks(scatter)
    legend_below(figure, errors, 4)
    return figure


def _round_ticks(axis: Any) -> None:
    """1, 2, 5, 10 and so on, where they are in sight."""
    low, high = axis.get_ylim()
    axis.set_yticks([t for t in (1, 2, 5, 10, 20, 50, 100, 200) if low <= t <= high])
    axis.minorticks_off()
    axis.set_ylim(low, high)


def _percents(axis: Any, which: str) -> None:
    from matplotlib.ticker import PercentFormatter

    getattr(axis, f"{which}axis").set_major_formatter(PercentFormatter(1.0, 0))


def coefficients(rows: Rows) -> Any:
    """(d) α of every point that moves, over θ, and the breakpoints."""
    figure, axes = panels(3, height=10.0)
    for axis, scenario in zip(axes, values(rows, "scenario"), strict=True):
        ours = select(rows, scenario=scenario)
        _breakpoints_below(axis, ours)
        for role, thetas, alpha in _curves(ours):
            colour, width, _ = _ROLES[role]
            front, shade = (2, 0.5) if role == "stays" else (3, 0.95)
            axis.plot(thetas, alpha, color=colour, lw=width, alpha=shade, zorder=front)
        axis.set_title(_TITLES[scenario], loc="left", fontsize=11)
        axis.set(ylabel="α", xlim=(0, 1), ylim=(-0.09 * C, 1.03 * C))
        axis.set_yticks([0, C / 2, C], ["0", "C / 2", "C"])
        axis.grid(False)
    axes[-1].set_xlabel("θ")
    for colour, width, label in _ROLES.values():
        axes[0].plot([], [], color=colour, lw=width + 0.4, label=label)
    axes[0].plot([], [], "|", color="black", ms=9, label="breakpoints")
    legend_below(figure, axes[0], 3)
    return figure


def _curves(rows: Rows, lively: int = 3) -> list[tuple[str, list[float], list[float]]]:
    """Role, θ and α of every point; those that stay and go the longest way are told apart."""
    points: dict[int, Rows] = {}
    for row in rows:
        points.setdefault(row["point"], []).append(row)
    curves = [(r[0]["role"], column(r, "theta"), column(r, "alpha")) for r in points.values()]
    ways = [sum(abs(b - a) for a, b in pairwise(c[2])) * (c[0] == "stays") for c in curves]
    longest = sorted(ways)[-lively:]
    return [
        ("lively", *c[1:]) if way > 0 and way in longest else c
        for c, way in zip(curves, ways, strict=True)
    ]


def _breakpoints_below(axis: Any, rows: Rows) -> None:
    """A line for each breakpoint, at the foot of the panel."""
    so_far = {r["theta"]: r["breakpoints"] for r in rows}
    thetas = sorted(so_far)
    bends = [b for a, b in pairwise(thetas) if so_far[b] > so_far[a]]
    axis.vlines(bends, -0.08 * C, -0.03 * C, color="black", lw=0.7)
    count = f"{max(so_far.values())} breakpoints"
    axis.annotate(count, (1, 1.0), (0, 4), xycoords="axes fraction", textcoords="offset points",
                  ha="right", fontsize=9, color="#555555")  # fmt: skip


def exactness(rows: Rows) -> Any:
    """(e) How far results are from the solution, MID and LIBSVM, in every case."""
    figure, (axis,) = panels(height=4.8)
    cases = values(rows, "case")
    marks = [("path_difference", BLUE, "o", "MID"), *(
        (f"difference_{name}", _STYLE[name][0], _STYLE[name][1][0], _label(name))
        for name in LIBSVMS)]  # fmt: skip
    for k, (name, colour, mark, label) in enumerate(marks):
        for place, case in enumerate(cases):
            several = [r[name] for r in select(rows, case=case) if r[name] != ""]
            shift = place + 0.17 * (k - 1.5)
            spots = [shift + 0.1 * ((i * 0.618) % 1 - 0.5) for i in range(len(several))]
            axis.plot(spots, [max(v, 1e-17) for v in several], mark, color=colour, ms=3.5,
                      alpha=0.7, mew=0, label=label if place == 0 else None)  # fmt: skip
    axis.axhline(test.DECISION, color=ORANGE, lw=1.2, ls="--", label="threshold")
    axis.set_yscale("log")
    axis.set_xlim(-0.5, len(cases) - 0.5)
    axis.set_xticks(range(len(cases)), [_split(case) for case in cases])
    axis.set_ylabel("largest difference of decision values\nfrom those of a fresh exact fit")
    axis.grid(False, axis="x")
    legend_below(figure, axis, 5)
    return figure


def _split(case: str) -> str:
    """A long name on two lines."""
    return case.replace(" ", "\n", 1)
