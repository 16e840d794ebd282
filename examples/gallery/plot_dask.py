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
from sklearn.datasets import load_digits

from traceless import LSSVC

X, y = load_digits(return_X_y=True)
X = X / 16
features = np.hstack([X, np.ones((len(X), 1))])
targets = np.where(y[:, None] == np.arange(10), 1.0, -1.0)
reference = LSSVC().fit(X, y)


def float_coefficients(rows: int) -> np.ndarray:
    """The same model from Dask's float products."""
    F, T = (da.from_array(a, chunks=(rows, -1)) for a in (features, targets))
    S, Q = da.compute(F.T @ F, F.T @ T)
    return np.asarray(np.linalg.solve(S + np.eye(65), Q))


# %%
# Both ways, with more and more partitions.

numbers = [1, 2, 4, 8, 16, 32]
exact, floats = [], []
whole = float_coefficients(len(X))
for n_parts in numbers:
    rows = -(-len(X) // n_parts)
    model = LSSVC().fit(da.from_array(X, chunks=(rows, 64)), da.from_array(y, chunks=rows))
    assert model.digest() == reference.digest()
    exact.append(np.abs(model.coef_ - reference.coef_).max())
    floats.append(np.abs(float_coefficients(rows) - whole).max())

figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
ax.plot(numbers, floats, "o-", color="#d95f0e", label="float sums")
ax.plot(numbers, exact, "D-", color="#1b6ca8", label="traceless: 0", clip_on=False)
ax.set_xscale("log", base=2)
ax.set_xticks(numbers, [str(n) for n in numbers])
ax.set(xlabel="partitions", ylabel="difference to one partition", ylim=(0, None))
ax.legend(frameon=False, loc="center right")
ax.spines[["top", "right"]].set_visible(False)

# %%
# With a ``distributed.Client`` the same lines run on its workers. A worker that is killed is
# replaced, and the digest stays the same.
