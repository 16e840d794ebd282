"""What notebooks, Sphinx and `dir` see of the estimators."""

import inspect

import numpy as np
import pytest

from traceless import LSSVC, LSSVR, PathOneClass, PathSVC, PathSVR, SlidingWindow

X, Y = np.eye(6), np.arange(6) % 2
MAIN = LSSVC(), LSSVR(), PathSVC(), PathSVR(), PathOneClass(), SlidingWindow(LSSVC())


@pytest.mark.parametrize("model", MAIN, ids=lambda model: type(model).__name__)
def test_signatures_are_those_of_the_constructors(model):
    """Sphinx looks at `__signature__`, then at `__new__`, which takes anything."""
    kind = type(model)
    shown = [*vars(kind)["__signature__"].parameters.values()]
    assert shown == [*inspect.signature(kind.__init__).parameters.values()][1:]
    assert {parameter.name for parameter in shown} == {*model.get_params(deep=False)}
    assert inspect.signature(type("Own", (kind,), {})) == inspect.signature(kind)


@pytest.mark.parametrize("model", MAIN, ids=lambda model: type(model).__name__)
def test_names_are_listed_without_being_computed(model, monkeypatch):
    """Also those that would raise, whatever they raise; but no method that is not available."""

    class Watched(type(model)):
        @property
        def dual_coef_(self):
            raise ValueError("computed")

    watched = Watched(**model.get_params(deep=False)).fit(X, Y)
    names = dir(watched)
    assert {"fit", "update", "dual_coef_", "n_features_in_"} <= {*names}
    assert hasattr(watched, "predict_proba") == ("predict_proba" in names)


def test_methods_that_are_not_available_are_not_listed():
    assert "predict_proba" in dir(LSSVC().fit(X, Y))
    assert "predict_proba" not in dir(LSSVC().fit(X, np.eye(6, dtype=int)))  # several labels
    assert "digest" in dir(SlidingWindow(LSSVC()))
    assert "predict_proba" not in dir(SlidingWindow(LSSVR()))
