"""Stand-ins: models that know what to say of the rows held out before they are made.

A scorer asks a model about the held-out rows and nothing else; these answers are at hand
in closed form. Should it ask for anything else, the stand-in becomes the model it stands for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats
from traceless.estimators.least_squares import LeastSquares
from traceless.knowledge.sums import Knowledge


class StandIns:
    """Makes stand-ins for the models of folds that all have the classes of `total`."""

    def __init__(self, probe: LeastSquares, total: Knowledge) -> None:
        mixin = _HeldOutClassifier if total.task == "classification" else _HeldOut
        kind = type(probe)
        self._kind: Any = type(f"HeldOut{kind.__name__}", (mixin, kind), {})
        self._shared = {**vars(probe), "_labels": np.array(total.responses)}

    def __call__(self, X: Any, scores: Floats, make: Callable[[], LeastSquares]) -> Any:
        """One that gives these scores to X; `make` makes the model that it stands for."""
        model = self._kind.__new__(self._kind)
        model.__dict__.update(self._shared, _X=X, _scores=scores, _make=make)
        return model


class _HeldOut(LeastSquares):
    _X: Any
    _scores: Floats
    _make: Callable[[], LeastSquares] | None

    def _decision(self, X: Any) -> Floats:
        return self._scores if X is self._X else super()._decision(X)

    def _held(self) -> Any:
        if self._make is not None:
            self.__dict__.update(vars(self._make()), _make=None)
        return super()._held()

    def __sklearn_is_fitted__(self) -> bool:
        return True


class _HeldOutClassifier(_HeldOut):
    _labels: NDArray[Any]

    @property
    def classes_(self) -> NDArray[Any]:
        return self._labels
