"""Learn, merge, forget, and prove it, on the digits that ship with scikit-learn.

make demo        or        python examples/demo.py [--out FOLDER]
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.kernel_approximation import RBFSampler
from sklearn.model_selection import train_test_split

from traceless import LSSVC
from traceless.arithmetic.core import COMPILED, FOR_SPEED
from traceless.arithmetic.integers import Floats
from traceless.features import RandomFourier

GAMMA = 0.0004


def new_model() -> LSSVC:
    return LSSVC(RandomFourier(300, gamma=GAMMA, random_state=0))


class FloatSums:
    """What one would write without traceless: scikit-learn's features, running sums in float64."""

    def __init__(self) -> None:
        self.features = RBFSampler(n_components=300, gamma=GAMMA, random_state=0)
        self.S, self.Q = np.zeros((300, 300)), np.zeros((300, 10))

    def change(self, X: Floats, y: Any, sign: int) -> None:
        """Add rows to the sums, or take them out."""
        F = self.features.fit(X).transform(X)
        self.S += sign * F.T @ F
        self.Q += sign * F.T @ np.where(y[:, None] == np.arange(10), 1.0, -1.0)

    def weights(self) -> Any:
        """The coefficients that these sums give."""
        return np.linalg.solve(self.S + 0.1 * np.eye(len(self.S)), self.Q)


def stages(X: Floats, y: Any) -> list[tuple[str, int, Any, Any]]:
    """(what happens, +1 learn or -1 forget or 0 merge, rows, labels) in order."""
    rng = np.random.default_rng(0)
    site, ours = np.arange(len(X)) % 3 == 0, np.arange(len(X)) % 3 > 0
    wrong = rng.choice(np.flatnonzero(ours), 600, replace=False)
    bad_labels = (y[wrong] + 1) % 10
    person = np.flatnonzero(ours)[::8]
    out = []
    for a in range(0, 10, 2):
        rows = np.flatnonzero(ours & ((y == a) | (y == a + 1)))
        out.append((f"learn digits {a} and {a + 1}", 1, rows, y[rows]))
    out.append(("merge another site's model", 0, np.flatnonzero(site), y[site]))
    out.append((f"learn {len(wrong)} mislabelled rows", 1, wrong, bad_labels))
    out.append(("forget them again", -1, wrong, bad_labels))
    out.append((f"forget one person's {len(person)} rows", -1, person, y[person]))
    return out


def run() -> list[dict[str, Any]]:
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, random_state=0)
    model, floats = new_model(), FloatSums()
    held: list[tuple[int, int]] = []
    history = []
    for what, sign, rows, labels in stages(X, y):
        start = time.perf_counter()
        if sign > 0:
            model.partial_fit(X[rows], labels)
        elif sign < 0:
            model.forget(X[rows], labels)
        else:
            model.merge(new_model().fit(X[rows], labels).knowledge_)
        seconds = time.perf_counter() - start
        pairs = list(zip(rows.tolist(), labels.tolist(), strict=True))
        if sign < 0:
            for pair in pairs:
                held.remove(pair)
        else:
            held += pairs
        index, target = (np.array(v) for v in zip(*held, strict=True))
        fresh = new_model().fit(X[index], target)
        floats.change(X[rows], labels, sign or 1)
        refit = FloatSums()
        refit.change(X[index], target, 1)
        residue = np.abs(floats.weights() - refit.weights()).max()
        history.append(
            {
                "what": what,
                "rows": model.n_samples_,
                "accuracy": model.score(X_test, y_test),
                "digest": model.digest(),
                "equal": model.digest() == fresh.digest(),
                "difference": np.abs(model.feature_coef_ - fresh.feature_coef_).max(),
                "residue": residue,
                "seconds": seconds,
            }
        )
        report(history[-1], first=len(history) == 1)
    return history


def report(step: dict[str, Any], first: bool) -> None:
    if first:
        print(f"{'':34} {'rows':>5} {'accuracy':>9}   {'digest':<14} refit from scratch")
    proof = "same digest" if step["equal"] else "DIFFERENT DIGEST"
    print(
        f"{step['what']:<34} {step['rows']:>5} {step['accuracy']:>9.1%}   "
        f"{step['digest'][:12]}   {proof}, coefficients differ by {step['difference']:g}"
    )


def picture(history: list[dict[str, Any]], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    blue, orange, grey = "#1b6ca8", "#d95f0e", "0.45"
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(12, 4.6), layout="constrained", sharey=True, width_ratios=[1.25, 1]
    )
    place = np.arange(len(history))[::-1]
    accuracy = np.array([step["accuracy"] for step in history])
    left.plot(accuracy, place, "o-", color=blue, lw=2, ms=8)
    for p, step in zip(place, history, strict=True):
        left.annotate(
            f"{step['accuracy']:.1%}  ·  {step['rows']} rows",
            (step["accuracy"], p),
            xytext=(10, 5),
            textcoords="offset points",
            fontsize=8.5,
            color=grey,
        )
    left.set_yticks(place, [step["what"] for step in history])
    left.set(
        xlim=(0.15, 1.2),
        xlabel="accuracy on rows never learned",
        title="A model that learns and forgets",
    )
    left.set_xticks(np.arange(0.2, 1.01, 0.2), [f"{v:.0%}" for v in np.arange(0.2, 1.01, 0.2)])
    zero = 1e-16  # where nothing is drawn on the logarithmic axis
    residue = np.array([max(step["residue"], zero) for step in history])
    right.hlines(place, zero, residue, color=orange, lw=2)
    right.plot(residue, place, "o", color=orange, ms=7, label="running sums in float64")
    right.plot([zero] * len(place), place, "D", color=blue, ms=7, label="traceless: exactly 0")
    for p, step in zip(place, history, strict=True):
        right.annotate(
            f"{step['residue']:.0e}" if step["residue"] else "0",
            (max(step["residue"], zero), p),
            xytext=(10, -3),
            textcoords="offset points",
            fontsize=8.5,
            color=grey,
        )
    right.set(
        xscale="log",
        xlim=(4e-17, 1e-8),
        xlabel="largest difference to the coefficients of a refit",
        title="What is left behind",
    )
    right.set_xticks([zero, 1e-14, 1e-12, 1e-10], ["0", "1e-14", "1e-12", "1e-10"])
    right.minorticks_off()
    right.legend(loc="upper right", frameon=False, fontsize=9)
    for axis in (left, right):
        axis.grid(axis="x", alpha=0.25)
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=Path(), help="folder for demo.png")
    folder = parser.parse_args().out
    print(f"{new_model()}\n")
    history = run()
    picture(history, folder / "demo.png")
    proven = sum(step["equal"] for step in history)
    print(
        f"\n{proven} of {len(history)} times the digest was that of a fit from scratch on the rows "
        f"held then: no trace is left of those forgotten.\nPicture: {folder / 'demo.png'}"
    )
    if not COMPILED:
        print(f"\n{FOR_SPEED}")


if __name__ == "__main__":
    main()
