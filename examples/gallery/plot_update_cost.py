"""
What forgetting costs, and what a refit costs
=============================================

A refit computes with every row that stays, an update with the rows that
leave. Both end when the model has predicted a row. The two take turns, and
medians are shown, so that a busy machine disturbs both alike.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification

from traceless import LSSVC
from traceless.displays import UpdateCostDisplay
from traceless.features import RandomFourier

X, y = make_classification(10_000, 20, n_informative=10, random_state=0)
sizes = [1, 10, 100, 1000, 5000]
phi = RandomFourier(300, gamma=0.02, random_state=0)

plt.rc("figure.constrained_layout", use=True)
figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True)
for ax, solver in zip(axes, ("cholesky", "woodbury"), strict=True):
    model = LSSVC(phi, solver=solver)
    UpdateCostDisplay.from_estimator(model, X, y, sizes=sizes, ax=ax)
    ax.set_title(f'solver="{solver}"')
axes[1].set_ylabel("")
plt.show()

# %%
# The default solver takes the rows out of the sums and factors the matrix
# anew. ``solver="woodbury"`` keeps the inverse (Lee et al. 2019), which
# pays for a few rows. Where half of the rows go, a fit from scratch costs
# no more.
