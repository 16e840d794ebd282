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
gram          the kernel matrix of a model's rows, as far as it was asked for; kernels
settings      the parameters; target, the points of a problem; core, what is compiled

The path itself is compiled: ``src/core/path.h``, with ``gram.h`` and ``factor.h``. Whatever imports
`core` needs it, so nothing is imported here.
"""
