"""
How far off may a prediction be?
================================

The sums that a model is solved from also say how large the noise is and how
sure each coefficient: ``predict(X, return_std=True)``, ``predict_interval``
and ``summary()`` need no rows, and are forgotten with them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

from traceless import LSSVR
from traceless.features import RandomFourier

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 10, 400))
x = x[(x < 3) | (x > 7)]  # nothing was seen in the middle
y = 500 + 20 * np.sin(x) + rng.normal(scale=4, size=len(x))
X = x[:, None]

phi = RandomFourier(60, gamma=0.5, random_state=0)
model = LSSVR(phi, rho="evidence", standardize=False).fit(X, y)
points = np.linspace(0, 10, 200)[:, None]
low, high = model.predict_interval(points)
plt.fill_between(points[:, 0], low, high, alpha=0.15, label="95 % interval")
plt.plot(points, model.predict(points), label="prediction")
plt.plot(x, y, ".", ms=4, label="target")
plt.legend()
plt.show()

# %%
# The band is wide where nothing was seen. 95 % were promised; of rows that
# the model has never seen, so many are inside:

new = rng.uniform(0, 3, 5000)
truth = 500 + 20 * np.sin(new) + rng.normal(scale=4, size=len(new))
low, high = model.predict_interval(new[:, None])
print(f"{np.mean((low <= truth) & (truth <= high)):.1%} inside")
print(f"noise {model.noise_std_:.2f}, and it was 4")

# %%
# Forget half of the rows, and the band is that of a model that never had
# them.

half = slice(0, None, 2)
model.forget(X[half], y[half])
afresh = LSSVR(phi, rho="evidence", standardize=False).fit(X[1::2], y[1::2])
same = (
    model.predict(X, return_std=True)[1]
    == afresh.predict(X, return_std=True)[1]
)
print("the same errors:", same.all())

# %%
# With columns as features, coefficients have errors too. No error covers
# the bias of a ρ that is too large.

table, disease = load_diabetes(return_X_y=True, as_frame=True)
linear = LSSVR(rho="evidence").fit(table, disease)
print(linear.summary())
rows = linear.summary().to_frame().drop("intercept")
half = (rows["95 % to"] - rows["95 % from"]) / 2
plt.figure()
plt.errorbar(rows["coefficient"], rows.index, xerr=half, fmt="o")
plt.axvline(0.0, color="grey", lw=0.8)
plt.xlabel("coefficient, with its 95 % interval")
plt.show()
