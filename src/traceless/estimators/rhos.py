"""One ρ for all targets, or one for each.

    (ρ_k I + Σωφφᵀ) w_k = Σωφy_k

Targets with equal ρ share a matrix. Single-label classifiers have classes that come and go, so
theirs is one number: ``rhos(rho, 1)``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from traceless.parameters import POSITIVE, Constraint, positive


def rhos(rho: Any, n_targets: int) -> tuple[float, ...]:
    """The ρ of each target, or of each label of a multi-label classifier.

    Parameters
    ----------
    rho : float or sequence of n_targets floats
        Positive and finite.
    n_targets : int

    Raises
    ------
    ValueError
        If a number is not positive and finite, or there are not as many as targets.
    """
    if not _is_sequence(rho):
        return (positive("rho", rho),) * n_targets
    found = tuple([positive(f"rho[{k}]", value) for k, value in enumerate(rho)])
    if len(found) != n_targets:
        what = "is one target or label" if n_targets == 1 else f"are {n_targets} targets or labels"
        raise ValueError(
            f"rho has {len(found)} numbers, and there {what}: give one number, or one for each."
        )
    return found


def _is_sequence(rho: Any) -> bool:
    return isinstance(rho, list | tuple) or (isinstance(rho, np.ndarray) and rho.ndim == 1)


def _all_positive(rho: Any) -> bool:
    """Whether a parameter is a sequence of numbers that ρ may be."""
    several = _is_sequence(rho) and len(rho) > 0
    return several and all(not isinstance(v, bool) and POSITIVE.tests[0](v) for v in rho)


RHOS = POSITIVE | Constraint("a sequence of them, one for each target", (_all_positive,))
