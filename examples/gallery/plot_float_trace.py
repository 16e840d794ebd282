"""
Why floats leave a trace
========================

To forget a row, one subtracts it from the sums that it was added to. In
floats ``(a + b) - b`` is not ``a``: digits that were rounded away when the
row came do not come back when it leaves. So every guest leaves a trace, and
the larger the guest, the larger the trace.
"""

import matplotlib.pyplot as plt
import numpy as np

from traceless import LSSVR

print(f"(0.1 + 0.7) - 0.7 = {(0.1 + 0.7) - 0.7!r}")

# %%
# A hundred rows stay. Batches of ten guests come and go again, once in
# float sums and once in a model of traceless. Afterwards both should have
# the coefficients that they began with.

rng = np.random.default_rng(0)
X, y = rng.normal(size=(100, 10)), rng.normal(size=100)


def solve(S: np.ndarray, q: np.ndarray) -> np.ndarray:
    return np.asarray(np.linalg.solve(S + np.eye(10), q))


figure, ax = plt.subplots(figsize=(6.8, 4), layout="constrained")
start = solve(X.T @ X, X.T @ y)
for size, colour in ((1, "#fdbe85"), (100, "#fd8d3c"), (10_000, "#d94701")):
    S, q, traces = X.T @ X, X.T @ y, []
    model = LSSVR().fit(X, y)
    for _ in range(200):
        guests, targets = size * rng.normal(size=(10, 10)), np.ones(10)
        S, q = S + guests.T @ guests, q + guests.T @ targets
        S, q = S - guests.T @ guests, q - guests.T @ targets
        traces.append(np.abs(solve(S, q) - start).max())
        model.partial_fit(guests, targets).forget(guests, targets)
    label = f"float sums, guests of size {size:,}"
    ax.plot(traces, color=colour, label=label)
    same = model.digest() == LSSVR().fit(X, y).digest()
    print(f"guests of size {size}: traceless has its digest back: {same}")

ax.axhline(0, color="#1b6ca8", lw=5, label="traceless: 0")
ax.set_yscale("symlog", linthresh=1e-17)
ax.set_yticks([0, 1e-16, 1e-13, 1e-10], ["0", "1e-16", "1e-13", "1e-10"])
ax.set(ylim=(0, 1e-6), xlabel="batches that came and went")
ax.set_ylabel("largest change of a coefficient")
ax.legend(frameon=False, ncols=2, loc="upper center")
ax.spines[["top", "right"]].set_visible(False)
plt.show()
