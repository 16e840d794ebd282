"""The estimators, solvers and feature maps that the package checks itself with.

    python tests/ours.py --minutes 5

runs all checks of all of them, with one seed after another, at least once; it prints what failed
and what to repeat it with, and ends with status 1 if anything did.
"""

import argparse
import sys
import time
from itertools import count, product
from unittest import SkipTest

from traceless.checks import estimator_checks, feature_map_checks
from traceless.estimators.lssvm import LSSVC, LSSVR
from traceless.estimators.path_one_class import PathOneClass
from traceless.estimators.path_svc import PathSVC
from traceless.estimators.path_svr import PathSVR
from traceless.estimators.sliding_window import SlidingWindow
from traceless.features import Linear, Number, Polynomial, RandomFourier, RandomLayer, Table

_SEVERAL = [2**-10, 2**-14, 2**-20]  # one grid for each of three columns
NUMBERS = [Number("a", shift=0.5, scale=2.0), Number("b", required=True), Number("c")]


def feature_maps():
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
    yield Table()
    yield Table(NUMBERS, resolution=2**-12)
    yield RandomFourier(30, gamma=0.1, table=Table(NUMBERS))
    yield Polynomial(table=Table(NUMBERS))


def estimators():
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


def on_every_map():
    """Classifiers and regressors with each solver and each map."""
    for feature_map, solver in product(feature_maps(), ("cholesky", "woodbury")):
        yield LSSVC(feature_map, solver=solver)
        yield LSSVR(feature_map, solver=solver)


def checks(seed):
    for one in (*estimators(), *on_every_map()):
        yield from estimator_checks(one, seed=seed)
    for one in feature_maps():
        yield from feature_map_checks(one, seed=seed)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    asked = parser.parse_args()
    end, failed = time.monotonic() + 60 * asked.minutes, 0
    for seed in count(asked.seed):
        for check in checks(seed):
            try:
                check()
            except SkipTest:
                pass
            except Exception as error:
                failed += 1
                sys.stdout.write(f"{type(error).__name__}: {error} {error.__notes__}\n")
        if time.monotonic() > end:
            break
    sys.stdout.write(f"{failed} checks failed\n")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
