"""Class weights, taken from the counts when knowledge is solved (Zhu et al. 2018).

With M_c = Σφφᵀ and v_c = Σφ over the rows of class c, weights ω_c that all problems share
need one matrix,

    (ρI + Σ_c ω_c M_c) w_k = Σ_c ω_c y_ck v_c,     y_ck = 1 if c = k, else -1

and weights of each one-vs-rest problem (σ⁺ for class k, σ⁻ for the rest) one per class:

    (ρI + σ⁺ M_k + σ⁻ Σ_{c≠k} M_c) w_k = σ⁺ v_k - σ⁻ Σ_{c≠k} v_c

Weights are functions of the counts n_c of K classes, n rows in all (where rows have weights
of their own, a row of weight 2 counts as two):

    "balanced"  n / (K n_c)
    "inverse"   1 / n_c                                          W1 of weighted ELM
    "golden"    0.618 / n_c if n_c is above the mean, else 1 / n_c     W2

They are float64 numbers, and the solution is correctly rounded for exactly these numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from traceless.exceptions import RangeError
from traceless.knowledge.responses import Label

Weights = tuple[tuple[float, ...], ...]  # one per class; or, per problem, (σ⁻, σ⁺)
Counts = Sequence[Fraction]
Coding = Callable[[Any], Any]  # responses to right-hand sides, linear: ±1 coding for classes

SCOPES = ("shared", "one_vs_rest")


def _balanced(counts: Counts) -> list[float]:
    total = sum(counts)
    return [float(total / (len(counts) * n)) for n in counts]  # rounded once


def _inverse(counts: Counts) -> list[float]:
    return [float(1 / n) for n in counts]


def _golden(counts: Counts) -> list[float]:
    total = sum(counts)
    return [(0.618 if len(counts) * n > total else 1.0) / float(n) for n in counts]


_RULES = {"balanced": _balanced, "inverse": _inverse, "golden": _golden}


def class_weights(rule: Any, scope: str, labels: Sequence[Label], counts: Counts) -> Weights | None:
    """The weights that a rule gives to these counts; None where all weigh the same.

    Parameters
    ----------
    rule : None, "balanced", "inverse", "golden", mapping of labels, or callable of counts
    scope : {"shared", "one_vs_rest"}
    labels, counts : sequences of length K

    Returns
    -------
    tuple
        One tuple of K weights that all problems share (those of a mapping always are), or K
        pairs (σ⁻, σ⁺).
    """
    if scope not in SCOPES:
        raise ValueError(f"weighting must be 'shared' or 'one_vs_rest', got {scope!r}.")
    if rule is None:
        return None
    if isinstance(rule, Mapping):
        return (_checked([rule.get(label, 1.0) for label in labels], len(labels)),)
    if scope == "shared" or len(labels) <= 2:
        return (_by_rule(rule, counts),)
    n = sum(counts)
    return tuple(_by_rule(rule, (n - n_k, n_k)) for n_k in counts)


def shared_weights(weights: Weights | None) -> tuple[float, ...] | None:
    """Class weights that all problems share; raises if each has its own."""
    if weights is not None and len(weights) > 1:
        raise ValueError(
            "weighting='one_vs_rest' gives each class a matrix of its own, so there is no one "
            "covariance of the rows. Use weighting='shared'."
        )
    return None if weights is None else weights[0]


def _by_rule(rule: Any, counts: Counts) -> tuple[float, ...]:
    if isinstance(rule, str) and rule in _RULES:
        return _checked(_RULES[rule](counts), len(counts))
    if callable(rule):
        return _checked(rule(np.array([float(n) for n in counts])), len(counts))
    raise ValueError(
        "class_weight must be None, 'balanced', 'inverse', 'golden', a dict of labels, or a "
        f"callable of the counts, got {rule!r}."
    )


def _checked(weights: Any, n: int) -> tuple[float, ...]:
    """As float64; finite, not negative, and of a size that exact sums allow."""
    values = np.asarray(weights, dtype=np.float64)
    if values.shape != (n,) or not np.all((values >= 0) & (values < np.inf)):
        raise ValueError(
            f"Class weights must be {n} finite numbers ≥ 0, one for each class, got {weights!r}."
        )
    used = values[values > 0]
    if used.size and not (used.min() > 2.0**-100 and used.max() < 2.0**100):
        raise RangeError(
            "Class weights must be 0 or between 1e-30 and 1e30, got "
            f"{used.min():g} to {used.max():g}. Multiply all of them, and rho, by one number."
        )
    return tuple(values.tolist())
