"""LPSVM, ESVM and wESVM: the machines of Zhu et al. 2018, under their names.

All three minimise (eq. 5 of the paper, with weights ω_c of the classes)

    ½ (‖w‖² + b²) + C/2 Σ_n ω_c(n) ξ_n²,     y_n (φ(x_n)·w - b) + ξ_n = 1

whose solution is (I/C + FᵀΩF) [w; b] = FᵀΩDe with F = [Φ, -e] (eq. 9). That is `LSSVC` with
ρ = 1/C and a constant feature: it has 1 where the paper has -1, so b = -``intercept_``.

    LPSVM   φ(x) = x             ω = 1
    ESVM    φ(x) = g(W [x; 1])   ω = 1
    wESVM   φ(x) = g(W [x; 1])   ω_c a function of the counts

What they return learns, forgets and merges as every `LSSVC` does.
"""

from __future__ import annotations

from typing import Any

from traceless.estimators.lssvm import LSSVC
from traceless.features import Linear, RandomLayer
from traceless.parameters import positive

__all__ = ["ESVM", "LPSVM", "wESVM"]


def LPSVM(C: float = 1.0, **parameters: Any) -> LSSVC:  # noqa: N802
    """Linear proximal SVM (Fung and Mangasarian 2001; Algorithm 1 of Zhu et al. 2018).

    Parameters
    ----------
    C : float, default=1.0
        Weight of the errors against the margin, 1/ρ.
    **parameters
        Further parameters of `LSSVC`.

    Returns
    -------
    LSSVC
        With ``coef_`` the w and ``-intercept_`` the b of the paper.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from traceless import LPSVM
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = X / X.max(axis=0)
    >>> LPSVM(C=10.0).fit(X, y).score(X, y) > 0.95
    True
    """
    return _machine(Linear(), C, parameters)


def ESVM(  # noqa: N802
    n_units: int = 100,
    C: float = 1.0,
    *,
    activation: str = "sigmoid",
    scale: float = 1.0,
    random_state: int = 0,
    **parameters: Any,
) -> LSSVC:
    """Extreme SVM: a linear proximal SVM behind a random layer (Liu, He and Shi 2008).

    Parameters
    ----------
    n_units : int, default=100
        Number of hidden units.
    C : float, default=1.0
        Weight of the errors against the margin, 1/ρ.
    activation : {"sigmoid", "tanh", "relu", "sine"}, default="sigmoid"
        g, computed the same on every machine and rounded to the grid.
    scale : float, default=1.0
        W is uniform in ±scale.
    random_state : int, default=0
        Which W. Models that are to be merged need the same.
    **parameters
        Further parameters of `LSSVC`.

    Returns
    -------
    LSSVC

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from traceless import ESVM
    >>> X, y = make_moons(200, noise=0.1, random_state=0)
    >>> ESVM(50, C=1000.0, scale=3.0).fit(X, y).score(X, y)
    1.0
    """
    layer = RandomLayer(n_units, activation=activation, scale=scale, random_state=random_state)
    return _machine(layer, C, parameters)


def wESVM(  # noqa: N802
    n_units: int = 100,
    C: float = 1.0,
    *,
    class_weight: Any = "balanced",
    **parameters: Any,
) -> LSSVC:
    """Weighted extreme SVM (Zhu et al. 2018): classes weigh what their counts say.

    Parameters
    ----------
    n_units, C, activation, scale, random_state
        As for `ESVM`.
    class_weight : default="balanced"
        As for `LSSVC`. With "inverse" and "golden" the weights of all rows add up to about
        the number of classes, so that C must be larger by the number of rows per class.
    **parameters
        Further parameters of `LSSVC`.

    Returns
    -------
    LSSVC

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.metrics import balanced_accuracy_score
    >>> from traceless import ESVM, wESVM
    >>> X, y = make_classification(2000, weights=[0.95], class_sep=0.5, random_state=1)
    >>> for machine in (ESVM(50), wESVM(50)):
    ...     print(round(balanced_accuracy_score(y, machine.fit(X, y).predict(X)), 1))
    0.5
    0.8
    """
    return ESVM(n_units, C, class_weight=class_weight, **parameters)


def _machine(feature_map: Linear | RandomLayer, C: float, parameters: dict[str, Any]) -> LSSVC:
    taken = sorted({"feature_map", "rho"} & set(parameters))
    if taken:
        raise TypeError(
            f"{' and '.join(taken)} is what C and the layer stand for here: use LSSVC to set it."
        )
    paper = {"free_intercept": False, "standardize": False}  # ½b² is part of the papers' penalty
    return LSSVC(feature_map, rho=1.0 / positive("C", C), **(paper | parameters))
