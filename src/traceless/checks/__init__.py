"""Checks of the promises, for any estimator and any feature map.

    from traceless.checks import check_estimator, check_feature_map

    check_estimator(MyClassifier())
    check_feature_map(MyMap(), n_features=4)

Both raise AssertionError with what was promised, what was found, and the seed to repeat it with.
`estimator_checks` and `feature_map_checks` give the single checks, each with a name, for pytest:

    @pytest.mark.parametrize("check", estimator_checks(MyClassifier()))
    def test_promises(check):
        check()

An estimator needs `fit`, `predict`, and `partial_fit` and `forget` (or `update`); it is asked for
`update`, `merge`, `digest`, `seal`, `decision_function`, `n_samples_`, `classes_` and
``sample_weight`` where it offers them. What is promised of it:

- updated equals refitted, to the bit, whatever was learned, forgotten or merged before;
- copies, pickles and files are the same model, and then one of their own;
- memory of the caller, mapped or read-only memory is never written to, nor relied upon later;
- threads see whole states, and writers wait for each other;
- what is refused, or fails at any line, leaves the model as it was.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import update_wrapper
from types import ModuleType
from typing import Any
from unittest import SkipTest

from traceless.checks import copies, failures, histories, maps, memory, threads
from traceless.checks.maps import MapTrial
from traceless.checks.trial import Trial
from traceless.exceptions import ResolutionWarning

__all__ = ["check_estimator", "check_feature_map", "estimator_checks", "feature_map_checks"]


def _checks_of(*modules: ModuleType) -> list[Callable[[Any], None]]:
    """The functions named check_... of some modules, in their order."""
    return [
        function
        for module in modules
        for name, function in vars(module).items()
        if name.startswith("check_")
    ]


_OF_ESTIMATORS = _checks_of(histories, copies, memory, failures, threads)
_OF_MAPS = _checks_of(maps)


def check_estimator(
    estimator: Any, *, n_features: int = 3, X: Any = None, seed: int = 0, n_histories: int = 3
) -> None:
    """Raise AssertionError unless an estimator keeps every promise that applies to it.

    Parameters
    ----------
    estimator : estimator
        It is cloned, and stays as it is.
    n_features : int, default=3
        Columns of the rows that are made up, multiples of 1/32 of a few units.
    X : array-like of shape (n_samples, n_features), optional
        Rows to use instead, for an estimator that takes only some. They must differ.
    seed : int, default=0
        Of everything that is random, except the order in which threads have their turns.
    n_histories : int, default=3
        How much is tried; each takes about as long again.

    Examples
    --------
    >>> from traceless import LSSVC
    >>> from traceless.checks import check_estimator
    >>> check_estimator(LSSVC(), n_histories=1)
    """
    options = {"n_features": n_features, "X": X, "seed": seed, "n_histories": n_histories}
    for check in estimator_checks(estimator, **options):
        with suppress(SkipTest):
            check()


def estimator_checks(
    estimator: Any, *, n_features: int = 3, X: Any = None, seed: int = 0, n_histories: int = 3
) -> Iterator[Callable[[], None]]:
    """The single checks of `check_estimator`, as functions without arguments, each with a name.

    A check of something that the estimator does not offer raises `unittest.SkipTest`.

    Parameters
    ----------
    estimator, n_features, X, seed, n_histories
        As for `check_estimator`.

    Yields
    ------
    callable
    """
    if not hasattr(estimator, "update") and not (
        hasattr(estimator, "partial_fit") and hasattr(estimator, "forget")
    ):
        raise TypeError(
            "These checks are of estimators that learn and forget: partial_fit(X, y) and "
            "forget(X, y), or update(add=(X, y), forget=(X, y)). "
            f"{type(estimator).__name__} has neither."
        )

    def start() -> Trial:
        return Trial(estimator, n_features=n_features, X=X, seed=seed, n_histories=n_histories)

    for check in _OF_ESTIMATORS:
        yield _named(check, start, estimator, seed)


def check_feature_map(
    feature_map: Any, n_features: int = 3, *, X: Any = None, seed: int = 0
) -> None:
    """Raise AssertionError unless a feature map keeps every promise.

    The codes of a row are integers, the same in any batch and any memory; they depend on the
    specification alone; and models with this map forget to the bit.

    Parameters
    ----------
    feature_map : FeatureMap
    n_features : int, default=3
        Columns of the rows that are made up, multiples of 1/32 of a few units.
    X : array-like of shape (n_samples, n_features), optional
        Rows to use instead, for a map that takes only some.
    seed : int, default=0

    Examples
    --------
    >>> from traceless.checks import check_feature_map
    >>> from traceless.features import RandomFourier
    >>> check_feature_map(RandomFourier(20), n_features=2)
    """
    for check in feature_map_checks(feature_map, n_features, X=X, seed=seed):
        check()


def feature_map_checks(
    feature_map: Any, n_features: int = 3, *, X: Any = None, seed: int = 0
) -> Iterator[Callable[[], None]]:
    """The single checks of `check_feature_map`, as functions without arguments that have a name.

    Parameters
    ----------
    feature_map, n_features, X, seed
        As for `check_feature_map`.

    Yields
    ------
    callable
    """

    def start() -> MapTrial:
        return MapTrial(feature_map, n_features=n_features, X=X, seed=seed)

    for check in _OF_MAPS:
        yield _named(check, start, feature_map, seed)


def _named(
    check: Callable[[Any], None], start: Callable[[], Any], thing: Any, seed: int
) -> Callable[[], None]:
    """A check of one estimator or map; its errors say how to repeat it."""

    def run() -> None:
        try:
            with warnings.catch_warnings():  # rows that are made up may not suit its grid
                warnings.simplefilter("ignore", ResolutionWarning)
                check(start())
        except Exception as error:
            error.add_note(f"in {check.__name__} of {thing!r} with seed={seed}")
            raise

    update_wrapper(run, check, assigned=("__name__", "__qualname__", "__doc__"))
    del run.__wrapped__  # type: ignore[attr-defined]
    return run
