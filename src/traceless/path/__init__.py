"""The hinge SVM that adds and removes many points at once (Karasuyama & Takeuchi 2009).

    min ½ αᵀQα - 1ᵀα,    0 ≤ α_i ≤ u_i,    Σ y_i α_i = 0,     Q_ij = y_i y_j k(x_i, x_j)

The solution is piecewise linear in the bounds u. Points that come, points that go and bounds
that change are bounds that move, all at once, and `follow` follows the solution from one
breakpoint to the next. From top to bottom:

problem      points and what is asked of them: fit, update, set_bounds
state        their solution, which stays what it is: a change makes another
walk         starts a path, restarts it where it stalls, repairs what is left over
certificate  the KKT conditions, from scratch
canonical    what is published: checked, and the same bits whatever the history (grouped, margin)
window       points far from the margin are not looked at all the time
follow       the loop: a direction, the first event, what it does (steps; events are the rare ones)
store        rows and kernel values; kernels, factor: their arithmetic
"""

from traceless.path.canonical import Canonical
from traceless.path.kernels import Kernel
from traceless.path.problem import HingeProblem
from traceless.path.state import State

__all__ = ["Canonical", "HingeProblem", "Kernel", "State"]
