"""ρ from the sums: the value under which the rows are most probable.

Read the penalty as the prior w ~ N(0, σ²(ρG)⁻¹), G = I or the variances of the features, and the
loss as noise of variance σ²/ω. With a flat prior of the intercept, and σ² at its best value, minus
twice the logarithm of the probability of the K responses is, up to a constant,

    E(ρ) = N Σ_k log r_k + K log|I + C/(ρG)|,     r_k = v_k - c_kᵀ (C + ρG)⁻¹ c_k

C, c and v the sums of φφᵀ, φy and y² around the means, N = n - 1; for a penalised intercept they
are the sums themselves, the constant feature one of φ, and N = n. n counts rows: weights say how
precise they are, as in `traceless.solvers.errors`. Responses that never vary are left out.
MacKay (1992) has the same for G = I and one response.

*One tridiagonal matrix serves all ρ.* Householder's G^(-½) C G^(-½) = Q T Qᵀ takes as long as four
to six Cholesky factors, and z = QᵀG^(-½) c. With the eigenvalues λ of T, and w = (T + ρ)⁻¹ z, which
takes next to no time,

    r_k = v_k - z_k·w_k,     log|I + C/(ρG)| = Σ_i log(1 + λ_i / ρ)

*The same choice on every machine.* ρ is a power of two between 2^-20 and 2^10 times the weight of
all rows, and the largest with E ≤ min E + 0.05. Floats are off by a bounded amount: LAPACK's T and
λ are those of a matrix that is at most η = 4 J u λ_max away (u the unit roundoff), so

    |Δ log|·|| ≤ η Σ_i 1/(λ_i + ρ)
    |Δr_k| ≤ η ‖w_k‖² + 8 J u ‖w_k‖ (λ_max v_k)^½ + 4 J u (v_k + z_k·w_k)

where the second term is for the rounding of c. Where that could change the choice, E is computed
from the integers in twofold precision by A = L D Lᵀ, whose operations have the same bits
everywhere, and with a logarithm and a sum that do.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.linalg.lapack import dormqr, dpttrf, dpttrs, dsterf, dsytrd, dsytrd_lwork

from traceless.arithmetic.core import core
from traceless.arithmetic.elementary import logarithm
from traceless.arithmetic.integers import Floats, Integers, nearest, wide
from traceless.arithmetic.plain import integers
from traceless.solvers.class_weights import Coding
from traceless.solvers.moments import moments
from traceless.solvers.ridge import Penalty
from traceless.solvers.solve import weighted

if TYPE_CHECKING:
    from traceless.features.feature_map import BoundMap
    from traceless.knowledge.sums import Knowledge

_LOWEST, _HIGHEST = -20, 10  # powers of two, times the weight of all rows
_SLACK = 0.05  # of E: a larger ρ is taken where the rows hardly object
_U = 2.0**-53
_LOGARITHMS = 1e-12  # more than the error of a logarithm, here or in twofold precision


def _first(low: Floats, high: Floats, exactly: Callable[[int], float]) -> int:
    """The first place whose value is at most the least and the slack, of values between bounds.

    Where the bounds leave it open, the value with the widest ones that matters is made exact.
    """
    while True:
        least = high.min()
        i = int(np.flatnonzero(low <= least + _SLACK)[0])
        if high[i] <= low.min() + _SLACK:
            return i
        matters = low < least
        matters[i] = True
        j = int(np.where(matters, high - low, -1.0).argmax())
        low[j] = high[j] = exactly(j)


class _Tridiagonal:
    """The sums in a basis where their matrix is tridiagonal, in float64."""

    def __init__(self, B: Floats, c: Floats, v: Floats, n: int) -> None:
        J, K = c.shape
        if J == 1:  # a feature that is always 0 changes nothing
            B, c, J = np.diag([B[0, 0], 0.0]), np.vstack([c, np.zeros((1, K))]), 2
        work = int(dsytrd_lwork(J, lower=1)[0])
        A, self.diagonal, self.beside, tau, _ = dsytrd(B.T, lower=1, lwork=work, overwrite_a=1)
        below = dormqr("L", "T", A[1:, :-1], tau, np.asfortranarray(c[1:]), 64 * K)[0]
        self.eigenvalues = np.maximum(dsterf(self.diagonal, self.beside)[0], 0.0)
        self.z, self.v, self.n = np.vstack([c[:1], below]), v, n

    def evidence(self, rhos: Floats) -> tuple[Floats, Floats]:
        """E of each ρ, and a bound of its error."""
        E, bound = np.zeros(len(rhos)), np.full(len(rhos), np.inf)
        for i, rho in enumerate(rhos):
            d, e, failed = dpttrf(self.diagonal + rho, self.beside)
            if not failed:
                E[i], bound[i] = self._evidence(rho, dpttrs(d, e, self.z)[0])
        return E, bound

    def _evidence(self, rho: float, w: Floats) -> tuple[Any, Any]:
        eta, top = 4.0 * _U * len(w), self.eigenvalues.max()
        fitted, length = (self.z * w).sum(axis=0), np.sqrt((w * w).sum(axis=0))
        r = self.v - fitted
        off = eta * (top * length**2 + 2.0 * length * np.sqrt(top * self.v) + self.v + fitted)
        if not (r > 2.0 * off).all():
            return 0.0, np.inf
        log_det = np.log1p(self.eigenvalues / rho).sum()
        slope = top * (1.0 / (self.eigenvalues + rho)).sum()
        bound = self.n * (2.0 * off / r + _LOGARITHMS).sum() + len(r) * eta * (slope + log_det)
        return self.n * np.log(r).sum() + len(r) * log_det, bound


class Evidence:
    """E of some rows, from their integers, for weights of the classes if given.

    The ρ of `penalty` plays no part.

    Attributes
    ----------
    c, v : Python integers
        Of the text, times `scale`, in units of the knowledge.
    used, varying : ndarrays of bool
        Features that vary and are penalised; responses that vary.
    """

    def __init__(
        self,
        known: Knowledge,
        penalty: Penalty,
        phi: BoundMap,
        code: Coding,
        class_weights: tuple[float, ...] | None = None,
    ) -> None:
        self.known, self.phi, self.class_weights = known, phi, class_weights
        self.penalty, J = penalty._replace(rho=1.0), known.n_outputs
        ridge = self.penalty.ridge(known.feature_gram, known, phi)
        parts = [known.feature_gram] if class_weights is None else known.total
        self.S, whole, bits = weighted([S[:J, :J] for S in parts], class_weights or [1.0])
        weights = np.array(whole, dtype=object)
        c = code(wide(known.response_sums) * weights)
        v, scale = wide(known.gram.diagonal()[J:]), 1 << bits
        if known.task == "regression":  # the number of rows where their weight is not in the sums
            total = (
                int(known.gram[J - 1, J - 1])
                if phi.has_bias
                else known.n_samples << known.weight_bits
            )
        else:  # of several labels the last response is the constant, and codes are ±1
            total = int(v[-1] if known.task == "multilabel" else (v * weights).sum())
            v = np.array([total] * c.shape[1], dtype=object)
        self.weight = Fraction(total, scale << known.weight_bits) or Fraction(1)
        self.n, self.scale, self.is_free = known.n_samples, scale, ridge.is_free
        spread = integers(self.S[:, range(J), range(J)])
        if ridge.is_free:
            s, self.n, self.scale = integers(self.S[:, -1]), self.n - 1, scale * total
            v, spread = total * v - c[-1] * c[-1], total * spread - s * s
            c = total * c[:-1] - s[:-1, None] * c[-1]
        self.c, self.v, self.total, self.near = c, v, total, ridge.near
        self.used, self.varying = np.asarray((ridge.near > 0) & (spread > 0)), np.asarray(v > 0)

    @property
    def says_something(self) -> bool:
        """Whether a response and a feature vary."""
        return bool(self.varying.any() and self.used.any())

    def grid(self) -> list[float]:
        """The values to choose from, the largest first."""
        low, high = (self.weight * Fraction(2) ** k for k in (_LOWEST, _HIGHEST))
        powers = range(math.frexp(high)[1], math.frexp(low)[1] - 2, -1)
        return [math.ldexp(1.0, k) for k in powers if low <= Fraction(2) ** k <= high]

    def chosen(self, rhos: Sequence[float] | None = None) -> float:
        """The ρ that is chosen, from these."""
        choices = sorted(rhos or self.grid(), reverse=True)
        if not self.says_something:
            return choices[0]  # nothing speaks against the largest
        E, bound = self.floats().evidence(np.array(choices))
        return choices[_first(E - bound, E + bound, lambda i: self.exactly(choices[i]))]

    def logarithms(self, rhos: Sequence[float] | None = None) -> tuple[Floats, Floats]:
        """Values of ρ, and -E/2 of each: how probable the rows are, up to a constant."""
        choices = np.array(sorted(self.grid()) if rhos is None else rhos)
        if not self.says_something:
            return choices, np.zeros(len(choices))
        E, bound = self.floats().evidence(choices)
        for i in np.flatnonzero(~np.isfinite(bound)):
            E[i] = self.exactly(choices[i])
        return choices, -0.5 * E

    def floats(self) -> _Tridiagonal:
        """The sums in float64, ready for any ρ."""
        found = moments(self.known, self.penalty, self.phi, self.class_weights)
        used, whole = np.flatnonzero(self.used), np.array(self.scale, dtype=object)
        unit, scale = 2.0**-self.known.weight_bits, 1.0 / np.sqrt(found.ridge[used])
        B = found.C[np.ix_(used, used)]
        B *= scale
        B *= scale[:, None]
        c = nearest(self.c[np.ix_(used, np.flatnonzero(self.varying))], whole)
        c *= (unit * self.phi.steps[used] * scale)[:, None]
        return _Tridiagonal(B, c, nearest(self.v[self.varying], whole) * unit, self.n)

    def exactly(self, rho: float) -> float:
        """E in twofold precision: the same bits on every machine."""
        whole, G = self._bordered
        J, K = len(G), len(whole) - len(G)
        D, A = G * Fraction(rho), whole.copy()
        A[range(J), range(J)] += D
        A = _two(A)
        if core.twofold_factor(A, J, 1) < J:
            return math.inf
        pivots, v = np.hsplit(A.diagonal(axis1=1, axis2=2), [J])
        if not (v[0] > 0).all():
            return math.inf
        unit = np.array([float(self.scale << self.known.weight_bits)])  # of v
        logs = [self.n * a for a in _logarithms(v)]
        logs += [K * a for a in _logarithms(pivots)] + [-K * a for a in _logarithms(_two(D))]
        return math.fsum([*logs, -self.n * K * float(logarithm(unit)[0])])

    @cached_property
    def _bordered(self) -> tuple[Integers, Integers]:
        """C bordered by c and v, and G, all times `scale`, of what varies.

        When C + ρG is eliminated, r stands in the place of v.
        """
        kept, varying, C = *map(np.flatnonzero, (self.used, self.varying)), integers(self.S)
        if self.is_free:
            C = self.total * C - C[:, -1:] * C[-1]
        c, v = self.c[np.ix_(kept, varying)], np.diag(self.v[varying])
        G = [Fraction(g) * self.scale for g in self.near[kept].tolist()]
        return np.block([[C[np.ix_(kept, kept)], c], [c.T, v]]), np.array(G, dtype=object)


def _two(numbers: Integers) -> Floats:
    """Whole numbers and fractions as two floats, the first the nearest."""
    high = numbers.astype(np.float64)
    rest = numbers - np.frompyfunc(Fraction, 1, 1)(high)
    return np.array([high, rest.astype(np.float64)])


def _logarithms(a: Floats) -> Iterator[float]:
    yield from logarithm(np.ascontiguousarray(a[0])).tolist()
    yield from (a[1] / a[0]).tolist()
