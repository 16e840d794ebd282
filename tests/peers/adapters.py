"""Our estimators under the names and parameters of scikit-learn's.

`SVC` is a PathSVC, `Ridge` an LSSVR and `RidgeClassifier` an LSSVC. What has a counterpart is
passed on (alpha is rho, fit_intercept the constant feature; nothing is standardised), everything
else is kept for `get_params` and has no effect. Grids are so fine that rounding to them is far
below most tolerances of the tests. The functions for cross-validation are ours for estimators of
ours, else scikit-learn's.
"""

from contextlib import ExitStack
from functools import wraps
from importlib import import_module
from inspect import signature
from types import ModuleType, SimpleNamespace
from unittest.mock import patch

import sklearn.linear_model
import sklearn.model_selection
import sklearn.svm

from traceless import LSSVC, LSSVR, PathSVC, model_selection
from traceless.features import Linear

FINE = 2.0**-32


class Used:
    """How often something of ours was used."""

    count = 0


class Adapter:
    """Parameters of theirs outside, of ours inside."""

    def __init__(self, **theirs):
        Used.count += 1
        self._theirs = {k: p.default for k, p in self._signature().items()} | theirs
        unknown = set(theirs) - set(self._signature())
        if unknown:
            raise TypeError(f"{type(self).__name__} has no parameter {unknown.pop()!r}")
        super().__init__(**self._ours(**self._theirs))

    @classmethod
    def _signature(cls):
        return signature(cls.theirs).parameters

    def get_params(self, deep=True):  # noqa: ARG002
        return dict(self._theirs)

    def set_params(self, **changes):
        Adapter.__init__(self, **self._theirs | changes)
        return self

    def fit(self, *args, **kwargs):
        Used.count += 1
        return super().fit(*args, **kwargs)

    def __getattr__(self, name):
        if name != "_theirs" and name in self.__dict__.get("_theirs", ()):
            return self._theirs[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


class SVC(Adapter, PathSVC):
    theirs = sklearn.svm.SVC

    def _ours(self, **theirs):
        names = (
            "C kernel gamma degree coef0 class_weight decision_function_shape break_ties verbose "
            "cache_size"
        )
        return {name: theirs[name] for name in names.split()}


class Ridge(Adapter, LSSVR):
    theirs = sklearn.linear_model.Ridge

    def __init__(self, alpha=1.0, **theirs):
        super().__init__(alpha=alpha, **theirs)

    def _ours(self, alpha, fit_intercept, **_):
        grid = Linear(bias=fit_intercept, resolution=FINE)
        return {"rho": alpha, "standardize": False, "feature_map": grid, "target_resolution": FINE}


class RidgeClassifier(Adapter, LSSVC):
    theirs = sklearn.linear_model.RidgeClassifier

    def __init__(self, alpha=1.0, **theirs):
        super().__init__(alpha=alpha, **theirs)

    def _ours(self, alpha, fit_intercept, class_weight, **_):
        grid = Linear(bias=fit_intercept, resolution=FINE)
        return {
            "rho": alpha,
            "standardize": False,
            "feature_map": grid,
            "class_weight": class_weight,
        }


def dispatched(ours, theirs):
    @wraps(theirs)
    def function(estimator, *args, **kwargs):
        if isinstance(estimator, (LSSVC, LSSVR, PathSVC)):
            Used.count += 1
            return ours(estimator, *args, **kwargs)
        return theirs(estimator, *args, **kwargs)

    return function


def imported(name):
    """A test module of scikit-learn, made to use ours; all others go on with theirs."""
    places = {
        sklearn.svm: {"SVC": SVC},
        sklearn.linear_model: {"Ridge": Ridge, "RidgeClassifier": RidgeClassifier},
        sklearn.model_selection: {
            name: dispatched(getattr(model_selection, name), getattr(sklearn.model_selection, name))
            for name in ("cross_val_predict", "cross_val_score", "cross_validate")
        },
    }
    with ExitStack() as stack:
        for place, ours in places.items():
            stack.enter_context(patch.multiple(place, **ours))
        module = import_module(name)
    for label, value in list(vars(module).items()):
        if isinstance(value, ModuleType) and value in places:  # such as svm in svm.SVC
            setattr(module, label, SimpleNamespace(**vars(value) | places[value]))
    return module
