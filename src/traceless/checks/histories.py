"""Updated equals refitted: whatever the history, a model has the bits of a fit from scratch."""

from __future__ import annotations

from unittest import SkipTest

from traceless.checks.trial import Trial, answers, demand, demand_refit, forget, learn


def check_updated_equals_refitted(trial: Trial) -> None:
    """Random histories of learning, forgetting, updating and merging."""
    for _ in range(trial.n_histories):
        start = trial.first(2)
        model = trial.fitted(start)
        for step, held in trial.history(5, start):
            trial.play(model, step)
            demand_refit(trial, model, held, f"after {step}")
            if trial.rng.random() < 0.3 and held:
                answers(model, trial.X)  # predicting must not change later results


def check_all_rows_may_be_forgotten(trial: Trial) -> None:
    """A model that has forgotten everything learns again, as if it were new."""
    rows = trial.first(5)
    model = trial.fitted(rows)
    for row in rows:
        forget(model, trial.take([row]))
    left = getattr(model, "n_samples_", 0)
    demand(left == 0, "no rows are left when all are forgotten", f"n_samples_ is {left}")
    later = [6 + row for row in trial.first(8)]
    for row in later:
        learn(model, trial.take([row]))
    demand_refit(trial, model, later, "after all rows were forgotten and others learned")


def check_an_empty_side_changes_nothing(trial: Trial) -> None:
    """`update` with no rows on one side, or on both, changes nothing on that side."""
    if not hasattr(trial.estimator, "update"):
        raise SkipTest("it has no update")
    none, rows = trial.take([]), trial.first(8)
    model = trial.fitted(rows)
    model.update(add=none, forget=none)
    demand_refit(trial, model, rows, "after an update without rows")
    model.update(add=trial.take([9]), forget=none)
    rows = [*rows, 9][-trial.limit :]
    demand_refit(trial, model, rows, "after an update with nothing to forget")
    model.update(add=none, forget=trial.take([9]))
    demand_refit(trial, model, [r for r in rows if r != 9], "after one with nothing to add")
