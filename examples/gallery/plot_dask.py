"""
The same bits from any number of partitions
===========================================

On a cluster rows are summed in parts, and floats that are added in another
order are other floats. Knowledge is a sum of integers: Dask arrays, cut in
any way, give one model and one digest.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification

from traceless import LSSVC

plt.rc("figure.constrained_layout", use=True)
plt.rc("axes.spines", top=False, right=False)

X, y = make_classification(6400, 20, n_informative=10, random_state=0)
reference = LSSVC().fit(X, y)


def float_coefficients(X: da.Array, y: da.Array) -> np.ndarray:
    """A plain ridge regression from Dask's float products."""
    F = da.hstack([X, da.ones_like(X[:, :1])])
    S, q = da.compute(F.T @ F, F.T @ (2.0 * y - 1.0))
    return np.asarray(np.linalg.solve(S + np.eye(21), q))


# %%
# Both ways, with more and more partitions, and how far the coefficients are
# from those of one.

numbers = [1, 2, 4, 8, 16, 32]
exact, floats = [], []
for n_parts in numbers:
    rows = len(X) // n_parts
    lazy = da.from_array(X, (rows, 20)), da.from_array(y, rows)
    model = LSSVC().fit(*lazy)
    assert model.digest() == reference.digest()
    exact.append(np.abs(model.coef_ - reference.coef_).max())
    floats.append(float_coefficients(*lazy))
differences = [np.abs(w - floats[0]).max() for w in floats]

figure, ax = plt.subplots(figsize=(6.4, 3.6))
ax.plot(numbers, differences, "o-", color="#d95f0e", label="float sums")
ax.plot(numbers, exact, "D-", color="#1b6ca8", label="traceless: 0")
ax.set_xscale("log", base=2)
ax.set_xticks(numbers, [str(n) for n in numbers])
ax.set(xlabel="partitions", ylabel="largest difference of a coefficient")
ax.legend(frameon=False, loc="center right")
plt.show()

# %%
# With a ``distributed.Client`` the same lines run on its workers. A worker
# that is killed is replaced, and the digest stays the same.
