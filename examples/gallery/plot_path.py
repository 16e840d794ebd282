"""
The path of a change, with its breakpoints
==========================================

``PathSVC`` does not train again when rows come and go. It follows the
solution (Karasuyama & Takeuchi 2009) from the model before the change, at
θ = 0, to the model after it, at θ = 1. On the way the dual coefficients α
are straight lines, and they bend where a row joins the margin or leaves it.
Each bend is a breakpoint.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from traceless import PathSVC
from traceless.displays import PathDisplay

X, y = make_moons(120, noise=0.25, random_state=0)
svc = PathSVC(C=2.0, gamma=1.0).fit(X[:90], y[:90])

display = PathDisplay.from_estimator(
    svc, add=(X[90:], y[90:]), forget=(X[:15], y[:15])
)
plt.show()

# %%
# Grey lines are support vectors that stay. The bound of rows that come
# grows from 0 to C = 2, and the bound of rows that leave shrinks to 0.
#
# The display works on a copy. The change itself is one call, and ends where
# a fit from scratch ends, to the bit.

svc.update(add=(X[90:], y[90:]), forget=(X[:15], y[:15]))
refit = PathSVC(C=2.0, gamma=1.0).fit(X[15:], y[15:])
print("same digest as a refit:", svc.digest() == refit.digest())

# %%
# The solution for every C between two is a path as well. Lines at 1 are
# rows on the wrong side of the margin, at their bound, which they leave as
# C grows. ``path.at(C)`` is the model at any C.

path = svc.c_path(0.01, 100.0)
PathDisplay.from_c_path(path)
plt.show()
fresh = PathSVC(C=7.0, gamma=1.0).fit(X[15:], y[15:])
print("the model at C = 7:", path.at(7.0).digest() == fresh.digest())
