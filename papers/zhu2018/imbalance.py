"""(b) Streams whose classes drift from balance to imbalance and back.

The common classes outnumber the rare ones by r at each stage, r going from 1 to its largest
value and back by equal factors. A model holds all stages so far, or the last three: older
ones are then taken out. Tested are G-mean, the geometric mean of the recalls of all classes,
and F, the harmonic mean of precision and recall: of the rare one of two classes, or the mean
over all classes of several. Test rows are balanced; for F they are weighted as the classes
of the stage are.

C is chosen for each rule on a stream of its own. Weights of "inverse" and "golden" add up to
about the number of classes however many rows there are, so C is multiplied by the number of
rows per class there (`strength`): "inverse" is then "balanced" but for rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from scipy.stats import gmean
from sklearn.datasets import make_classification
from sklearn.metrics import f1_score, recall_score

from papers.cost_model.costs import SCALE
from papers.datasets import Floats, Images, Labels
from papers.report import Plan
from papers.rows import Row, Rows
from papers.timing import shown
from papers.zhu2018.equality import coefficients
from traceless import LSSVC, Knowledge, wESVM

RULES = (None, "balanced", "inverse", "golden")
CS = (1e-4, 0.01, 1.0, 100.0, 1e4, 1e6)
HELD = ("all", "window")
WINDOW = 3  # stages held, where not all are
TUNING_SEED = 1000
TWO_CLASS_RATIO = 100.0
Rule = tuple[str | None, str]  # class_weight and weighting
Choice = dict[Rule, float]  # C of each rule


@dataclass(frozen=True)
class Stage:
    """Rows that arrive, and test rows with the weights of the stage."""

    X: Floats
    y: Labels
    X_test: Floats
    y_test: Labels
    test_weight: Floats
    ratio: float


def g_mean(y: Any, predicted: Any) -> float:
    """The geometric mean of the recalls of all classes.

    Examples
    --------
    >>> round(g_mean([0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 0]) ** 2, 3)  # 3/4 times 1/2
    0.375
    """
    return float(gmean(recall_score(y, predicted, average=None, zero_division=0.0)))


def f_measure(y: Any, predicted: Any, sample_weight: Any = None) -> float:
    """F of class 1 of two classes, or the mean of F over more classes."""
    average = "binary" if len(np.unique(y)) == 2 else "macro"
    return float(
        f1_score(y, predicted, average=average, sample_weight=sample_weight, zero_division=0.0)
    )


def ratios(stages: int, largest: float) -> list[float]:
    """From 1 to `largest` and back, by equal factors.

    Examples
    --------
    >>> [round(r, 6) for r in ratios(5, 100.0)]
    [1.0, 10.0, 100.0, 10.0, 1.0]
    """
    return [float(largest ** (1 - abs(2 * k / (stages - 1) - 1))) for k in range(stages)]


# --- streams -----------------------------------------------------------------------------------


def two_classes(plan: Plan, seed: int) -> list[Stage]:
    """Two overlapping classes of two clusters each, in ten dimensions; class 1 becomes rare."""
    enough = plan.drift * plan.stream_rows + 3_000
    clusters = {"n_features": 10, "n_informative": 4, "n_redundant": 0, "n_clusters_per_class": 2}
    X, y = make_classification(2 * enough, **clusters, class_sep=1.0, flip_y=0.0, random_state=seed)
    test = np.concatenate([np.flatnonzero(y == k)[-2_000:] for k in (0, 1)])
    rest = np.setdiff1d(np.arange(len(y)), test)
    wanted = ratios(plan.drift, TWO_CLASS_RATIO)
    return _stages((X[rest], y[rest], X[test], y[test]), [1], wanted, plan.stream_rows, seed)


def ten_digits(images: Images, plan: Plan, seed: int) -> list[Stage]:
    """Ten digits, of which 5 to 9 become rare."""
    data = images.X, images.digits, images.X_test[:2_000], images.digits_test[:2_000]
    wanted = ratios(plan.drift, plan.ratio)
    return _stages(data, range(5, 10), wanted, plan.digit_rows, seed)


def _stages(
    data: tuple[Floats, Labels, Floats, Labels],
    rare: Sequence[int],
    wanted: Sequence[float],
    n: int,
    seed: int,
) -> list[Stage]:
    """Rows drawn without putting back, at least one of each class in each stage."""
    X, y, X_test, y_test = data
    rng = np.random.default_rng(seed)
    pools = {int(k): iter(rng.permutation(np.flatnonzero(y == k))) for k in np.unique(y)}
    stages = []
    for ratio in wanted:
        share = {k: 1 / ratio if k in rare else 1.0 for k in pools}
        total = sum(share.values())
        counts = {k: max(1, round(n * share[k] / total)) for k in pools}
        taken = np.array([next(pools[k]) for k in pools for _ in range(counts[k])])
        weight = np.where(np.isin(y_test, rare), 1 / ratio, 1.0)
        stages.append(Stage(X[taken], y[taken], X_test, y_test, weight, ratio))
    return stages


# --- models --------------------------------------------------------------------------------------


def strength(C: float, rule: Rule, n: int, n_classes: int) -> float:
    """The C to set: multiplied by the rows per class where the weights add up to their number."""
    if rule[0] not in ("inverse", "golden"):
        return C
    return C * n / (2 if rule[1] == "one_vs_rest" else n_classes)


def held_at(stages: Sequence[Any], k: int, held: str) -> Sequence[Any]:
    """The stages that a model holds after stage k."""
    return stages[max(0, k + 1 - WINDOW) : k + 1] if held == "window" else stages[: k + 1]


def set_rule(model: LSSVC, rule: Rule, C: float) -> LSSVC:
    """Change weights and C of a model that has learned, without the data."""
    n, n_classes = model.n_samples_, len(model.classes_)
    rho = 1.0 / strength(C, rule, n, n_classes)
    changed: LSSVC = model.set_params(class_weight=rule[0], weighting=rule[1], rho=rho)
    return changed


@dataclass(frozen=True)
class Kind:
    """A kind of stream, and what learns it."""

    name: str
    make: Callable[[int], list[Stage]]  # from a seed
    seeds: int
    rules: Sequence[Rule]
    units: int
    scale: float

    def machine(self) -> LSSVC:
        """A wESVM that has learned nothing yet."""
        return wESVM(self.units, scale=self.scale)


def histories(kind: Kind, stages: Sequence[Stage], held: str) -> Iterator[LSSVC]:
    """The model after each stage: the new stage merged, what is too old taken out."""
    model = kind.machine()
    parts: list[Knowledge] = []
    for k, stage in enumerate(stages):
        parts.append(kind.machine().partial_fit(stage.X, stage.y).knowledge_)
        model.merge(parts[-1], name=f"stage {k}")
        if held == "window" and k >= WINDOW:
            model.merge(-parts[k - WINDOW], name=f"stage {k - WINDOW}")
        yield model


def choose(kind: Kind) -> Choice:
    """For each rule the C with the best mean G-mean at the first and the rarest stage."""
    stages = kind.make(TUNING_SEED)
    scores = {(rule, C): 0.0 for rule in kind.rules for C in CS}
    for k, model in enumerate(histories(kind, stages, "window")):
        if k in (0, len(stages) // 2):
            for rule, C in scores:
                predicted = set_rule(model, rule, C).predict(stages[k].X_test)
                scores[rule, C] += g_mean(stages[k].y_test, predicted)
    return {rule: max(CS, key=lambda C: scores[rule, C]) for rule in kind.rules}


# --- measurements --------------------------------------------------------------------------------


def drifting_two(plan: Plan) -> Rows:
    """Two classes, all rules."""
    rules: list[Rule] = [(rule, "shared") for rule in RULES]
    make = partial(two_classes, plan)
    return _drifting(Kind("two classes", make, plan.seeds, rules, plan.stream_units, 1.0))


def drifting_ten(images: Images, plan: Plan) -> Rows:
    """Ten digits, all rules, with weights shared and one against the rest."""
    scopes = ("shared", "one_vs_rest")
    rules: list[Rule] = [(r, s) for r in RULES for s in scopes if r or s == "shared"]
    make = partial(ten_digits, images, plan)
    return _drifting(Kind("ten digits", make, plan.digit_seeds, rules, plan.stream_units, SCALE))


def _drifting(kind: Kind) -> Rows:
    chosen = choose(kind)
    rows: Rows = []
    for seed, held in shown(list(product(range(kind.seeds), HELD)), f"(b) {kind.name}"):
        stages = kind.make(seed)
        for k, model in enumerate(histories(kind, stages, held)):
            told = {"held": held, "seed": seed, "stage": k, "ratio": stages[k].ratio}
            told |= {"rows": model.n_samples_}
            parts = held_at(stages, k, held)
            X, y = (np.concatenate([getattr(s, name) for s in parts]) for name in "Xy")
            again = kind.machine().partial_fit(X, y)
            refit = seed == 0 and k in (len(stages) // 2, len(stages) - 1)
            for rule in kind.rules:
                row = _judged(model, again, rule, chosen[rule], stages[k])
                equal = _fitted_equal(model, X, y) if refit else ""
                rows.append(told | row | {"equals_fit_with_weights": equal})
    return rows


def _judged(model: LSSVC, again: LSSVC, rule: Rule, C: float, stage: Stage) -> Row:
    """One rule at one stage: measures, and whether batch learning gives the same bits."""
    w = coefficients(set_rule(model, rule, C))
    same_w = np.array_equal(w, coefficients(set_rule(again, rule, C)))
    predicted = model.predict(stage.X_test)
    return {
        "class_weight": rule[0] or "none",
        "weighting": rule[1],
        "C": C,
        "g_mean": g_mean(stage.y_test, predicted),
        "f": f_measure(stage.y_test, predicted, stage.test_weight),
        "equals_batch": same_w and model.digest() == again.digest(),
    }


def _fitted_equal(model: LSSVC, X: Floats, y: Labels) -> bool:
    """Whether a fit that has these weights from the start comes to the same bits."""
    fresh = LSSVC(**model.get_params(deep=False)).fit(X, y)
    return bool(np.array_equal(coefficients(model), coefficients(fresh)))
