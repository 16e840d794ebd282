"""
Choosing ρ without holding rows out
===================================

``rho="evidence"`` takes the ρ under which the rows are most probable. It is
chosen from the sums at each solve: no rows, no folds, and when rows are
forgotten the choice is that of a model that never had them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from traceless import LSSVR
from traceless.displays import RhoDisplay
from traceless.model_selection import select_rho

X, y = load_diabetes(return_X_y=True)
by_evidence = select_rho(LSSVR(), X[:100], y[:100], method="evidence")
by_folds = select_rho(LSSVR(), X[:100], y[:100], by_evidence.rhos, cv=5)

figure, axes = plt.subplots(
    2, figsize=(6.4, 6.4), layout="constrained", sharex=True
)
RhoDisplay.from_selection(by_evidence, ax=axes[0])
RhoDisplay.from_selection(by_folds, score_name="R²", ax=axes[1])
plt.show()

# %%
# Five folds of twenty rows say little: the band is one standard deviation.
# How good are both choices for rows that were not used, over many draws?

rng = np.random.default_rng(0)
excess = []
for _ in range(20):
    order = rng.permutation(len(y))
    train, test = order[:60], order[60:]
    model = LSSVR().fit(X[train], y[train])
    scores = [
        model.set_params(rho=r).score(X[test], y[test])
        for r in by_evidence.rhos
    ]
    folds = select_rho(
        LSSVR(), X[train], y[train], by_evidence.rhos, cv=5
    ).best
    chosen = [
        model.set_params(rho=r).score(X[test], y[test])
        for r in ("evidence", folds)
    ]
    excess.append(max(scores) - np.array(chosen))
print(
    "R² below the best ρ, on average: evidence {:.3f}, folds {:.3f}".format(
        *np.mean(excess, 0)
    )
)

# %%
# The choice belongs to the rows held now, whatever came before.

model = LSSVR(rho="evidence")
for n in (30, 100, 442):
    print(f"{n} rows: ρ = {model.fit(X[:n], y[:n]).rho_:g}")
model.forget(X[100:], y[100:])
print("as if they had never come:", model.rho_ == by_evidence.best)
