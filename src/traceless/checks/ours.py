"""The estimators, solvers and feature maps that the package checks itself with."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from traceless.estimators.lssvm import LSSVC, LSSVR
from traceless.estimators.path_one_class import PathOneClass
from traceless.estimators.path_svc import PathSVC
from traceless.estimators.path_svr import PathSVR
from traceless.estimators.sliding_window import SlidingWindow
from traceless.features import FeatureMap, Linear, Polynomial, RandomFourier, RandomLayer

_SEVERAL = [2**-10, 2**-14, 2**-20]  # one grid for each of three columns


def feature_maps() -> Iterator[FeatureMap]:
    """Each map, for rows of three columns."""
    yield Linear()
    yield Linear(bias=False, resolution=_SEVERAL)
    yield Polynomial(degree=2)
    yield Polynomial(degree=3, gamma=0.5, coef0=0.0, resolution=2**-10)
    yield RandomFourier(50, gamma=0.1, random_state=3)
    yield RandomFourier(3, resolution=_SEVERAL, input_resolution=_SEVERAL, random_state=5)
    yield RandomLayer(40, random_state=1)
    yield RandomLayer(40, activation="tanh", bias=False)
    yield RandomLayer(40, activation="relu")
    yield RandomLayer(40, activation="sine", scale=0.5)
    yield RandomLayer(3, resolution=_SEVERAL, input_resolution=_SEVERAL)


def estimators() -> Iterator[Any]:
    """One of each kind: solvers, class weights, strategies, windows that are full and not."""
    yield LSSVC()
    yield LSSVR(RandomFourier(20))
    yield LSSVC(RandomFourier(20), class_weight="balanced")
    yield LSSVC(class_weight="golden", weighting="one_vs_rest")
    yield LSSVC(solver="woodbury")
    yield LSSVR(RandomFourier(40), solver="woodbury")
    yield LSSVC(guard=True, fingerprint=True)
    yield LSSVR(guard=True, fingerprint=True, solver="woodbury")
    yield PathSVC(C=3.0, gamma=0.5)
    yield PathSVC(kernel="linear", strategy="ovr", class_weight="balanced")
    yield PathSVR(C=3.0, gamma=0.5)
    yield PathSVR(kernel="linear", epsilon=0.0)
    yield PathOneClass(nu=0.2, gamma=0.5)
    yield SlidingWindow(LSSVC(), size=7)
    yield SlidingWindow(LSSVR(solver="woodbury"), size=100)
    yield SlidingWindow(PathSVC(C=3.0, gamma=0.5), size=100)
    yield SlidingWindow(PathOneClass(nu=0.2, gamma=0.5), size=20)


def on_every_map() -> Iterator[Any]:
    """Classifiers and regressors with each solver and each map."""
    for feature_map, solver in product(feature_maps(), ("cholesky", "woodbury")):
        yield LSSVC(feature_map, solver=solver)
        yield LSSVR(feature_map, solver=solver)
