"""
The path of the solution over C
===============================

``PathSVC`` does not train again when a parameter or the rows change. It
follows the solution (Karasuyama & Takeuchi 2009) from the model before the
change to the model after it. On the way the dual coefficients α are
straight lines, and they bend where a row joins the margin or leaves it.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from traceless import PathSVC

X, y = make_moons(120, noise=0.25, random_state=0)
svc = PathSVC(gamma=1.0).fit(X[:90], y[:90])

bounds = np.linspace(0.1, 4.0, 100)
alpha = np.zeros((100, 90))
for line, C in zip(alpha, bounds, strict=True):
    svc.set_params(C=C)  # followed from the last C on
    line[svc.support_] = np.abs(svc.dual_coef_[0])

# %%
# Lines on the diagonal are rows on the wrong side of the margin: their α is
# the bound C. Those that leave it are on the margin, or support nothing.

figure, ax = plt.subplots(layout="constrained")
ax.plot(bounds, alpha, color="0.4", lw=0.8)
ax.set(xlabel="C", ylabel="dual coefficients")
plt.show()

# %%
# Rows that come and go are one path too, which ends where a fit from
# scratch ends, to the bit.

svc.update(add=(X[90:], y[90:]), forget=(X[:15], y[:15]))
refit = PathSVC(C=4.0, gamma=1.0).fit(X[15:], y[15:])
print("same digest as a refit:", svc.digest() == refit.digest())
