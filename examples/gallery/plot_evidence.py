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
from traceless.model_selection import select_rho

X, y = load_diabetes(return_X_y=True)
rhos = 2.0 ** np.arange(-8, 11)
by_evidence = LSSVR(rho="evidence").fit(X[:100], y[:100]).rho_
found = select_rho(LSSVR(), X[:100], y[:100], rhos, cv=5)

figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
low, high = found.mean - found.std, found.mean + found.std
ax.fill_between(found.rhos, low, high, alpha=0.15)
ax.semilogx(found.rhos, found.mean, "o-")
ax.axvline(found.best, color="C0", label="five folds")
ax.axvline(by_evidence, color="C1", label="evidence")
ax.set(xlabel="ρ", ylabel="R², cross-validated")
ax.legend()
plt.show()

# %%
# Five folds of twenty rows say little: the band is one standard deviation.
# How good are both choices for rows that were not used, over many draws?

rng = np.random.default_rng(0)
excess = []
for _ in range(10):
    order = rng.permutation(len(y))
    train, test = order[:60], order[60:]
    model = LSSVR().fit(X[train], y[train])
    by_folds = select_rho(LSSVR(), X[train], y[train], rhos).best
    scores = [
        model.set_params(rho=rho).score(X[test], y[test])
        for rho in ("evidence", by_folds, *rhos)
    ]
    excess.append(max(scores[2:]) - np.array(scores[:2]))
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
print("as if they had never come:", model.rho_ == by_evidence)
