"""Agents pass a model on, one round, and end with the model of all their rows, to the bit.

The first use that Lee et al. 2019 (section 1.1) and their poster propose: federated learning
goes round and round until its gradients converge; here every agent updates the model once with
rows that stay at home, and hands it on. Each agent knows two digits only.

python examples/agents_in_a_chain.py
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from traceless import LSSVC
from traceless.features import RandomFourier

AGENTS = ("Ada", "Ben", "Cleo", "Dan", "Eve")


def new_model() -> LSSVC:
    return LSSVC(RandomFourier(300, gamma=0.0004, random_state=0))


def main() -> None:
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, random_state=0)
    at_home = {name: y // 2 == k for k, name in enumerate(AGENTS)}

    print("agent   knows   rows   accuracy on all ten digits   digest of what is passed on")
    model = new_model()
    for k, (name, mine) in enumerate(at_home.items()):
        model.partial_fit(X[mine], y[mine])  # all that this agent does
        score = model.score(X_test, y_test)
        bar = "#" * round(20 * score)
        knows = f"{2 * k}, {2 * k + 1}"
        print(
            f"{name:<7} {knows:<7} {mine.sum():>4}   {score:6.1%} {bar:<21} {model.digest()[:12]}"
        )

    compare("one model of all rows, trained in one place", model, X, y)
    leaver = at_home["Cleo"]
    model.forget(X[leaver], y[leaver])
    compare("the same without Cleo, who withdraws her rows", model, X[~leaver], y[~leaver])


def compare(what: str, model: LSSVC, X: Any, y: Any) -> None:
    central = new_model().fit(X, y)
    same = model.digest() == central.digest() and np.array_equal(
        model.feature_coef_, central.feature_coef_
    )
    print(f"\n{what}:\n  {central.digest()[:12]}  {'the same bits' if same else 'DIFFERENT'}")
    print(f"  {model.digest()[:12]}  the agents' model")


if __name__ == "__main__":
    main()
