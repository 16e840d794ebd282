"""Cross-validation with scikit-learn's signatures and scikit-learn's numbers.

Lee et al. 2019, section 1.1: instead of learning k - 1 folds k times, learn all of them once
and forget one at a time.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config, model_selection
from sklearn.metrics import check_scoring

from traceless.arithmetic.integers import Floats
from traceless.estimators.least_squares import LeastSquares
from traceless.estimators.path_machine import PathMachine
from traceless.model_selection.folds import Folds, Path
from traceless.model_selection.least_squares_folds import LeastSquaresFolds
from traceless.model_selection.path_folds import PathFolds
from traceless.model_selection.splits import is_partition
from traceless.progress import progress


def cross_validate(
    estimator: LeastSquares | PathMachine,
    X: Any,
    y: Any = None,
    *,
    groups: Any = None,
    scoring: Any = None,
    cv: Any = None,
    n_jobs: Any = None,  # noqa: ARG001
    verbose: int = 0,
    params: Mapping[str, Any] | None = None,
    pre_dispatch: Any = "2*n_jobs",  # noqa: ARG001
    return_train_score: bool = False,
    return_estimator: bool = False,
    return_indices: bool = False,
    error_score: Any = np.nan,
    path: Path = "auto",
) -> dict[str, Any]:
    """Scores, times and models of a cross-validation, as `sklearn.model_selection` has them.

    The numbers are those of scikit-learn's function for the same estimator: to the bit by
    ``path="subtract"``, within 1e-10 by ``path="hat"``.

    Parameters
    ----------
    estimator : LSSVC, LSSVR, or one of the path family
        It is not changed, and what it has learned before plays no part.
    X, y
        The rows.
    groups : array-like of shape (n_samples,), optional
        For the splitter.
    scoring : str, callable, list, tuple, set or dict, optional
        As in scikit-learn.
    cv : int, splitter or iterable of (train, test), optional
        As in scikit-learn.
    n_jobs, pre_dispatch
        Without effect: the matrix products use all cores already.
    verbose : int, default=0
        If not 0, show progress on standard error after two seconds.
    params : dict, optional
        ``{"sample_weight": ...}``: weights for training, as in scikit-learn not for scoring.
    return_train_score, return_estimator, return_indices : bool, default=False
        As in scikit-learn.
    error_score : "raise" or number, default=nan
        The score of a fold that cannot be solved or scored. What is wrong with the rows
        themselves is always raised.
    path : {"auto", "subtract", "hat"}, default="auto"
        "subtract" makes each fold's model from the knowledge of all rows less that of the
        fold. "hat" computes only the held-out scores, in closed form, from the model of all
        rows; folds for which float64 is not enough, or that hold all of a class, are subtracted
        all the same. "auto" takes "hat" for folds with fewer rows than there are features, unless
        the models are asked for. `PathSVC` has "subtract" only: one model is fitted, and each
        fold's is reached from it along a path; with gamma="scale", which looks at the training
        rows, each fold is fitted anew.

    Returns
    -------
    dict of arrays
        ``test_score`` (or one for each metric), ``fit_time`` (with an equal share of what is
        done once for all folds), ``score_time``, and what the ``return_`` options ask for.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from traceless import LSSVC
    >>> from traceless.model_selection import cross_validate
    >>> X, y = load_iris(return_X_y=True)
    >>> result = cross_validate(LSSVC(), X, y, cv=3, return_estimator=True)
    >>> result["test_score"].round(2)
    array([0.8 , 0.84, 0.76])
    >>> [model.n_samples_ for model in result["estimator"]]
    [100, 100, 100]
    """
    keep_train = return_train_score or return_indices
    options = {"needs_models": return_train_score or return_estimator, "keep_train": keep_train}
    start = time.perf_counter()
    folds = _folds(estimator, (X, y, groups), cv, params, path, verbose, **options)
    shared_time = time.perf_counter() - start
    numbers = iter(progress(range(len(folds.splits)), "cross-validating", bool(verbose)))
    result: dict[str, Any] = model_selection.cross_validate(
        folds.as_estimator(numbers),
        X,
        y,
        scoring=scoring,
        # Models are not fitted to the training rows, so one row does where no score needs more.
        cv=[(s.train if keep_train else s.test[:1], s.test) for s in folds.splits],
        n_jobs=1,
        return_train_score=return_train_score,
        return_estimator=return_estimator,
        return_indices=return_indices,
        error_score=error_score,
    )
    next(numbers, None)  # ends the line of progress
    result["fit_time"] += shared_time / len(folds.splits)
    return result


def cross_val_score(
    estimator: LeastSquares | PathMachine,
    X: Any,
    y: Any = None,
    *,
    groups: Any = None,
    scoring: Any = None,
    cv: Any = None,
    n_jobs: Any = None,
    verbose: int = 0,
    params: Mapping[str, Any] | None = None,
    pre_dispatch: Any = "2*n_jobs",
    error_score: Any = np.nan,
    path: Path = "auto",
) -> Floats:
    """The score of each fold; parameters as in `cross_validate`.

    Returns
    -------
    ndarray of shape (n_splits,)

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from traceless import LSSVR
    >>> from traceless.features import Polynomial
    >>> from traceless.model_selection import cross_val_score
    >>> X, y = load_diabetes(return_X_y=True)
    >>> cross_val_score(LSSVR(Polynomial(2), rho=30.0), X, y, cv=3).round(2)
    array([0.47, 0.46, 0.49])
    """
    scorer = check_scoring(estimator, scoring=scoring)
    result = cross_validate(
        estimator,
        X,
        y,
        groups=groups,
        scoring={"score": scorer},
        cv=cv,
        n_jobs=n_jobs,
        verbose=verbose,
        params=params,
        pre_dispatch=pre_dispatch,
        error_score=error_score,
        path=path,
    )
    return np.asarray(result["test_score"])


def cross_val_predict(
    estimator: LeastSquares | PathMachine,
    X: Any,
    y: Any = None,
    *,
    groups: Any = None,
    cv: Any = None,
    n_jobs: Any = None,  # noqa: ARG001
    verbose: int = 0,
    params: Mapping[str, Any] | None = None,
    pre_dispatch: Any = "2*n_jobs",  # noqa: ARG001
    method: str = "predict",
    path: Path = "auto",
) -> NDArray[Any]:
    """The answer to each row by a model that has not seen its fold.

    Parameters are those of `cross_validate`, and

    Parameters
    ----------
    method : str, default="predict"
        Also "decision_function" and, of `LSSVC`, "predict_proba" and "predict_log_proba".

    Returns
    -------
    ndarray of shape (n_samples,) or (n_samples, n_classes or n_targets)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from traceless import LSSVC
    >>> from traceless.model_selection import cross_val_predict
    >>> X, y = load_iris(return_X_y=True)
    >>> scores = cross_val_predict(LSSVC(), X, y, cv=5, method="decision_function")
    >>> scores.shape
    (150, 3)
    """
    folds = _folds(estimator, (X, y, groups), cv, params, path, verbose)
    tests = [split.test for split in folds.splits]
    if not is_partition(tests, len(folds.y)):
        raise ValueError(
            "cross_val_predict only works for partitions: each row must be tested once, and "
            "once only. Use cross_validate for other splits."
        )
    out = [
        folds.answers(k, method)
        for k in progress(range(len(tests)), "cross-validating", bool(verbose))
    ]
    return np.asarray(np.concatenate(out)[np.argsort(np.concatenate(tests))])


def _folds(
    estimator: Any, rows: Any, cv: Any, params: Any, path: Path, verbose: int, **options: bool
) -> Folds:
    """The folds, with what is computed once for all of them."""
    weight = _sample_weight_of(params)
    if isinstance(estimator, PathMachine):
        return PathFolds(estimator, rows, cv, weight, path, **options)
    folds = LeastSquaresFolds(estimator, rows, cv, weight, path, **options)
    folds.known_scores = folds.held_out(verbose=bool(verbose))
    return folds


def _sample_weight_of(params: Mapping[str, Any] | None) -> Any:
    """The weights among the parameters of ``fit``; others are refused."""
    if get_config()["enable_metadata_routing"]:
        raise NotImplementedError(
            "Metadata routing is enabled, which these functions do not follow. Use "
            "sklearn.config_context(enable_metadata_routing=False), or scikit-learn's functions."
        )
    unknown = sorted(set(params or {}) - {"sample_weight"})
    if unknown:
        raise TypeError(f"params may hold sample_weight only, got {', '.join(unknown)}.")
    return (params or {}).get("sample_weight")
