"""What the path follower works on: plain arrays, so that compiled code can take them.

    g_i = y_i f(x_i) - 1 + shift_i (1 - θ),     f(x) = Σ_j y_j α_j k(x_j, x) + b
    Σ_j y_j α_j = imbalance · (1 - θ),          bound_i(θ) = bound_i(0) + θ rate_i

θ runs from 0 to 1. Points are in one of the sets INSIDE (α = 0, g ≥ 0), MARGIN (g = 0) and
OUTSIDE (α = bound, g ≤ 0); PINNED points are on their way out, α = bound whatever g; ABSENT
ones are slots that hold no point.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from traceless.exact import Floats

ABSENT, INSIDE, MARGIN, OUTSIDE, PINNED = -1, 0, 1, 2, 3

# why the follower came back
DONE, STALLED, STUCK, NEED_ROW, NEED_ROOM, TOO_LONG = 0, 1, 2, 3, 4, 5

# `value`: numbers that change along the path
THETA, INTERCEPT, DRIFT, RHO, SPREAD, HEAP, SOUNDNESS = 0, 1, 2, 3, 4, 5, 6
# `count`: k members of the margin, n slots, breakpoints so far, most of them, steps of length 0,
# and the point whose row is needed
K, N, STEPS, LIMIT, STALLS, WANTED = 0, 1, 2, 3, 4, 5


class Road(NamedTuple):
    """The state of a path, and room to work in.

    Attributes
    ----------
    gram : ndarray of shape (lines, slots)
        Rows of the kernel matrix; that of point i is at `line[i]`, -1 if it is not there.
    diagonal, root : k(x_i, x_i), and its square root
    y, alpha, bound, final, rate : of each point; `final` is the bound at θ = 1
    g, drift, shift : of each point; `drift` is the rate of g that the margin does not cause
    side : INSIDE, MARGIN, ...
    members : points of the margin, in the order of the factor R
    value, count : see the names above; value[DRIFT] is the rate of Σyα that the margin does
        not cause; SPREAD and HEAP bound the magnitude of the terms of `drift` and of it
    dc, ones, size, dg, column : scratch
    """

    gram: Floats
    line: NDArray[np.int64]
    diagonal: Floats
    root: Floats
    y: Floats
    alpha: Floats
    bound: Floats
    final: Floats
    rate: Floats
    g: Floats
    drift: Floats
    shift: Floats
    side: NDArray[np.int8]
    members: NDArray[np.int64]
    R: Floats
    value: Floats
    count: NDArray[np.int64]
    dc: Floats
    ones: Floats
    size: Floats
    dg: Floats
    column: Floats
