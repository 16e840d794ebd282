"""A solved model of the hinge loss: training rows, the problems they make, and what follows.

Which problems that are is for `traceless.hinge.machines` to say: of a classifier one for each pair
of classes, or for each class against the rest; of the other machines there is one.
`traceless.estimators.path_machine` has what the estimators share.
"""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats, Integers, packed, unpacked
from traceless.exceptions import MismatchError
from traceless.hinge import multiclass, precomputed
from traceless.hinge.groups import BLOCK
from traceless.hinge.kernel_cache import KernelCache, sum_of_rows
from traceless.hinge.kernels import Kernel
from traceless.hinge.machines import Classifier, Pair, Regressor
from traceless.hinge.multiclass import Coefficients
from traceless.hinge.probabilities import Sigmoid, probabilities, sigmoids
from traceless.hinge.problem import HingeProblem
from traceless.hinge.rows import Batch, Target, TrainingRows
from traceless.hinge.settings import Settings, name_of
from traceless.progress import progress

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class HingeModel:
    """Training rows, and the solution of their binary problems for some settings.

    A change makes another model, all problems of it or none; this one stays as it is.

    Parameters
    ----------
    rows : TrainingRows
        With kernel="precomputed", numbers of rows of the kernel matrix.
    settings : Settings
    kernel : Kernel
    problems : dict
        By their two classes.
    n_breakpoints : int
        On the paths of the change that has led here.
    only_to_read : bool
        Whether the kernel matrices belong to another model.
    """

    rows: TrainingRows
    settings: Settings
    kernel: Kernel
    problems: Mapping[Pair, HingeProblem] = field(default_factory=dict)
    n_breakpoints: int = 0
    only_to_read: bool = False

    # --- learning and forgetting -------------------------------------------------------------

    @classmethod
    def learned(cls, new: Batch, settings: Settings) -> HingeModel:
        """The model of some rows."""
        gram = None
        if settings.name == "precomputed":
            gram, numbers = precomputed.joined(np.zeros((0, 0)), np.zeros(0, np.int64), new[0])
            new = numbers[:, None] + 0.0, *new[1:]
        rows = TrainingRows.of(_with_weight(new))
        if not len(rows):
            raise ValueError(
                "There is nothing to learn: no rows, or all of them with sample_weight zero."
            )
        return cls.solved(rows, settings, gram)

    @classmethod
    def solved(cls, rows: TrainingRows, settings: Settings, gram: Floats | None) -> HingeModel:
        """The model of rows, from scratch."""
        kernel = _kernel(settings, settings.gamma_of(rows.X, rows.weight), rows.X, gram)
        return cls(rows, settings, kernel)._followed(rows, settings, kernel)

    def updated(self, new: Batch | None, gone: Integers, settings: Settings) -> HingeModel:
        """The model with new rows, less some; this one stays what it is."""
        if self.only_to_read:
            raise TypeError(
                "A model made by without() shares the kernel matrix of another and can only be "
                "asked: change a copy (copy.copy) of the other one."
            )
        given = settings.name == "precomputed"
        if given != (self.kernel.name == "precomputed"):
            raise MismatchError(
                f"The model holds {'rows' if given else 'kernel values'}, and "
                f"kernel={settings.kernel!r} needs the other kind: fit it anew."
            )
        kernel, after = self.kernel, None
        if given:  # `after` is the kernel matrix without the points that are gone
            gram, dropped = self.gram, self._numbers()[np.isin(self.rows.ids, gone)]
            if new is not None:
                gram, numbers = precomputed.joined(gram, self._numbers(), new[0])
                new = numbers[:, None] + 0.0, *new[1:]
            kernel = replace(kernel, gram=gram)
            after = precomputed.less(gram, dropped) if len(dropped) else gram
        rows = self.rows.changed(gone, None if new is None else _with_weight(new))
        same = settings.structure == self.settings.structure
        if not (same and settings.fits(kernel.gamma, kernel.centre, rows.X, rows.weight)):
            return HingeModel.solved(rows, settings, after)
        model = self._followed(rows, settings, kernel)
        if after is None:
            return model
        kernel = replace(kernel, gram=after)
        problems = {pair: p.with_kernel(kernel) for pair, p in model.problems.items()}
        return replace(model, kernel=kernel, problems=problems)

    def without(self, gone: Integers) -> HingeModel:
        """The model less some rows, only to be read; this one stays as it is."""
        rows = self.rows.less(gone)
        kernel, settings = self.kernel, self.settings
        if kernel.name != "linear" and not settings.fits(kernel.gamma, None, rows.X, rows.weight):
            other = HingeModel.solved(rows, replace(settings, verbose=False), None)
            return replace(other, only_to_read=True)
        wanted, ahead = settings.machine.targets(rows, kernel), {}
        fresh = HingeProblem(kernel, rows.X.shape[1], settings.memory // max(1, len(wanted)))
        for pair, target in wanted.items():
            problem = self.problems.get(pair, fresh)
            if not problem.is_spared(target):
                problem = problem.changed_to(target, rows, problem.kernel, problem.memory)
                problem.is_ahead = problem.tells_b
            ahead[pair] = problem
        return replace(self, rows=rows, problems=ahead, only_to_read=True)

    def _followed(self, rows: TrainingRows, settings: Settings, kernel: Kernel) -> HingeModel:
        """The model of these rows, at the ends of the paths from ours.

        The kernel must have the values of ours for the rows that are there. Kernel matrices are
        still ours, until the other model is told to `take_over`.
        """
        wanted, done, steps = settings.machine.targets(rows, kernel), {}, 0
        share = settings.memory // max(1, len(wanted))
        gram = self._shared(rows, wanted, kernel, settings.memory)
        shown = progress([*wanted], "following paths", True) if settings.verbose else wanted
        try:
            for pair in shown:
                before = self.problems.get(pair)
                if before is None:
                    before = HingeProblem(kernel, rows.X.shape[1], share)
                after = done[pair] = before.changed_to(wanted[pair], rows, kernel, share, gram)
                steps += after.n_breakpoints - before.n_breakpoints
        except MemoryError as error:
            raise MemoryError(
                f"cache_size allows {share / 2**20:.3g} MB for the kernel matrix of each of the "
                f"{len(wanted)} binary problems, which is too little: raise it (set_params, then "
                f"again). Nothing was changed. ({error})"
            ) from error
        return HingeModel(rows, settings, kernel, done, steps)

    def _shared(
        self, rows: TrainingRows, wanted: Mapping[Pair, Target], kernel: Kernel, memory: int
    ) -> Floats | None:
        """The kernel values of all rows, where the first fits of problems share them."""
        n = len(rows)
        several = sum(len(t.ids) ** 2 for t in wanted.values()) > n * n
        if self.problems or not several or not kernel.exact or 8 * n * n > memory:
            return None
        cache = KernelCache(kernel, rows.X.shape[1], memory)
        cache.place(rows.X, np.zeros(n), np.zeros(0, np.intp), None)
        return cache.gram

    def take_over(self) -> None:
        """Own the kernel matrices from now on: the last step before the model is published.

        What they hold of rows that are gone is erased.
        """
        for problem in self.problems.values():
            problem.take_over()

    # --- files and copies --------------------------------------------------------------------

    def content(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """All that is needed to make this model again for its settings: facts, and arrays.

        Of kernel matrices it has only one that the user gave. The numbers of each problem are in
        the order of the ids of its rows.
        """
        if self.only_to_read:
            raise TypeError(
                "A model made by without() cannot be saved or pickled: save a copy that forgets."
            )
        rows, problems, none = self.rows, list(self.problems.values()), np.zeros(0)
        facts: dict[str, Any] = {
            "gamma": self.kernel.gamma,
            "next_id": rows.next_id,
            "n_breakpoints": self.n_breakpoints,
        }
        arrays = {
            "rows": rows.X,
            "weights": rows.weight,
            "ids": rows.ids,
            "alpha": np.concatenate([none, *(p.alpha[np.argsort(p.ids)] for p in problems)]),
            "slopes": np.concatenate([none, *(p.slopes[np.argsort(p.ids)] for p in problems)]),
            "intercepts": np.array([p.intercept for p in problems]),
            "residuals": np.array([p.residual for p in problems]),
        }
        if isinstance(self.settings.machine, Classifier):
            facts["classes"] = rows.classes
            arrays["labels"] = np.searchsorted(rows.classes, rows.y).astype(np.int64)
        elif isinstance(self.settings.machine, Regressor):
            arrays["targets"] = rows.y
        if self.kernel.name == "precomputed":
            arrays["gram"] = packed(self.gram)
        return facts, arrays

    @classmethod
    def restored(cls, settings: Settings, facts: Mapping[str, Any], arrays: Arrays) -> HingeModel:
        """The model of some `content`; raises ValueError if the solutions do not fit the rows."""
        # copies: the arrays may be those of a file that is mapped, or shared with another process
        X, weight, ids = (arrays[name].copy() for name in ("rows", "weights", "ids"))
        y = np.zeros(len(ids))
        if isinstance(settings.machine, Classifier):
            y = facts["classes"][arrays["labels"]]
        elif isinstance(settings.machine, Regressor):
            y = arrays["targets"].copy()
        rows = TrainingRows.of((X, y, weight), ids, facts["next_id"])
        gram = None
        if settings.name == "precomputed":
            gram = unpacked(arrays["gram"], math.isqrt(2 * len(arrays["gram"])))
        kernel = _kernel(settings, facts["gamma"], X, gram)
        wanted, end, problems = settings.machine.targets(rows, kernel), 0, {}
        if sum(len(target.ids) for target in wanted.values()) != len(arrays["alpha"]):
            raise ValueError("alpha does not have one number for each row of each problem.")
        fresh = HingeProblem(kernel, X.shape[1], settings.memory // max(1, len(wanted)))
        solutions = zip(arrays["intercepts"].tolist(), arrays["residuals"].tolist(), strict=True)
        for (pair, target), ours in zip(wanted.items(), solutions, strict=True):
            begin, end = end, end + len(target.ids)
            alpha, slopes = arrays["alpha"][begin:end], arrays["slopes"][begin:end]
            if (alpha > target.bounds).any():
                raise ValueError("a row has an alpha above its bound.")
            problems[pair] = fresh.restored(rows, target, alpha, slopes, *ours)
        return cls(rows, settings, kernel, problems, facts["n_breakpoints"])

    def __getstate__(self) -> dict[str, Any]:
        """The content, as in a file."""
        facts, arrays = self.content()
        return {"settings": self.settings, "facts": facts, "arrays": arrays}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(HingeModel.restored(**state).__dict__)

    def __deepcopy__(self, memo: Any) -> HingeModel:
        """What never changes is shared; kernel matrices are copied when the copy changes."""
        settings, problems = copy.deepcopy((self.settings, self.problems), memo)
        return replace(self, settings=settings, problems=problems)

    # --- what follows ------------------------------------------------------------------------

    def find(self, old: Batch) -> Integers:
        """The ids of rows with this content."""
        if self.kernel.name == "precomputed":
            raise ValueError(
                "With kernel='precomputed' points have no content to be found by: forget them by "
                "their ids (ids_, last_ids_)."
            )
        return self.rows.find(_with_weight(old))

    def values(self, X: Floats, only_signs: bool = False) -> Floats:
        """One column for each problem; as in LIBSVM, positive for the first of two in a pair.

        With two classes, or one class against the rest, it is positive for the second. If
        `only_signs` are needed, values may be those of the path, where that cannot change a sign.
        """
        if not self.problems:  # one class only
            return np.ones((len(X), 1))
        problems = list(self.problems.values())
        if self.kernel.name == "linear":
            columns = [problem.decision_function(X) for problem in problems]
        else:
            only_signs = only_signs and self.kernel.definite  # else `doubt` is no bound
            unsure = [only_signs and not (p.is_ahead or p.is_published) for p in problems]
            as_path = [p.is_ahead or it for p, it in zip(problems, unsure, strict=True)]
            columns = self._sums(X, problems, as_path)
            self._settle(X, columns, [k for k, it in enumerate(unsure) if it])
        scaled = [p.scale * f + p.offset for p, f in zip(problems, columns, strict=True)]
        return self.oriented(np.column_stack(scaled))

    def _settle(self, X: Floats, columns: Sequence[Floats], as_path: Sequence[int]) -> None:
        """Replace values of the path whose sign is in doubt by those that are published."""
        problems = list(self.problems.values())
        doubted = {k: np.abs(columns[k]) <= problems[k].doubt(X) for k in as_path}
        doubted = {k: rows for k, rows in doubted.items() if rows.any()}
        if not doubted:
            return
        at = np.flatnonzero(np.any([*doubted.values()], axis=0))
        again = self._sums(X[at], [problems[k] for k in doubted], [False] * len(doubted))
        for k, f in zip(doubted, again, strict=True):
            columns[k][at] = f

    def _sums(
        self, X: Floats, problems: Sequence[HingeProblem], as_path: Sequence[bool]
    ) -> list[Floats]:
        """The f of problems, each kernel value computed once; the same bits in any batch."""
        terms = [
            (np.searchsorted(self.rows.ids, ids // problem.copies), c, b)
            for problem, it in zip(problems, as_path, strict=True)
            for ids, c, b in [problem.terms(it)]
        ]
        if self.kernel.name == "precomputed":
            numbers = self._numbers()
            return [precomputed.values(X, numbers, numbers[at], c) + b for at, c, b in terms]
        used = np.unique(np.concatenate([at for at, _, _ in terms]))
        support, out = np.ascontiguousarray(self.rows.X[used].T), np.zeros((len(terms), len(X)))
        step = max(1, BLOCK // max(1, len(used)))
        for start in range(0, len(X), step):
            part = slice(start, start + step)
            V = np.ascontiguousarray(self.kernel.exact_values(X[part], support).T)
            for f, (at, c, _) in zip(out, terms, strict=True):
                sum_of_rows(V, np.searchsorted(used, at), c, f[part])
        return [f + b for f, (_, _, b) in zip(out, terms, strict=True)]

    @cached_property
    def sigmoids(self) -> tuple[Sigmoid, ...]:
        """What makes probabilities of the values of each problem; it costs a leave-one-out."""
        return sigmoids(self)

    def probabilities(self, values: Floats) -> Floats:
        """One column for each class, from the `values` of rows."""
        n, pairwise = len(self.rows.classes), bool(self._several_pairs())
        return probabilities(self.oriented(values), self.sigmoids, n, pairwise)

    def intercepts(self) -> Floats:
        """The constant of each problem."""
        found = [p.scale * p.canonical().intercept + p.offset for p in self.problems.values()]
        return self.oriented(np.array(found))

    def weights(self) -> Floats:
        """Of the columns, with a linear kernel: one row for each problem."""
        rows = [np.zeros(self.rows.X.shape[1])]
        for problem in self.problems.values():
            w = problem.canonical().weights
            assert w is not None
            rows.append(problem.scale * w)
        return self.oriented(np.array(rows[1:] or rows))

    def oriented(self, values: Floats) -> Floats:
        """Values of pairs among several classes get the sign for the first; no negative zeros."""
        return 0.0 - values if self._several_pairs() else values + 0.0

    def _several_pairs(self) -> int:
        """The number of classes, if there is a problem for each pair of several, else 0."""
        machine = self.settings.machine
        if not isinstance(machine, Classifier) or machine.strategy != "ovo":
            return 0
        n = len(self.rows.classes)
        return n if n > 2 else 0

    def support(self) -> tuple[NDArray[np.intp], list[Coefficients]]:
        """Places of the support vectors, by class; and for each problem its own, with Σyα."""
        rows, found = self.rows, list[Coefficients]()
        for problem in self.problems.values():
            alpha = problem.canonical().alpha_of_points(problem.bounds)
            at = np.searchsorted(rows.ids, problem.ids // problem.copies)
            c = np.asarray(np.bincount(at, problem.scale * problem.y * alpha, len(rows)), float)
            used = np.flatnonzero(c)
            found.append((used, c[used]))
        places = np.unique(np.concatenate([np.zeros(0, np.intp), *(at for at, _ in found)]))
        if isinstance(self.settings.machine, Classifier):
            places = places[np.argsort(rows.y[places], kind="stable")]
        return places, found

    def decisive_ids(self) -> Integers:
        """Ids of the rows whose removal, each by itself, would change the solution."""
        rows, moves = self.rows, self.settings.machine.needs_all_rows
        if moves or not all(problem.spares() for problem in self.problems.values()):
            return rows.ids
        decisive = self.settings.moves_gamma(rows.X, rows.weight)
        decisive[self.support()[0]] = True
        return rows.ids[decisive]

    def dual_coef(self) -> Floats:
        """Coefficients of the support vectors in scikit-learn's layout."""
        support, found = self.support()
        if not found:
            return np.zeros((1, 0))
        n_pairs = self._several_pairs()
        label = np.searchsorted(self.rows.classes, self.rows.y[support]) if n_pairs else support
        out = multiclass.dual_coefficients(found, support, label, n_pairs)
        return self.oriented(out) if n_pairs else out

    def digest(self) -> str:
        """SHA-256 of the kernel, the rows, their bounds and the solution.

        Of a kernel matrix that was given: of the kernel values, labels and weights of the points.
        """
        settings, kernel = self.settings, self.kernel
        used = {"rbf": ("gamma",), "poly": ("gamma", "coef0", "degree")}
        used["sigmoid"] = ("gamma", "coef0")
        said: dict[str, Any] = {p: float(getattr(kernel, p)) for p in used.get(kernel.name, ())}
        name = name_of(settings.kernel) if callable(settings.kernel) else settings.kernel
        said |= {"kernel": name, **settings.machine.said}
        if settings.name == "precomputed":
            numbers, rows = self._numbers(), self.rows
            bounds = {
                ascii(k): np.sort(p.scale * p.bounds).tolist() for k, p in self.problems.items()
            }
            h = sha256(json.dumps(said | {"bounds": bounds}, sort_keys=True).encode())
            gram = self.gram[np.ix_(numbers, numbers)]
            h.update(precomputed.content(gram + 0.0, rows.y, rows.weight))
            return h.hexdigest()
        h = sha256(json.dumps(said, sort_keys=True).encode())
        for piece in self.rows.content():
            h.update(piece)
        for pair, problem in self.problems.items():
            solution = problem.canonical()
            h.update(ascii(pair).encode())
            for values in (solution.bounds, solution.shares + 0.0, solution.intercept + 0.0):
                h.update(np.asarray(values).tobytes())
        return h.hexdigest()

    def excess(self, tol: float, asked: bool) -> float:
        """The largest KKT residual that is to be reported, or 0; each is reported once.

        `asked`: whether somebody is about to use what is published.
        """
        if self.only_to_read:  # `without` says that it is less exact
            return 0.0
        return max([problem.excess(tol, asked) for problem in self.problems.values()], default=0.0)

    @property
    def gram(self) -> Floats:
        """The kernel matrix, with kernel="precomputed"."""
        assert self.kernel.gram is not None
        return self.kernel.gram

    def _numbers(self) -> Integers:
        """The rows of the kernel matrix that are points held, with kernel="precomputed"."""
        return self.rows.X[:, 0].astype(np.int64)


def _with_weight(new: Batch) -> Batch:
    """Rows with positive weight."""
    X, y, weight = new
    kept = weight > 0.0
    return new if kept.all() else (X[kept], y[kept], weight[kept])


def _kernel(settings: Settings, gamma: float, X: Floats, gram: Floats | None) -> Kernel:
    name, function = settings.name, settings.kernel if callable(settings.kernel) else None
    degree = settings.degree if name == "poly" else 0
    centre = settings.centre_of(X)
    return Kernel(name, gamma, float(settings.coef0), degree, gram, function, centre)
