"""Feature maps φ: rows to vectors of integers on a fixed grid.

    φ(x) = steps ∘ codes(x),     codes integers, steps powers of two

A map never looks at training data. It is fixed by its *specification* (its parameters,
seed and resolution), which has a digest; two models can be merged when the specifications of
their maps agree and, for maps that are not of this package, their codes for the rows of
`traceless.features.bound_map.probe_rows`. What makes the same row give the same codes in any batch:

- element-wise operations (`Linear`, `Polynomial`) do not depend on the batch;
- products Wx are taken over integers (`RandomFourier` and `RandomLayer` put both W
  and x on grids), where float64 is exact in any order;
- cos, exp and friends are those of `traceless.arithmetic.elementary`.

Writing a map of your own: subclass `FeatureMap`, store the constructor's parameters as
attributes, and define ``values(X)``, which turns a float64 array of rows into a float64
array of features *one row at a time* (element-wise NumPy; no matrix products). The base
class rounds to the grid, appends the constant feature and writes the specification.
`traceless.checks.check_feature_map` checks that it keeps the promises.
"""

from traceless.features.bound_map import BoundMap
from traceless.features.feature_map import FeatureMap
from traceless.features.kinds import Boolean, Category, Date, Hashed, Number
from traceless.features.linear import Linear
from traceless.features.polynomial import Polynomial
from traceless.features.random_fourier import RandomFourier
from traceless.features.random_layer import RandomLayer
from traceless.features.table import Table

__all__ = [
    "Boolean",
    "BoundMap",
    "Category",
    "Date",
    "FeatureMap",
    "Hashed",
    "Linear",
    "Number",
    "Polynomial",
    "RandomFourier",
    "RandomLayer",
    "Table",
]

# by name: what a file may hold, and the tests go through
MAPS = {kind.__name__: kind for kind in (Linear, Polynomial, RandomFourier, RandomLayer, Table)}
