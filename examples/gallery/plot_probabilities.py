"""
Probabilities that are forgotten with the row
=============================================

``predict_proba`` is made of the sums that the model keeps: where the
scores of each class lie, how far they spread, and how much of that the
model owes to having seen the rows. No row is needed for it, so when rows
are forgotten, what they did to the probabilities goes too.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import CalibratedClassifierCV, CalibrationDisplay
from sklearn.datasets import make_moons
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.metrics import log_loss

from traceless import LSSVC
from traceless.features import RandomFourier

X, y = make_moons(600, noise=0.3, random_state=0)
X_test, y_test = make_moons(20_000, noise=0.3, random_state=1)
wrong = np.random.default_rng(0).normal([-0.9, 0.4], 0.25, size=(150, 2))

# %%
# Somebody has labelled 150 rows wrongly, at the left. The model becomes
# unsure of itself there; when they are forgotten, every probability is that
# of a model that has never seen them.

phi = RandomFourier(60, gamma=0.5, random_state=0)
model = LSSVC(phi, rho=10.0).fit(X, y)
model.partial_fit(wrong, np.ones(150, dtype=int))


def draw(ax: Any, title: str) -> None:
    DecisionBoundaryDisplay.from_estimator(
        model,
        X,
        response_method="predict_proba",
        class_of_interest=1,
        levels=np.linspace(0, 1, 11),
        cmap="RdBu_r",
        ax=ax,
    )
    ax.scatter(*X.T, c=y, cmap="RdBu_r", s=3)
    ax.set_title(title)


figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
draw(axes[0], "with 150 wrong labels (crosses)")
axes[0].scatter(*wrong.T, color="black", marker="x", s=10, lw=0.7)
model.forget(wrong, np.ones(150, dtype=int))
draw(axes[1], "after they are forgotten")
plt.show()

never = LSSVC(phi, rho=10.0).fit(X, y)
same = model.predict_proba(X_test) == never.predict_proba(X_test)
print(f"as if they had never been there, to the bit: {same.all()}")

# %%
# Are they right? Of the rows that get a probability of 0.7, about 70 %
# should be of that class. ``CalibratedClassifierCV`` fits five models and
# a sigmoid to rows that each has not seen. The sums alone come near.

calibrated = CalibratedClassifierCV(LSSVC(phi, rho=10.0)).fit(X, y)
figure, ax = plt.subplots(figsize=(5, 4.4), layout="constrained")
for name, way in {"LSSVC": model, "sigmoid, five fits": calibrated}.items():
    loss = log_loss(y_test, way.predict_proba(X_test))
    CalibrationDisplay.from_estimator(
        way,
        X_test,
        y_test,
        n_bins=10,
        name=f"{name}, loss {loss:.3f}",
        ax=ax,
    )
ax.set(xlabel="said", ylabel="came true")
plt.show()
