"""
Choosing ρ by exact cross-validation
====================================

ρ is chosen when knowledge is solved, not when it is gathered. So
``select_rho`` gathers the folds once and scores every ρ on them, with the
numbers that scikit-learn's cross-validation would give.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score

from traceless import LSSVC
from traceless.features import RandomFourier
from traceless.model_selection import select_rho

X, y = load_digits(return_X_y=True)
model = LSSVC(RandomFourier(300, gamma=0.0004, random_state=0))

found = select_rho(model, X, y, np.logspace(-3, 5, 13), cv=5)
low, high = found.mean - found.std, found.mean + found.std
plt.fill_between(found.rhos, low, high, alpha=0.15)
plt.semilogx(found.rhos, found.mean, "o-")
plt.axvline(found.best, color="C1")
plt.xlabel("ρ")
plt.ylabel("accuracy, cross-validated")
plt.show()

# %%
# The band is one standard deviation over the five folds. The same number
# from scikit-learn, which learns the rows of each fold again:

model.set_params(rho=found.best)
print(f"select_rho      {found.mean.max():.16f}")
print(f"cross_val_score {cross_val_score(model, X, y, cv=5).mean():.16f}")

# %%
# A model that is fitted already takes another ρ at once, without the data.

model.fit(X, y)
for rho in (10_000.0, found.best):
    score = model.set_params(rho=rho).score(X, y)
    print(f"ρ = {rho:.3g}: {score:.1%} of the rows it has learned")
