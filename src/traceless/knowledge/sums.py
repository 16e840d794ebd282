"""Knowledge: what the rows of a data set add up to.

For rows with features φ (integers on a grid), responses r and weights ω,

    G = Σ ω [φ; r] [φ; r]ᵀ

is one symmetric matrix of integers. For classification r is the one-hot code of the
class, so G holds Σφφᵀ, the sum of φ per class and the weight of each class; for
regression r are the targets (on a grid of their own), and G holds Σφφᵀ, Σφy and Σyy; for
multi-label classification r has 1 for each label of the row, and a last 1 for every row.
With the number of rows (per class) that is the whole knowledge. ``+`` learns or merges,
``-`` forgets: a commutative group of fixed size, whatever the number of rows.

*Class-wise* knowledge (Zhu et al. 2018) keeps the same of each class apart,

    G_c = Σ ω [φ; 1] [φ; 1]ᵀ     over the rows of class c

so that classes can be weighted when it is solved; the pooled matrix is a sum of its parts.

ρ, class weights and label coding are chosen when the knowledge is *solved*, never here.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from traceless.arithmetic import integers
from traceless.arithmetic.integers import Integers, Sums, Wide
from traceless.device.tensors import (
    check_rows,
    is_on_device,
    taken_rows,
)
from traceless.exceptions import MismatchError
from traceless.features.bound_map import BoundMap, specification_digest
from traceless.files import saving
from traceless.knowledge.columns import without_columns
from traceless.knowledge.feasibility import check_sums
from traceless.knowledge.fingerprint import Lanes
from traceless.knowledge.fingerprint import to_bytes as fingerprint_bytes
from traceless.knowledge.gathering import Gathering
from traceless.knowledge.responses import (
    SAID,
    Label,
    Task,
    framed,
    in_both,
    label_bytes,
    n_rows,
    union,
)
from traceless.knowledge.specifications import check_combinable

if TYPE_CHECKING:
    from traceless.features.feature_map import FeatureMap

__all__ = ["Knowledge"]


Rows = tuple[Any, ...]  # (X, y, sample_weight)
_LARGE = 2**84  # a mean square, in steps


@dataclass(frozen=True)
class Recipe:
    """How rows become knowledge: the feature map, the task, and what is kept."""

    phi: BoundMap
    task: Task
    target_resolution: float
    classwise: bool = False
    fingerprint: bool = False
    verbose: bool = False
    device: Any = None  # that works on rows of the host's memory

    @cached_property
    def specification(self) -> Mapping[str, Any]:
        """The features (and targets) in JSON's types; a shared dict that nobody changes."""
        if self.task != "regression":
            return self.phi.describe()
        return self.phi.describe() | {"target_resolution": float(self.target_resolution)}

    @property
    def about_rows(self) -> bytes:
        """What all rows of a fingerprint have in common."""
        about = specification_digest(self.specification).encode(), self.task.encode()
        return framed(b"traceless row 1", *about)

    def knowledge(self, rows: Rows) -> Knowledge:
        """The knowledge of rows in memory, gathered in chunks."""
        return self._known(Gathering(self, rows))

    def _known(self, gathering: Gathering) -> Knowledge:
        said = dict(self.specification)
        total = _read_only(gathering.sums(self.classwise))
        responses, prints = gathering.responses, gathering.fingerprint
        lanes = None if prints is None else prints.lanes
        counted = responses.names, responses.counts, total, gathering.bits, lanes
        return Knowledge(said, self.task, *counted)._canonical()

    def changed(self, known: Knowledge, rows: Rows, sign: int) -> Knowledge:
        """Some knowledge with rows in memory added to it (sign 1), or taken out of it (-1)."""
        gathering, join = Gathering(self, rows), operator.add if sign > 0 else operator.sub
        ours, names = gathering.responses, known.responses
        several, prints, lanes = ours.has_classes, gathering.fingerprint, known.fingerprint
        places = in_both(ours.names, names)[1]
        if (
            gathering.are_few
            and len(places) == len(ours.names)
            and (several or len(places) == len(names))
            and len({*map(type, ours.names + names)}) < 2  # 1 == True
            and (known.specification, known.classwise) == (self.specification, self.classwise)
            and (lanes is None) == (prints is None)
            and not isinstance(known.total, Wide)
        ):
            total, counts = known.total.copy(), np.array(known.counts)
            if gathering.add_to(total, places, known.weight_bits, sign):
                counts[places if several else ...] += sign * np.array(ours.counts)
                if lanes is not None and prints is not None:
                    lanes = _read_only(join(lanes, prints.lanes))
                held = tuple(counts.tolist()), _read_only(total), known.weight_bits, lanes
                return Knowledge(known.specification, self.task, names, *held)._canonical()
        return cast("Knowledge", join(known, self._known(gathering)))


