"""
A lasso path from sums
======================

Other models of second moments can be solved from the same knowledge. Here
scikit-learn's ``lars_path_gram`` takes what an ``LSSVR`` holds after rows
were forgotten, and finds the path of a lasso that never saw them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.linear_model import lars_path, lars_path_gram

from traceless import LSSVR

X, y = load_diabetes(return_X_y=True, as_frame=True)
model = LSSVR().fit(X, y).forget(X[:42], y[:42])

# %%
# Knowledge is Σ[φ; 1; y][φ; 1; y]ᵀ in steps of the grids. Around the means:

J, n = X.shape[1], model.n_samples_
sums = model.knowledge_.gram.astype(float)
steps = np.append(
    np.full(J, 2.0**-14), [1.0, 2.0**-14]
)  # of columns, constant and target
sums *= np.outer(steps, steps)
means = sums[J] / n
centred = sums - n * np.outer(means, means)
gram, right = centred[:J, :J], centred[:J, -1]
scale = np.sqrt(gram.diagonal())

alphas, _, path = lars_path_gram(
    right / scale,
    gram / np.outer(scale, scale),
    n_samples=n,
    method="lasso",
)
plt.figure(figsize=(6.4, 4.0), layout="constrained")
lines = plt.plot(np.abs(path).sum(axis=0), path.T)
plt.xlabel("Σ|w|")
plt.ylabel("w, columns of length one")
plt.legend(
    lines,
    X.columns,
    loc="upper left",
    bbox_to_anchor=(1.0, 1.0),
    frameon=False,
)
plt.show()

# %%
# The same path from the rows themselves, on the grid that they were learned
# on:

rows = np.rint(X[42:].to_numpy() * 2**14) / 2**14
rows = rows - rows.mean(axis=0)
rows /= np.linalg.norm(rows, axis=0)
target = y[42:].to_numpy()
_, _, wanted = lars_path(rows, target - target.mean(), method="lasso")
difference = np.abs(path - wanted).max() / np.abs(wanted).max()
print(f"largest difference: {difference:.0e} of the largest coefficient")
print("the same path:", bool(difference < 1e-10))
