"""
A digest that proves a deletion
===============================

Some rows are to be forgotten. Whoever holds the others can check that it
was done, without trusting the one who did it: fit them from scratch, and
compare two digests.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris

from traceless import LSSVC
from traceless.displays import ForgetDisplay
from traceless.features import RandomFourier

X, y = load_iris(as_frame=True, return_X_y=True)
X, y = X.iloc[:, 2:], y.map({0: "setosa", 1: "versicolor", 2: "virginica"})


def new_model() -> LSSVC:
    phi = RandomFourier(100, gamma=0.3, random_state=0)
    return LSSVC(phi)


model = new_model().fit(X, y)
goes = (y == "virginica") & (X["petal length (cm)"] < 5.65)

# %%
# The display forgets them in a copy of the model, and shows what becomes of
# the boundaries.

display = ForgetDisplay.from_estimator(model, X, y, goes)
plt.show()

# %%
# Now the model itself. The auditor's fit has never seen these rows, and has
# the same digest.

model.forget(X[goes], y[goes])
auditor = new_model().fit(X[~goes], y[~goes])
print("forgot ", model.digest())
print("auditor", auditor.digest())

# %%
# A single row that was kept back would show.

auditor.partial_fit(X[goes][:1], y[goes][:1])
print("kept 1 ", auditor.digest())
