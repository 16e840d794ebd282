"""
The same bits from any number of partitions
===========================================

On a cluster rows are summed in parts, and floats that are added in another order are other
floats. Knowledge is a sum of integers: Dask arrays, cut in any way, give one model and one
digest.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification

from traceless import LSSVC

X, y = make_classification(6400, 20, n_informative=10, random_state=0)
features = np.hstack([X, np.ones((len(X), 1))])
targets = 2.0 * y - 1.0
reference = LSSVC().fit(X, y)


def float_coefficients(rows: int) -> np.ndarray:
    """The same model from Dask's float products."""
    F, t = da.from_array(features, chunks=(rows, 21)), da.from_array(targets, chunks=rows)
    S, q = da.compute(F.T @ F, F.T @ t)
    return np.asarray(np.linalg.solve(S + np.eye(21), q))


# %%
# Both ways, with more and more partitions, and how far the coefficients are from those of one.

numbers = [1, 2, 4, 8, 16, 32]
exact, floats = [], []
whole = float_coefficients(len(X))
for n_parts in numbers:
    rows = len(X) // n_parts
    model = LSSVC().fit(da.from_array(X, chunks=(rows, 20)), da.from_array(y, chunks=rows))
    assert model.digest() == reference.digest()
    exact.append(np.abs(model.coef_ - reference.coef_).max())
    floats.append(np.abs(float_coefficients(rows) - whole).max())

figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
ax.plot(numbers, floats, "o-", color="#d95f0e", label="float sums")
ax.plot(numbers, exact, "D-", color="#1b6ca8", label="traceless: 0", clip_on=False, zorder=5)
ax.set_xscale("log", base=2)
ax.set_xticks(numbers, [str(n) for n in numbers])
ax.set(xlabel="partitions", ylabel="largest difference of a coefficient", ylim=(0, None))
ax.legend(frameon=False, loc="center right")
ax.spines[["top", "right"]].set_visible(False)

# %%
# With a ``distributed.Client`` the same lines run on its workers. A worker that is killed is
# replaced, and the digest stays the same.
