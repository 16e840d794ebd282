"""Ten-fold cross-validation by unlearning: scikit-learn's numbers to the bit, in less time.

The second use that Lee et al. 2019 (section 1.1) and their poster propose: learn all rows once,
then take each fold out again, instead of learning nine tenths of the rows ten times.

python examples/cross_validate_by_unlearning.py
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import numpy as np
from sklearn.datasets import load_digits, make_classification
from sklearn.model_selection import cross_val_score as learning_again

from traceless import LSSVC
from traceless.features import Linear, RandomFourier
from traceless.model_selection import cross_val_score as unlearning

ROUNDS = 3


def problems() -> dict[str, tuple[LSSVC, Any, Any]]:
    X, y = load_digits(return_X_y=True)
    wide = RandomFourier(300, gamma=0.0004, random_state=0)
    X_large, y_large = make_classification(20_000, 100, n_informative=20, random_state=0)
    return {
        "digits, 1797 rows, 300 random features": (LSSVC(wide), X, y),
        "20 000 rows of 100 numbers, linear": (LSSVC(Linear()), X_large, y_large),
    }


def main() -> None:
    print("Ten folds; medians of", ROUNDS, "rounds that take turns\n")
    for name, problem in problems().items():
        scores: dict[Any, Any] = {}
        seconds: dict[Any, list[float]] = {learning_again: [], unlearning: []}
        for _ in range(ROUNDS):
            for validate, times in seconds.items():
                start = time.perf_counter()
                scores[validate] = validate(*problem, cv=10)
                times.append(time.perf_counter() - start)
        report(
            name,
            scores[learning_again],
            scores[unlearning],
            *map(statistics.median, seconds.values()),
        )


def report(name: str, theirs: Any, ours: Any, slow: float, fast: float) -> None:
    same = "the same to the bit" if np.array_equal(theirs, ours) else "DIFFERENT"
    print(name)
    print(f"  learning again {slow:7.3f} s   mean accuracy {theirs.mean():.4f}")
    print(f"  unlearning     {fast:7.3f} s   mean accuracy {ours.mean():.4f}   scores: {same}")
    print(f"  {'faster by':<14} {slow / fast:7.1f} ×\n")


if __name__ == "__main__":
    main()
