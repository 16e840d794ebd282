"""Means, variances and covariances of the rows, in float64: what errors and probabilities need.

With a free intercept all is counted from the means, and the constant feature is left out:

    C = Σω(φ - φ̄)(φ - φ̄)ᵀ,    c = Σω(φ - φ̄)(r - r̄)ᵀ,    (C + D) w = c,    P = (C + D)⁻¹

else the constant feature is one like the others, and the means are 0. D is the penalty in the
units of the features: ρ, or ρσ². All is computed from the exact sums, shifted to the means in
integers first (`traceless.solvers.centring`), so columns far from zero lose no digits. It is a
function of the rows held now, to the last bits of float64; these depend on BLAS.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotri, dtrtri

from traceless.arithmetic.integers import Floats, Sums
from traceless.exceptions import ConditionError
from traceless.features.feature_map import BoundMap
from traceless.solvers.centring import shifted, whole_means
from traceless.solvers.ridge import Penalty

if TYPE_CHECKING:
    from traceless.knowledge.sums import Knowledge


@dataclass(frozen=True)
class Moments:
    """Moments of features (J) and responses (K), real units; see the module's text.

    Attributes
    ----------
    n_rows : int
    counts : tuple of int
        Rows per class; one number for regression.
    weight : float
        Σω of all rows.
    totals : ndarray of shape (K,)
        Σωr: the weight of each class, or the sum of each target.
    center : ndarray of shape (J,)
        φ̄ in the units of the features; 0 where nothing is centred.
    C : ndarray of shape (J, J)
    c : ndarray of shape (J, K)
    ridge : ndarray of shape (J,)
        D. It is 0 for features that never vary, whose coefficients are 0.
    is_centred : bool
        Whether the intercept is free, and the constant feature left out.
    """

    n_rows: int
    counts: tuple[int, ...]
    weight: float
    totals: Floats
    center: Floats
    C: Floats
    c: Floats
    ridge: Floats
    is_centred: bool

    @cached_property
    def used(self) -> NDArray[np.intp]:
        """The features that have a coefficient."""
        return np.flatnonzero((self.C.diagonal() > 0) & (self.ridge > 0))

    @cached_property
    def P(self) -> Floats:  # noqa: N802
        """(C + D)⁻¹ as a full matrix, 0 for features without a coefficient."""
        if not self.used.size:
            return np.zeros_like(self.C)
        factor, scale = self._factor()
        upper = np.triu(dpotri(factor, overwrite_c=True)[0])
        upper += np.triu(upper, 1).T
        return self._spread(upper * scale * scale[:, None])

    @cached_property
    def root(self) -> Floats:
        """F with P = F Fᵀ, so that φᵀPφ = ‖Fᵀφ‖² is a sum without cancellation."""
        if not self.used.size:
            return np.zeros_like(self.C)
        factor, scale = self._factor()
        return self._spread(np.triu(dtrtri(factor, overwrite_c=True)[0]) * scale[:, None])

    def _spread(self, A: Floats) -> Floats:
        """A matrix of the used features among all of them."""
        if len(A) == len(self.C):
            return A
        out = np.zeros_like(self.C)
        out[np.ix_(self.used, self.used)] = A
        return out

    def _factor(self) -> tuple[Floats, Floats]:
        """R and d with d (C + D) d = RᵀR in the upper triangle, of a diagonal of ones."""
        used = self.used
        A = np.asfortranarray(self.C[np.ix_(used, used)])
        A[np.diag_indices_from(A)] += self.ridge[used]
        scale = 1.0 / np.sqrt(A.diagonal())  # whatever the units
        A *= scale
        A *= scale[:, None]
        factor, failed = dpotrf(A, overwrite_a=True, clean=False)
        if failed:
            raise ConditionError(
                "The system is too ill-conditioned for float64, which errors and probabilities "
                "are computed in. Increase rho."
            )
        return factor, scale

    @cached_property
    def degrees_of_freedom(self) -> float:
        """J - Σ D_j P_jj, and 1 for a free intercept."""
        used = self.used
        own = len(used) - float((self.ridge[used] * self.P.diagonal()[used]).sum())
        return own + self.is_centred


def moments(
    known: Knowledge,
    penalty: Penalty,
    phi: BoundMap,
    class_weights: Sequence[float] | None = None,
) -> Moments:
    """The moments of the rows that some knowledge has, with weights of the classes if given."""
    ridge = penalty.ridge(known.feature_gram, known, phi)
    steps, unit = phi.steps, 2.0**-known.weight_bits
    m = whole_means(known.feature_gram) if ridge.is_free else None
    if class_weights is None:
        S, V = in_floats(known.feature_gram, known.response_sums, m)
    else:
        J = known.n_outputs
        parts = [in_floats(part[:J, :J], part[:J, J:], m) for part in known.total]
        S = np.asarray(sum(w * S for w, (S, _) in zip(class_weights, parts, strict=True)))
        V = np.hstack([w * V for w, (_, V) in zip(class_weights, parts, strict=True)])
    S *= unit * steps
    S *= steps[:, None]
    V *= unit * steps[:, None]
    D = ridge.near * (unit * steps * steps)
    if m is None:
        counts = known.class_totals if known.task == "classification" else ()
        totals = np.array([float(n) for n in counts])
        totals *= 1.0 if class_weights is None else np.array(class_weights)
        weight, center = float(totals.sum() if totals.size else known.n_samples), np.zeros(len(D))
    else:
        totals, weight = V[-1].copy(), float(S[-1, -1])
        n, s = weight or 1.0, S[:-1, -1].copy()  # 0 if all classes have the weight 0
        S, V, D = S[:-1, :-1] - np.outer(s, s / n), V[:-1] - np.outer(s / n, totals), D[:-1]
        center = m[:-1] * steps[:-1] + s / n
    return Moments(known.n_samples, known.counts, weight, totals, center, S, V, D, ridge.is_free)


def in_floats(S: Sums, V: Sums, m: NDArray[np.int64] | None) -> tuple[Floats, Floats]:
    """Σωφφᵀ and Σωφrᵀ, in steps, counted from m where it is given."""
    if m is not None:
        S, V = shifted(S, V, m)
    return S.astype(np.float64), V.astype(np.float64)
