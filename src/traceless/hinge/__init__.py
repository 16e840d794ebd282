"""The hinge loss: support vector machines that learn and forget many rows at once.

    min ½ αᵀQα - 1ᵀα,    0 ≤ α_i ≤ u_i,    Σ y_i α_i = 0,     Q_ij = y_i y_j k(x_i, x_j)

The solution is piecewise linear in the bounds u (Karasuyama & Takeuchi 2009). Points that come,
points that go and bounds that change are bounds that move, all at once, along one path. From
top to bottom:

file_format   what is written to a file, and how it is read back
model         training rows and the problems they make, which change together
answers       what a model says: values, attributes, digest (multiclass, precomputed)
machines      classifier, regressor, one class: which numbers make one problem of each
problem       one binary problem: points join and leave, and a change makes another problem
published     what a problem says: decision values, and how far they can be relied upon
canonical     the published solution: checked, the same bits whatever the history (groups)
solver        starts a path, restarts it where it stalls, repairs its end (kkt, smo)
working_set   points far from the margin are not looked at all the time
active_set    the points of a path, and the rare events
follow        the loop, compiled: a direction, the first event, what it does
cholesky      the factor of the margin set; kernel_cache, kernels, compiled
margin        the system of the margin set, in one order of evaluation
rows          training rows, found again by content or id; settings, the parameters
core          what is compiled ahead

Whatever imports `compiled` needs numba, and `core` a C++ compiler: nothing is imported here.
"""
