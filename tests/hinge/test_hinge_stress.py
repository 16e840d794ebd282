"""Histories of the stress command, and that it notices what it should."""

from uuid import uuid4

import numpy as np
import pytest

import stress
from traceless import PathOneClass, PathSVC, PathSVR


@pytest.mark.parametrize("family", stress.ALL)
@pytest.mark.parametrize("machine", stress.MACHINES)
def test_histories(machine, family):
    assert stress.run(f"{machine}:{family}:1").failures == []


@pytest.mark.parametrize("seed", [49, 56, 59])
def test_the_sides_of_a_tube_do_not_grow_together(seed):
    """Of equal rows, with hardly any tube and C = 1e7: their difference would have no digits."""
    assert stress.run(f"PathSVR:lattice, huge bound:{seed}").failures == []


def test_points_that_lie_on_the_tube_with_nothing_to_do():
    """The margin's equations have a right side of 0, so what is published is 0, not 1e-29."""
    assert stress.run("PathSVR:rare class:0").failures == []


def test_a_live_model():
    it = stress.run("PathSVC:duplicates:1", 600)
    assert (it.failures, it.tally["updates"]) == ([], 601)


def broken(monkeypatch, kind, name, change):
    """A property of an estimator with other values."""
    values = getattr(kind, name)
    other = (
        property(lambda self: change(values.fget(self)))
        if isinstance(values, property)
        else (lambda self, *rows: change(values(self, *rows)))
    )
    monkeypatch.setattr(kind, name, other)


@pytest.mark.parametrize(
    ("kind", "name", "change", "noticed"),
    [
        (PathSVC, "intercept_", lambda b: b + 1e-6, {"bad", "untrue", "values"}),
        (PathSVR, "dual_coef_", lambda c: c * (1 + 1e-6), {"bad", "untrue"}),
        (PathOneClass, "dual_coef_", lambda c: c * 1.01, {"bad", "untrue", "values"}),
        (PathSVC, "kkt_residual_", lambda r: r, set()),
        (PathSVC, "predict", lambda labels: labels[::-1].copy(), {"values"}),
        (PathSVC, "decision_function", lambda f: f + 1e-6, {"values"}),
        (PathSVC, "digest", lambda digest: digest + uuid4().hex, {"different"}),
    ],
)
def test_what_is_wrong_is_noticed(monkeypatch, kind, name, change, noticed):
    broken(monkeypatch, kind, name, change)
    it = stress.run(f"{kind.__name__}:generic:3")
    found = {key for key in stress.WRONG if it.tally[key]}
    assert found >= noticed
    assert bool(found) == bool(noticed)


def test_a_worse_objective_is_beaten(monkeypatch):
    """Also where nobody looks at the conditions."""
    monkeypatch.setattr(stress.Posed, "violation", lambda _: 0.0)
    broken(monkeypatch, PathSVC, "dual_coef_", lambda c: 0.999 * c)
    it = stress.run("PathSVC:generic:3")
    assert it.tally["beaten"]
    assert not it.tally["bad"]


def test_who_dies_is_replaced():
    todo = iter([("PathSVC:no such family:1", 20), ("PathSVC:generic:1", 20)])
    totals = stress.gathered(todo, 1, np.inf)["PathSVC"]
    assert (totals["dead"], totals["updates"] > 1) == (1, True)