@dataclass(frozen=True, eq=False)
class Knowledge(saving.Savable):
    """An immutable summary of rows, closed under ``+`` and ``-``.

    Build it with `Knowledge.of`, or take it from a fitted estimator (``knowledge_``).

    Attributes
    ----------
    specification : dict
        The feature map's specification, its number of columns and, for regression, the
        resolution of the targets.
    task : {"classification", "regression", "multilabel"}
    responses : tuple
        The class labels in order, or the numbers of the targets. Of L labels the numbers 0 to L,
        where L stands for the constant 1.
    counts : tuple of int
        Rows per class; one number for regression; rows with each label, and all rows.
    total : int64 array or Wide, of shape (J + K, J + K) or, class-wise, (K, J + 1, J + 1)
        Σ ω [φ; r][φ; r]ᵀ in units of the grids.
    weight_bits : int
        `total` is in units of 2^-weight_bits, the largest in which all of them are whole: 0
        unless some weights were fractions.
    fingerprint : ndarray of shape (1024,) of uint16, or None
        The sum of a hash of each row (`traceless.knowledge.fingerprint`), where it was asked for.

    Examples
    --------
    >>> from traceless.features import Linear
    >>> a = Knowledge.of(Linear(), [[0.5], [1.0]], ["no", "yes"])
    >>> b = Knowledge.of(Linear(), [[2.0]], ["yes"])
    >>> both = a + b
    >>> both.class_counts
    {'no': 1, 'yes': 2}
    >>> both - b == a
    True
    >>> sum([a, b]).digest() == both.digest()
    True
    """

    specification: Mapping[str, Any]
    task: Task
    responses: tuple[Label, ...]
    counts: tuple[int, ...]
    total: Sums
    weight_bits: int = 0
    fingerprint: Lanes | None = None

    def __post_init__(self) -> None:
        """Copy arrays that somebody else could write to; our own come read-only."""
        for name in ("total", "fingerprint"):
            array = getattr(self, name)
            held = array.limbs if isinstance(array, Wide) else array
            if held is not None and (held.dtype == object or not _is_ours(held)):
                object.__setattr__(self, name, _read_only(integers.as_sums(array).copy()))

    @classmethod
    def of(
        cls,
        feature_map: FeatureMap | BoundMap,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        task: Task = "classification",
        target_resolution: float = 2**-14,
        classwise: bool = False,
        fingerprint: bool = False,
        verbose: bool = False,
    ) -> Knowledge:
        """Gather the knowledge of some rows, in chunks.

        Parameters
        ----------
        feature_map : FeatureMap
        X : array of shape (n_samples, n_features), dense or CSR
            Finite numbers of any real type; converted a chunk at a time.
        y : array of shape (n_samples,) or (n_samples, n_targets)
            Class labels; for regression targets; for multi-label classification a matrix of 0
            and 1, dense or sparse, with a column for each label.
        sample_weight : array of shape (n_samples,), optional
            Weights ≥ 0. Whole numbers up to 2^32 are exact, all others rounded to 20
            significant bits, a relative error below 1e-6. A row of weight 0 is no row.
        task : {"classification", "regression", "multilabel"}
        target_resolution : float
            The grid of the targets, a power of two.
        classwise : bool
            Keep the sums of each class apart, so that classes can be weighted later: K
            matrices instead of one.
        fingerprint : bool
            Add up a hash of each row too (`traceless.knowledge.fingerprint`), so that equal
            digests mean equal rows: 2 KB, and some microseconds a row. Needs the package blake3.
        verbose : bool
            Show progress on standard error.
        """
        if task not in SAID:
            raise ValueError(f"task must be one of {', '.join(map(repr, SAID))}, got {task!r}.")
        X, y, sample_weight = taken_rows((X, y, sample_weight))
        if is_on_device(X):
            check_rows(X)
        else:
            X = check_array(X, accept_sparse="csr", ensure_all_finite=False, ensure_min_samples=0)
        phi = feature_map if isinstance(feature_map, BoundMap) else feature_map.bind(X.shape[1])
        recipe = Recipe(phi, task, target_resolution, classwise, fingerprint, verbose)
        return recipe.knowledge((X, y, sample_weight))

    # --- the group ---------------------------------------------------------------------

    def __add__(self, other: Any) -> Knowledge:
        if other == 0 and isinstance(other, int):  # so that sum() works
            return self
        both: Knowledge = self._combined(other, integers.add, operator.add)
        return both

    __radd__ = __add__

    def __sub__(self, other: Any) -> Knowledge:
        rest: Knowledge = self._combined(other, integers.subtract, operator.sub)
        return rest

    def _combined(self, other: Any, join: Callable[[Sums, Sums], Sums], each: Any) -> Any:
        if not isinstance(other, Knowledge):
            return NotImplemented
        self._check_combinable(other)
        responses = union(self.responses, other.responses)
        a, b = self._with(responses), other._with(responses)
        *both, bits = integers.alike(a.total, a.weight_bits, b.total, b.weight_bits)
        total, counts = _read_only(join(*both)), tuple(map(each, a.counts, b.counts))
        lanes = None
        if a.fingerprint is not None and b.fingerprint is not None:
            lanes = _read_only(each(a.fingerprint, b.fingerprint))  # mod 2^16
        return replace(
            a, counts=counts, total=total, weight_bits=bits, fingerprint=lanes
        )._canonical()

    def __neg__(self) -> Knowledge:
        counts = tuple(map(operator.neg, self.counts))
        lanes = None if self.fingerprint is None else -self.fingerprint  # mod 2^16
        return replace(self, counts=counts, total=_read_only(-self.total), fingerprint=lanes)

    def __eq__(self, other: Any) -> bool:
        if not isinstance(other, Knowledge):
            return NotImplemented
        ours, theirs = map(integers.as_limbs, (self.total, other.total))
        return self._header() == other._header() and np.array_equal(ours, theirs)

    def __hash__(self) -> int:
        return hash(self.digest())

    def __getstate__(self) -> dict[str, Any]:
        """For pickle: triangles are enough."""
        state = {field.name: getattr(self, field.name) for field in fields(self)}
        return state | {"total": integers.packed(self.total), "width": self.total.shape[-1]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """All arrays are copied: those of a pickle can be mapped, or somebody else's buffers."""
        width = state.pop("width")
        total = _read_only(integers.unpacked(state["total"], width))
        self.__dict__.update(state, total=total)
        self.__post_init__()

    def _pieces(self) -> saving.Pieces:
        said = {
            "specification": dict(self.specification),
            "task": self.task,
            "responses": saving.labels(self.responses),
            "counts": list(self.counts),
            "weight_bits": self.weight_bits,
        }
        tensors = {"sums": integers.to_tensor(integers.packed(self.total))}
        if self.fingerprint is not None:
            lanes = np.frombuffer(fingerprint_bytes(self.fingerprint), dtype=np.uint8)
            tensors["fingerprint"] = lanes
        return said, tensors

    def __repr__(self) -> str:
        kind, what = {
            "classification": ("classes", dict(zip(self.responses, self.counts, strict=False))),
            "regression": ("targets", len(self.responses)),
            "multilabel": ("labels", len(self.responses) - 1),
        }[self.task]
        kind = f"class-wise, {kind}" if self.classwise else kind
        return (
            f"<Knowledge of {self.n_samples} rows, {self.n_outputs} features, {kind} {what}, "
            f"digest {self.digest()[:12]}>"
        )

    # --- what it says --------------------------------------------------------------------

    @cached_property
    def n_samples(self) -> int:
        """Number of rows."""
        return n_rows(self.task, self.counts)

    @cached_property
    def n_outputs(self) -> int:
        """Number J of features."""
        return int(self.total.shape[-1]) - (1 if self.classwise else len(self.responses))

    @cached_property
    def classwise(self) -> bool:
        """Whether the sums of each class are kept apart."""
        return self.total.ndim == 3

    @cached_property
    def sums(self) -> Integers:
        """The total as an array of NumPy: int64, or Python integers where some are beyond it."""
        found: Integers = _read_only(np.asarray(self.total))
        return found

    @property
    def class_counts(self) -> dict[Label, int]:
        """Rows per class."""
        if self.task != "classification":
            raise AttributeError(f"Knowledge of {SAID[self.task]} has no classes; see n_samples.")
        return dict(zip(self.responses, self.counts, strict=True))

    @property
    def class_totals(self) -> tuple[Fraction, ...]:
        """The weights of the rows of each class, added up: the counts if no row was weighted.

        Of several labels for each row: the same of those with each label, and of all.
        """
        return tuple([Fraction(n, 1 << self.weight_bits) for n in self.class_weights.tolist()])

    @property
    def class_weights(self) -> Integers:
        """The same in units of 2^-weight_bits; for a regression Σωy² of each target."""
        J = self.n_outputs
        return np.asarray(self.total[:, J, J] if self.classwise else self.total.diagonal()[J:])

    @cached_property
    def gram(self) -> Sums:
        """Σ ω [φ; r][φ; r]ᵀ over all rows."""
        if not self.classwise:
            return self.total
        J = self.n_outputs
        features: Sums = np.zeros((J, J), dtype=np.int64)
        for part in self.total:
            features = integers.add(features, part[:J, :J])
        gram: Sums = _read_only(integers.bordered(features, self.total[:, J]))
        return gram

    def pooled(self) -> Knowledge:
        """The same knowledge with the sums of all classes in one matrix: smaller, for good."""
        return replace(self, total=self.gram)._canonical() if self.classwise else self

    def without_fingerprint(self) -> Knowledge:
        """The same sums without the fingerprint of the rows."""
        return self if self.fingerprint is None else replace(self, fingerprint=None)

    def forget_columns(self, columns: Any, feature_map: FeatureMap | None = None) -> Knowledge:
        """What the same rows add up to if they never had some columns.

        Equal, to the bit, to the knowledge of the rows without these columns. For maps whose
        features are made of single columns or of products of columns: `Linear` and `Polynomial`.

        Parameters
        ----------
        columns : int, sequence of int, or boolean mask of shape (n_features,)
            Negative numbers count from the last column. At least one column must stay.
        feature_map : FeatureMap, optional
            The map that the rows were learned with. Needed where a parameter of it is an array,
            such as one resolution for each column, and for a class of your own: the
            specification has a hash of these only.

        Returns
        -------
        Knowledge

        Raises
        ------
        TypeError
            If the features that stay cannot be told from the others.
        ValueError
            If there are no such columns, or there is a fingerprint, which is one of whole rows:
            ``without_fingerprint().forget_columns(...)`` gives it up.

        Examples
        --------
        >>> from traceless.features import Linear
        >>> known = Knowledge.of(Linear(), [[0.5, 3.0], [1.0, 4.0]], ["no", "yes"])
        >>> known.forget_columns(1) == Knowledge.of(Linear(), [[0.5], [1.0]], ["no", "yes"])
        True
        """
        if self.fingerprint is not None:
            raise ValueError(
                "A fingerprint is a sum of hashes of whole rows, of which no column can be taken "
                "out. Give it up: without_fingerprint().forget_columns(...)."
            )
        specification, outputs = without_columns(self.specification, columns, feature_map)
        kept = np.append(outputs, np.arange(self.n_outputs, self.total.shape[-1]))
        total = integers.least(self.total[..., kept[:, None], kept])
        return replace(self, specification=specification, total=_read_only(total))._canonical()

    @property
    def feature_gram(self) -> Sums:
        """Σ ω φφᵀ, J × J."""
        J = self.n_outputs
        found: Sums = self.gram[:J, :J]
        return integers.least(found) if isinstance(found, Wide) else found

    @property
    def response_sums(self) -> Integers:
        """Σ ω φ rᵀ, J × K: per class the sum of φ, or per target Σφy."""
        J, total = self.n_outputs, self.total
        part: Any = total[:, J, :J] if self.classwise else total[:J, J:]
        found: Integers = integers.as_array(part) if isinstance(part, Wide) else part
        return found.T if self.classwise else found

    def large_features(self) -> NDArray[np.intp]:
        """The features that take some 2^42 steps of their grid, as seconds since 1970 do."""
        squares: Any = sum(m.diagonal() for m in (self.total if self.classwise else (self.total,)))
        mean = (squares[: self.n_outputs] >> self.weight_bits) // max(self.n_samples, 1)
        return np.flatnonzero(mean >= _LARGE)

    def digest(self) -> str:
        """SHA-256 of the feature map's specification and the integers, in hexadecimal."""
        state = hashlib.sha256(self._header())
        for matrix in self.total if self.classwise else (self.total,):
            for piece in integers.triangle_bytes(matrix):
                state.update(piece)
        return state.hexdigest()

    def check_possible(self) -> Knowledge:
        """Raise `NotLearnedError` if no rows add up to this; else return self.

        No class has fewer than no rows, or rows without weight, or sums without rows; weights
        are within the range that is allowed; and the matrix of sums is positive semidefinite
        (`traceless.knowledge.feasibility`). What rows add up to is never refused.

        The check misses errors: with more rows than features, a repeated, invented or
        mislabelled row is often accepted. ``guard=True`` of the estimators, and the store, know
        the rows themselves.
        """
        check_sums(self)
        return self

    # --- inside ----------------------------------------------------------------------------

    def _header(self) -> bytes:
        """All but the sums, in bytes that no version of Python or Unicode has a say in."""
        kind = "class-wise knowledge" if self.classwise else "knowledge"
        return framed(
            f"traceless {kind} 2".encode(),
            specification_digest(self.specification).encode(),
            self.task.encode(),
            framed(*map(label_bytes, self.responses)),
            framed(*map(b"%d".__mod__, self.counts)),
            b"%d" % self.weight_bits,
            b"" if self.fingerprint is None else fingerprint_bytes(self.fingerprint),
        )

    def of_class(self, k: int) -> Sums:
        """The sums of one class: its matrix, or its row of the pooled matrix."""
        found: Sums = self.total[k if self.classwise else self.n_outputs + k]
        return found

    def _canonical(self) -> Knowledge:
        """Drop classes of which nothing is left, use the largest unit."""
        out = self
        if self.task == "classification":
            counted = enumerate(zip(self.responses, self.counts, strict=True))
            out = self._with(tuple([r for k, (r, n) in counted if n or self.of_class(k).any()]))
        spare = integers.trailing_zeros(out.total, out.weight_bits) if out.weight_bits else 0
        if spare:
            total, bits = integers.shifted(out.total, -spare), out.weight_bits - spare
            out = replace(out, total=_read_only(total), weight_bits=bits)
        return out

    def _with(self, responses: tuple[Label, ...]) -> Knowledge:
        """The same of these classes: nothing of those that are new, and without some that are."""
        if responses == self.responses:
            return self
        old, new = in_both(self.responses, responses)
        if self.classwise:
            total = integers.with_rows(self.total, old, new, len(responses))
        else:
            total = integers.with_classes(self.total, self.n_outputs, old, new, len(responses))
        counts = [0] * len(responses)
        for k, place in zip(old, new, strict=True):
            counts[place] = self.counts[k]
        return replace(self, responses=responses, counts=tuple(counts), total=_read_only(total))

    def _check_combinable(self, other: Knowledge) -> None:
        check_combinable(self, other, self.responses, other.responses)
        if self.classwise != other.classwise:
            raise MismatchError(
                "One side keeps its classes apart and the other is pooled, which cannot be undone. "
                "Gather the pooled one again with classwise=True, or combine it with pooled() of "
                "the other."
            )
        if (self.fingerprint is None) != (other.fingerprint is None):
            raise MismatchError(
                "One side has a fingerprint of its rows and the other has none. Gather the other "
                "again with fingerprint=True, or combine it with without_fingerprint() of the one."
            )


def _read_only(ours: Any) -> Any:
    """An array that nobody else has, never to be written to again."""
    held = ours.limbs if isinstance(ours, Wide) else ours
    held.setflags(write=False)
    if isinstance(held.base, np.ndarray):
        held.base.setflags(write=False)
    return ours


def _is_ours(held: NDArray[Any]) -> bool:
    """Whether neither an array nor the one whose memory it shares can be written to."""
    if held.flags.writeable or held.base is None:
        return not held.flags.writeable
    return isinstance(held.base, np.ndarray) and _is_ours(held.base)
