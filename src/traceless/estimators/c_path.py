"""The solution of a `PathSVC` for every C between two: straight lines between breakpoints."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from traceless.arithmetic.integers import Floats, Integers
from traceless.parameters import positive

if TYPE_CHECKING:
    from traceless.estimators.path_machine import PathMachine
    from traceless.estimators.path_svc import PathSVC

_LEG = 4.0  # C grows by no more than this on a walk: at its end the solution is refined
_CLOSEST = 1.0 + 1e-6  # of two C with a tie between them


@dataclass(frozen=True, eq=False)
class CPath:
    """The solution for every C between two. Made by `PathSVC.c_path`.

    Between two breakpoints dual coefficients are straight lines. `PathDisplay.from_c_path` draws
    them.

    Attributes
    ----------
    C : ndarray of shape (n_points,)
        The two ends, the breakpoints between them, and the few C at which the solution was
        refined on the way, in ascending order.
    alpha : ndarray of shape (n_points, n_rows)
        Dual coefficients of the rows of a binary problem at each of them.
    ids : ndarray of shape (n_rows,)
        Ids of these rows.
    classes : tuple
        The two classes of the problem; None in place of the first stands for all others.
    """

    C: Floats
    alpha: Floats
    ids: Integers
    classes: tuple[Any, Any]
    _svc: PathSVC = field(repr=False)

    def alpha_at(self, C: float) -> Floats:
        """Dual coefficients of the rows of the problem at any C of the path.

        Parameters
        ----------
        C : float

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        C = self._within(C)
        k = min(max(int(np.searchsorted(self.C, C)), 1), len(self.C) - 1)
        part = (C - self.C[k - 1]) / (self.C[k] - self.C[k - 1])
        return np.asarray((1.0 - part) * self.alpha[k - 1] + part * self.alpha[k])

    def at(self, C: float) -> PathSVC:
        """The model at any C of the path: of all classes, and to the bit as if fitted with it.

        Parameters
        ----------
        C : float

        Returns
        -------
        PathSVC
        """
        C = self._within(C)
        other: PathSVC = copy.copy(self._svc).set_params(C=C)
        none = np.zeros(0, dtype=np.int64)
        other._model = self._svc._model.updated(None, none, other._settings())
        return other

    def decision_function(self, X: Any, C: float) -> Floats:
        """Decision values of rows by the model at any C of the path.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        C : float

        Returns
        -------
        ndarray
            As of `PathSVC.decision_function`.
        """
        return self.at(C).decision_function(X)

    def _within(self, C: float) -> float:
        low, high = self.C[0], self.C[-1]
        if not low <= positive("C", C) <= high:
            raise ValueError(
                f"C must be between {low:g} and {high:g}, the ends of this path, got {C!r}."
            )
        return float(C)


def c_path(svc: PathSVC, low: float, high: float, classes: tuple[Any, Any] | None) -> CPath:
    """The path from one C to another."""
    if not positive("low", low) < positive("high", high):
        raise ValueError(f"low must be below high, got {low!r} and {high!r}.")
    other = copy.deepcopy(svc).set_params(C=float(low)).refresh()
    n_legs = int(np.ceil(np.log(high / low) / np.log(_LEG)))
    ends = np.geomspace(low, high, n_legs + 1)
    ends[[0, -1]] = low, high
    legs = list[Walk]()
    for start, end in pairwise(ends.tolist()):
        legs += _walks(other, classes or (legs[0].classes if legs else None), start, end)
    first, parts = legs[0], [(leg.theta[1:], leg.alpha[1:]) for leg in legs]
    C, alpha = map(np.concatenate, zip((first.theta[:1], first.alpha[:1]), *parts, strict=True))
    apart = np.append(np.diff(C) > 1e-12 * C[1:], True)  # ties are one breakpoint
    apart[0] = True
    return CPath(C[apart], alpha[apart], first.ids, first.classes, other)


def _walks(svc: PathSVC, classes: Any, low: float, high: float) -> list[Walk]:
    """Walks from one C to another, with C in place of θ; a walk that was interrupted is cut in two.

    At ties that only random shifts get over, nothing is known but the solutions on both sides.
    """
    before = copy.copy(svc)
    walk = walked(svc, classes, lambda one: one.set_params(C=high).refresh())
    if walk.restarted and high > low * _CLOSEST:
        middle = float(np.sqrt(low * high))
        first = _walks(before, walk.classes, low, middle)
        return first + _walks(before, walk.classes, middle, high)
    if walk.restarted:
        after = svc._model.problems[walk.classes].alpha
        return [walk._replace(theta=np.array([low, high]), alpha=np.array([walk.start, after]))]
    return [walk._replace(theta=(1.0 - walk.theta) * low + walk.theta * high)]


class Walk(NamedTuple):
    """What happened to a binary problem on the path of a change.

    Attributes
    ----------
    classes : its two classes
    theta : from 0, before the change, to 1, after it: the ends, and the breakpoints
    alpha : dual coefficients at these, of the points before the change and then of new ones
    ids : of the points before
    ids_after : of the points after
    start : dual coefficients before the change
    restarted : whether the path was interrupted; then θ counts from the last restart
    """

    classes: tuple[Any, Any]
    theta: Floats
    alpha: Floats
    ids: Integers
    ids_after: Integers
    start: Floats
    restarted: bool


def walked(
    machine: PathMachine, classes: tuple[Any, Any] | None, change: Callable[[Any], Any]
) -> Walk:
    """Change an estimator, and record the path of the first binary problem that this touches.

    Parameters
    ----------
    machine : PathSVC, PathSVR or PathOneClass
        Refreshed, and of nobody else.
    classes : the two classes of the problem to look at, or None
    change : function of the machine, which it changes
    """
    problems = dict(machine._model.problems)
    asked = list(problems) if classes is None else [tuple(classes)]
    if not problems or asked[0] not in problems:
        raise ValueError(
            f"There is no binary problem of {classes!r}: a path needs two classes that are "
            f"there before the change. There is {', '.join(map(str, problems)) or 'none'}."
        )
    before = {pair: problems[pair].ids for pair in asked}
    recorded: dict[Any, list[tuple[float, Floats]]] = {pair: [] for pair in asked}
    for pair, points in recorded.items():
        problems[pair].watch = lambda *point, points=points: points.append(point)
    try:
        change(machine)
    finally:
        for pair in asked:
            problems[pair].watch = None
    touched = [pair for pair in asked if recorded[pair]]
    if not touched:
        raise ValueError(
            "The change follows no path: it does not touch the binary problem of "
            f"{' or '.join(map(str, asked))}, or ends with one class."
        )
    pair = touched[0]
    theta, alpha = _path(recorded[pair])
    was, after = problems[pair], machine._model.problems[pair]
    restarted = (was.n_restarts, was.n_repairs) != (after.n_restarts, after.n_repairs)
    start = recorded[pair][0][1] * after.scale
    return Walk(pair, theta, alpha * after.scale, before[pair], after.ids, start, restarted)


def _path(recorded: list[tuple[float, Floats]]) -> tuple[Floats, Floats]:
    """θ and coefficients from the last start on, each θ once."""
    theta = np.array([theta for theta, _ in recorded])
    starts = np.flatnonzero(np.diff(theta, prepend=np.inf) < 0.0)
    start = int(starts[-1]) if starts.size else 0
    last = np.append(np.diff(theta[start:]) > 0.0, True)
    alpha = np.array([alpha for _, alpha in recorded[start:]])
    return theta[start:][last], alpha[last]
