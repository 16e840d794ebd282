"""Pictures of the findings, from the tables of the measurements."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from papers.karasuyama2009.changes import LIBSVMS, METHODS
from papers.karasuyama2009.numbers import LIMITS, counted, good, shares, typical
from papers.karasuyama2009.plane import C
from papers.pictures import (
    BLUE,
    GREEN,
    GREY,
    NOTE,
    ORANGE,
    PURPLE,
    curve,
    dress,
    legend_below,
    panels,
)
from papers.rows import Rows, column, groups, select, values

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


def _plot(
    axis: Any, numbers: dict[Any, float], style: str, scale: float = 1.0, **more: Any
) -> None:
    axis.plot(list(numbers), [scale * v for v in numbers.values()], style, ms=4.5, **more)


def _methods(axis: Any, times: dict[str, dict[Any, float]]) -> None:
    """CPU time of each method in milliseconds."""
    for name, seconds in times.items():
        colour, style, width = _STYLE[name]
        _plot(axis, seconds, style, 1e3, color=colour, lw=width, label=_label(name))


def plane_times(rows: Rows) -> Any:
    """(a) CPU time of all methods by points that change."""
    figure, axes = panels(3, height=9.0)
    scenarios = groups(select(rows, C=C), "scenario").items()
    for axis, (scenario, ours) in zip(axes, scenarios, strict=True):
        _methods(axis, {name: typical(ours, name) for name in METHODS})
        dress(axis, _TITLES[scenario], y="CPU time, ms", log="y")
        _round_ticks(axis)
    axes[-1].set_xlabel("points that change, m + ℓ")
    legend_below(figure, axes[0], 5)
    return figure


def breakpoints(rows: Rows) -> Any:
    """(b) Breakpoints of MID and SID, and the theory; below, the ratio."""
    figure, (*axes, last) = panels(4, height=8.2, columns=2, sharey=False)
    scenarios = groups(select(rows, C=C), "scenario")
    most = max(max(counted(r, "breakpoints_SID").values()) for r in scenarios.values())
    marks = ((BLUE, "o-"), (GREEN, "s-"), (PURPLE, "D-"))
    for axis, (scenario, ours), (other, mark) in zip(axes, scenarios.items(), marks, strict=True):
        for name in ("SID", "MID"):
            colour, style, width = _STYLE[name]
            counts = counted(ours, f"breakpoints_{name}")
            _plot(axis, counts, style, color=colour, lw=width, label=f"{name}, counted")
        label = "MID, theory: SID / √(m + ℓ)"
        _plot(axis, counted(ours, "theory"), ":", color="black", lw=1.6, label=label)
        dress(axis, _TITLES[scenario].replace(" and removing", ",\nremoving"), size=10)
        axis.set_ylim(0, 1.05 * max(most, 1))
        _plot(last, shares(ours), mark, color=other, lw=1.2, label=scenario)
    theory = {k: k**-0.5 for k in shares(ours)}
    _plot(last, theory, ":", color="black", lw=1.6, label="1 / √(m + ℓ)")
    dress(last, "MID's breakpoints to SID's", size=10)
    last.set_ylim(0, 1)
    last.legend(frameon=False, fontsize=8.5)
    for axis in (axes[0], axes[2]):
        axis.set_ylabel("breakpoints, mean")
    for axis in (axes[2], last):
        axis.set_xlabel("points that change, m + ℓ")
    legend_below(figure, axes[0], 3)
    return figure


def series_times(rows: Rows) -> Any:
    """(c) CPU time of the monthly update by C, one panel for each γ."""
    gammas = groups(rows, "gamma")
    figure, axes = panels(len(gammas), height=1.4 + 1.55 * len(gammas), columns=2)
    for axis, (gamma, ours) in zip(axes, gammas.items(), strict=True):
        _methods(axis, {name: {r["C"]: r[name] for r in ours} for name in METHODS})
        dress(axis, f"γ = {gamma:g}", log="y")
        axis.set_xscale("log")
        axis.minorticks_off()
    for axis in axes[::2]:
        axis.set_ylabel("CPU time, ms")
    for axis in axes[-2:]:
        axis.set_xlabel("C")
    legend_below(figure, axes[0], 5)
    return figure


def cost_and_error(rows: Rows) -> Any:
    """(c) Error of cross-validation by C, and the advantage where the error is small."""
    figure, (errors, scatter) = panels(2, height=7.0, sharex=False, sharey=False)
    ratios = [r | {"advantage": r[LIBSVMS[0]] / r["MID"]} for r in rows]
    near = good(ratios)
    for colour, (gamma, ours) in zip(_GAMMAS, groups(ratios, "gamma").items(), strict=False):
        curve(errors, ours, "C", "cv_error", "o-", colour, label=f"γ = {gamma:g}")
        for r in ours:
            face = colour if r in near else "white"
            curve(scatter, [r], "cv_error", "advantage", "o", colour, mfc=face, ms=7)
    dress(errors, "", "C", "error of cross-validation", percent="y")
    errors.set_xscale("log")
    errors.minorticks_off()
    best = min(column(rows, "cv_error"))
    scatter.axvspan(best - 0.002, best + LIMITS.good, color="#f2f2f2", lw=0)
    heading = "shaded and filled: within one point of the smallest error"
    names = "error of cross-validation", "times faster than LIBSVM $10^{-3}$"
    dress(scatter, heading, *names, percent="x", log="y", size=10)
    _round_ticks(scatter)
    legend_below(figure, errors, 4)
    return figure


def _round_ticks(axis: Any) -> None:
    """1, 2, 5, 10 and so on, where they are in sight."""
    low, high = axis.get_ylim()
    axis.set_yticks([t for t in (1, 2, 5, 10, 20, 50, 100, 200) if low <= t <= high])
    axis.minorticks_off()
    axis.set_ylim(low, high)


def coefficients(rows: Rows) -> Any:
    """(d) α of every point that moves, over θ, and the breakpoints."""
    figure, axes = panels(3, height=10.0)
    for axis, (scenario, ours) in zip(axes, groups(rows, "scenario").items(), strict=True):
        _breakpoints_below(axis, ours)
        for role, thetas, alpha in _curves(ours):
            colour, width, _ = _ROLES[role]
            front, shade = (2, 0.5) if role == "stays" else (3, 0.95)
            axis.plot(thetas, alpha, color=colour, lw=width, alpha=shade, zorder=front)
        dress(axis, _TITLES[scenario], y="α")
        axis.set(xlim=(0, 1), ylim=(-0.09 * C, 1.03 * C))
        axis.set_yticks([0, C / 2, C], ["0", "C / 2", "C"])
        axis.grid(False)
    axes[-1].set_xlabel("θ")
    for colour, width, label in _ROLES.values():
        axes[0].plot([], [], color=colour, lw=width + 0.4, label=label)
    axes[0].plot([], [], "|", color="black", ms=9, label="breakpoints")
    legend_below(figure, axes[0], 3)
    return figure


def _curves(rows: Rows) -> list[tuple[str, list[float], list[float]]]:
    """Role, θ and α of every point; those that stay and go the longest way are told apart."""
    curves = [
        (r[0]["role"], column(r, "theta"), column(r, "alpha"))
        for r in groups(rows, "point").values()
    ]
    ways = [sum(abs(b - a) for a, b in pairwise(c[2])) * (c[0] == "stays") for c in curves]
    longest = sorted(ways)[-3:]
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
    place = {"xycoords": "axes fraction", "ha": "right", "color": "#555555"}
    axis.annotate(count, (1, 1.0), (0, 4), **place, **NOTE)


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
    axis.axhline(LIMITS.decision, color=ORANGE, lw=1.2, ls="--", label="threshold")
    axis.set_yscale("log")
    axis.set_xlim(-0.5, len(cases) - 0.5)
    axis.set_xticks(range(len(cases)), [case.replace(" ", "\n", 1) for case in cases])
    axis.set_ylabel("largest difference of decision values\nfrom those of a fresh exact fit")
    axis.grid(False, axis="x")
    legend_below(figure, axis, 5)
    return figure
