"""
Choosing ρ by exact cross-validation
====================================

ρ is chosen when knowledge is solved, not when it is gathered. So
``select_rho`` gathers the folds once and scores every ρ on them, with the
numbers that scikit-learn's cross-validation would give.
"""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import cross_val_score

from traceless import LSSVC
from traceless.displays import RhoDisplay
from traceless.features import RandomFourier
from traceless.model_selection import select_rho

X, y = load_digits(return_X_y=True)
X = X / 16
model = LSSVC(RandomFourier(300, gamma=0.1, random_state=0))

selection = select_rho(model, X, y, np.logspace(-5, 3, 25), cv=5)
RhoDisplay.from_selection(selection, score_name="accuracy")

# %%
# The band is one standard deviation over the five folds. The same number
# from scikit-learn, which learns the rows of each fold again:

theirs = cross_val_score(
    model.set_params(rho=selection.best), X, y, cv=5
).mean()
print(
    f"select_rho {selection.mean.max():.16f}, cross_val_score {theirs:.16f}"
)

# %%
# A fitted model takes another ρ at once, without the data.

model.set_params(rho=1.0).fit(X, y).set_params(rho=selection.best).predict(
    X[:5]
)
