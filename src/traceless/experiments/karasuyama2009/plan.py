"""How much of each experiment is computed."""

from __future__ import annotations

from dataclasses import dataclass

N = 500  # points in the plane, as in the paper
GAMMA, C = 1.0, 10.0  # of the points in the plane; those of the paper are not in our copy
MONTH = 30  # days added and removed at once, as in the paper


@dataclass(frozen=True)
class Plan:
    """How much is computed.

    Parameters
    ----------
    points : tuple of int
        Added and removed together, in (a) and (b); 1 first, then even numbers.
    trials : int
        Data sets in the plane.
    other_strengths : tuple of float
        C beside the first one, tried with fewer points and trials.
    other_points : tuple of int
    other_trials : int
    gammas, Cs : tuple of float
        Of the time series.
    repeats : int
        How often each time of the series is measured; once if it is long.
    folds : int
        Of the cross-validation.
    months : int
        Updates one after the other, in (e).
    widths : tuple of float
        γ at which breakpoints are counted beside the first one, in (b).
    path_points : int
        Added and removed in the pictures of paths.
    path_trials : int
        Paths whose breakpoints are looked at.
    steps : int
        In which a path is taken.
    """

    points: tuple[int, ...]
    trials: int
    other_strengths: tuple[float, ...]
    other_points: tuple[int, ...]
    other_trials: int
    gammas: tuple[float, ...]
    Cs: tuple[float, ...]
    repeats: int
    folds: int
    months: int
    widths: tuple[float, ...]
    path_points: int
    path_trials: int
    steps: int


FULL = Plan(
    points=(1, 2, 6, 10, 20, 30, 40, 50),
    trials=10,
    other_strengths=(1.0, 100.0),
    other_points=(1, 10, 50),
    other_trials=5,
    gammas=(0.001, 0.01, 0.1, 1.0),
    Cs=(0.1, 1.0, 10.0, 100.0, 1000.0, 10000.0),
    repeats=3,
    folds=10,
    months=13,
    widths=(0.02, 0.1, 0.3, 1.0, 3.0, 10.0),
    path_points=10,
    path_trials=8,
    steps=800,
)
QUICK = Plan(
    points=(1, 2, 10, 50),
    trials=2,
    other_strengths=(100.0,),
    other_points=(50,),
    other_trials=1,
    gammas=(0.01, 0.1),
    Cs=(0.1, 100.0),
    repeats=1,
    folds=2,
    months=1,
    widths=(0.1,),
    path_points=10,
    path_trials=2,
    steps=200,
)
