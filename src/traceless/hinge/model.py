"""A model of the hinge loss: training rows and the problems they make, which change together.

Which problems that are is for `traceless.hinge.machines` to say: of a classifier one for each pair
of classes, or for each class against the rest; of the other machines there is one.
`traceless.estimators.path_machine` has what the estimators share.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats, Integers, packed, unpacked
from traceless.exceptions import MismatchError
from traceless.hinge import precomputed
from traceless.hinge.answers import SolvedModel
from traceless.hinge.gram import Held, changing
from traceless.hinge.kernels import Kernel
from traceless.hinge.machines import Classifier, Regressor
from traceless.hinge.problem import HingeProblem
from traceless.hinge.settings import Settings
from traceless.knowledge.training_rows import Batch, TrainingRows
from traceless.progress import progress

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class HingeModel(SolvedModel):
    """Training rows, and the solution of their binary problems for some settings.

    A change makes another model, all problems of it or none; this one stays as it is.
    """

    held: Held = field(default_factory=Held)

    # --- learning and forgetting -------------------------------------------------------------

    @classmethod
    def learned(cls, new: Batch, settings: Settings) -> HingeModel:
        """The model of some rows."""
        gram = None
        if settings.name == "precomputed":
            gram, new = precomputed.joined(np.zeros((0, 0)), np.zeros(0, np.int64), new)
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

    def updated(
        self, new: Batch | None, gone: Integers, settings: Settings, to_look: bool = False
    ) -> HingeModel:
        """The model with new rows, less some; this one stays what it is."""
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
                gram, new = precomputed.joined(gram, self._numbers(), new)
            kernel = replace(kernel, gram=gram)
            after = precomputed.less(gram, dropped) if len(dropped) else gram
        rows = self.rows.changed(gone, None if new is None else _with_weight(new))
        same = settings.structure == self.settings.structure
        if not (same and settings.fits(kernel.gamma, kernel.centre, rows.X, rows.weight)):
            return HingeModel.solved(rows, settings, after)
        model = self._followed(rows, settings, kernel, to_look)
        if after is None:
            return model
        return replace(model, kernel=replace(kernel, gram=after))

    def without(self, gone: Integers) -> HingeModel:
        """The model less some rows, to be asked and not to be changed; this one stays as it is.

        Its values are those of the ends of paths where these have a b of their own.
        """
        at = np.searchsorted(self.rows.ids, gone)
        if len(gone) > 1 or self.moves_gamma[at].any() or self.kernel.name == "precomputed":
            model = self.updated(None, gone, self.settings, to_look=True)
        else:  # a kernel stays, and a centre may: with Σyα = 0 it is of no consequence
            model = self._followed(self.rows.without(gone), self.settings, self.kernel, True)
        return model

    def _followed(
        self, rows: TrainingRows, settings: Settings, kernel: Kernel, to_look: bool = False
    ) -> HingeModel:
        """The model of these rows, at the ends of the paths from ours.

        The kernel must have the values of ours for the rows that are there. Kernel matrices are
        still ours, until the other model is told to `take_over`.
        """
        wanted, done, steps = settings.machine.targets(rows, kernel), {}, 0
        shown = progress([*wanted], "following paths", True) if settings.verbose else wanted
        try:
            with changing(self.held, self.rows, rows, kernel, settings.memory) as (old, new, held):
                if not self.problems:
                    new.gram.fill()
                for pair in shown:
                    before = self.problems.get(pair) or HingeProblem()
                    numbers = wanted[pair], rows, old, new, to_look
                    after = done[pair] = before.changed_to(*numbers)
                    steps += after.n_breakpoints - before.n_breakpoints
        except MemoryError as error:
            raise MemoryError(
                f"cache_size allows {settings.memory / 2**20:.3g} MB for the kernel matrix, which "
                f"is too little: raise it (set_params, then again). Nothing was changed. ({error})"
            ) from error
        return HingeModel(rows, settings, kernel, done, steps, held)

    def take_over(self) -> None:
        """Own the kernel matrix from now on: the last step before the model is published.

        What it holds of rows that are gone is erased.
        """
        self.held.take_over()

    def find(self, old: Batch) -> Integers:
        """The ids of rows with this content."""
        if self.kernel.name == "precomputed":
            raise ValueError(
                "With kernel='precomputed' points have no content to be found by: forget them by "
                "their ids (ids_, last_ids_)."
            )
        return self.rows.find(old)

    # --- files and copies --------------------------------------------------------------------

    def content(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """All that is needed to make this model again for its settings: facts, and arrays.

        Of kernel matrices it has only one that the user gave. The numbers of each problem are in
        the order of the ids of its rows.
        """
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
            "intercepts": np.array([p.intercept for p in problems]),
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
        if len(wanted) != len(arrays["intercepts"]):
            raise ValueError("there is not one intercept for each problem.")
        held = Held()
        with held.opened(rows, kernel, settings.memory) as place:
            for (pair, target), b in zip(
                wanted.items(), arrays["intercepts"].tolist(), strict=True
            ):
                begin, end = end, end + len(target.ids)
                alpha = arrays["alpha"][begin:end]
                if (alpha > target.bounds).any():
                    raise ValueError("a row has an alpha above its bound.")
                problems[pair] = HingeProblem().restored(target, rows, place, alpha, b)
        return cls(rows, settings, kernel, problems, facts["n_breakpoints"], held)

    def __getstate__(self) -> dict[str, Any]:
        """The content, as in a file."""
        facts, arrays = self.content()
        return {"settings": self.settings, "facts": facts, "arrays": arrays}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(HingeModel.restored(**state).__dict__)

    def __deepcopy__(self, memo: Any) -> HingeModel:
        """What never changes is shared; to change, the copy makes a kernel matrix of its own."""
        return replace(self, settings=copy.deepcopy(self.settings, memo), held=Held())


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
