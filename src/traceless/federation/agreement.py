"""What all sites agree on before a round: who takes part, what is summed, and who may fail.

Of n sites, c may work together with the coordinator, and d may fail to answer. A round ends with
T = n - d survivors or more; two different lists of survivors cannot both be signed by T sites as
long as 2 T > n + c, since an honest site signs one list only.

Each site shares its seeds among k sites that it picks at random, so that any t of them restore
them (Bell et al. 2020, section 4). With m = n - 1 others and X ~ hypergeometric(m, ·, k),

    n P(X_c ≥ t)       ≤ 2^-40     the c restore no seed of an honest site
    n P(X_(T-1) < t)   ≤ 2^-20     the survivors among them are enough

decide k and t: k = O(log n), and all other sites where n is small. The tails are summed in
integers, so that every site finds the same numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from hashlib import sha256
from itertools import accumulate
from math import comb
from typing import Any, Self

import numpy as np

from traceless.arithmetic import integers
from traceless.exceptions import FederationError, MismatchError, RangeError
from traceless.federation.masks import Words
from traceless.files import saving
from traceless.files.container import canonical_json, parsed_json
from traceless.knowledge import Knowledge
from traceless.knowledge.fingerprint import LANES
from traceless.knowledge.specifications import check_same_specification

_LEAST = 3  # sites: the total of two shows each the other
_SECRECY, _SUCCESS = 2**40, 2**20


@dataclass(frozen=True)
class Agreement:
    """The terms of a round. All sites and the coordinator need the same; `digest` compares them.

    Parameters
    ----------
    sites : mapping of str to str
        The public key of each site (Ed25519, 64 hexadecimal digits), by its name.
    specification : mapping
        Of the feature map, as `Knowledge` has it.
    task : {"classification", "regression", "multilabel"}
    responses : sequence
        All class labels that any site may have, in order; otherwise as `Knowledge` has them.
    colluding : int, optional
        Sites that may work together with the coordinator; by default a third, rounded down.
    dropouts : int, optional
        Sites that may fail; by default as many as can be allowed.
    minimum_rows : int
        A site takes part only with no rows, or at least so many, of each class.
    minimum_changes : int, optional
        Sites that must differ between two totals, if any do: the difference is theirs. By default
        two more than may collude.
    classwise, fingerprint : bool
        Whether classes are kept apart, and whether rows have a fingerprint.
    wide : bool
        Whether sums are added up modulo 2^128, and not modulo 2^64.
    weight_bits : int
        Binary places of the sums, if rows have weights that are fractions.
    name : str
        Of the round or the project; rounds of different names never mix.

    Examples
    --------
    >>> from traceless import LSSVC
    >>> keys = {name: f"{k:064x}" for k, name in enumerate(["north", "south", "west"])}
    >>> piece = LSSVC().fit([[0.0], [1.0]], ["no", "yes"]).knowledge_
    >>> terms = Agreement.like(piece, keys)
    >>> terms.survivors, terms.neighbours, terms.shares
    (3, 2, 2)
    """

    sites: Mapping[str, str]
    specification: Mapping[str, Any]
    task: Any
    responses: Sequence[Any]
    colluding: int = -1
    dropouts: int = -1
    minimum_rows: int = 20
    minimum_changes: int = -1
    classwise: bool = False
    fingerprint: bool = False
    wide: bool = False
    weight_bits: int = 0
    name: str = ""
    neighbours: int = field(init=False)
    shares: int = field(init=False)

    def __post_init__(self) -> None:
        n = len(self.sites)
        if n < _LEAST:
            raise ValueError(f"A total of {n} sites would show each the other: it takes {_LEAST}.")
        for name, key in self.sites.items():
            if len(key) != 64 or not {*key} <= {*"0123456789abcdef"}:
                raise ValueError(f"The public key of {name!r} must be 64 hexadecimal digits.")
        if len({*self.sites.values()}) < n:
            raise ValueError("Two sites have the same key.")
        set_ = object.__setattr__
        set_(self, "sites", dict(sorted(self.sites.items())))
        set_(self, "responses", tuple(self.responses))
        if self.colluding < 0:
            set_(self, "colluding", n // 3)
        if self.dropouts < 0:
            set_(self, "dropouts", max(0, (n - self.colluding - 1) // 2))
        c, T = self.colluding, self.survivors
        if self.minimum_changes < 0:
            set_(self, "minimum_changes", c + 2)
        if not (n + c < 2 * T and T - c >= 2):
            raise ValueError(
                f"{n} sites cannot allow {c} to collude and {self.dropouts} to drop out: then "
                "two different lists of survivors could be signed, or a total be that of one "
                "honest site. Allow fewer of either."
            )
        neighbours, shares = _neighbours(n, c, T)
        set_(self, "neighbours", neighbours)
        set_(self, "shares", shares)

    @classmethod
    def like(
        cls, piece: Knowledge, sites: Mapping[str, str], responses: Any = None, **terms: Any
    ) -> Self:
        """The terms for sums like these.

        Parameters
        ----------
        piece : Knowledge
            Of any site, or of made-up rows: only its form is used.
        sites : mapping of str to str
        responses : sequence, optional
            All class labels, if the piece does not have all.
        **terms
            All other parameters.
        """
        names = piece.responses if responses is None else tuple(sorted(responses))
        form = {"classwise": piece.classwise, "fingerprint": piece.fingerprint is not None}
        return cls(sites, piece.specification, piece.task, names, **form | terms)

    @property
    def survivors(self) -> int:
        """How many sites must answer to the end."""
        return len(self.sites) - self.dropouts

    @cached_property
    def places(self) -> dict[str, int]:
        """Each site's place in the list."""
        return {name: place for place, name in enumerate(self.sites)}

    def to_json(self) -> str:
        """The terms as JSON, to be sent to all sites; `from_json` reads them."""
        facts = {f.name: getattr(self, f.name) for f in fields(self) if f.init}
        return canonical_json(facts | {"responses": saving.labels(self.responses)})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The terms that `to_json` wrote."""
        facts = parsed_json(text)
        return cls(**facts | {"responses": saving.labels_from(facts["responses"])})

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the terms, in hexadecimal: what each site's keys are bound to."""
        return sha256(b"traceless federation 1\0" + self.to_json().encode()).hexdigest()

    # --- sums as numbers that can be masked ------------------------------------------------

    def words(self, piece: Knowledge) -> Words:
        """The sums of a site as numbers modulo 2^64 or 2^128, one limb or two in a first axis."""
        self._check(piece)
        spread = piece._with(tuple(self.responses)) if piece.task == "classification" else piece
        total = integers.shifted(spread.total, self.weight_bits - piece.weight_bits)
        # no sum of products is larger than all sums of squares
        largest = int(abs(integers.wide(total.diagonal())).max(initial=0))
        n_limbs = 2 if self.wide else 1
        if largest > (2 ** (64 * n_limbs - 1) - 1) // len(self.sites):
            raise RangeError(
                f"A sum of {len(self.sites)} sites could be beyond 2^{64 * n_limbs - 1}. "
                + ("Give columns a coarser resolution." if self.wide else "Agree on wide=True.")
            )
        sums = integers.as_limbs(integers.packed(total))
        words = integers.extended(sums, n_limbs).reshape(n_limbs, -1)
        others = np.zeros((n_limbs, len(spread.counts)), dtype=np.uint64)
        others[0] = spread.counts
        lanes = np.zeros((n_limbs, LANES if self.fingerprint else 0), dtype=np.uint64)
        if spread.fingerprint is not None and self.fingerprint:
            lanes[-1] = spread.fingerprint.astype(np.uint64) << 48  # modulo 2^16
        return np.concatenate([words, others, lanes], axis=1)

    def knowledge(self, words: Words) -> Knowledge:
        """The knowledge that such numbers are; raises if no rows have these sums."""
        K, lanes = len(self.responses), None
        if self.fingerprint:
            words, lanes = words[:, :-LANES], (words[-1, -LANES:] >> 48).astype(np.uint16)
        n_counts = 1 if self.task == "regression" else K
        counts, words = words[0, -n_counts:], words[:, :-n_counts]
        if self.classwise:
            words = words.reshape(len(words), K, -1)
        width = (int((8 * words.shape[-1] + 1) ** 0.5) - 1) // 2
        total = integers.unpacked(integers.least(integers.of_limbs(words.copy())), width)
        rows = tuple(counts.view(np.int64).tolist())
        terms = dict(self.specification), self.task, tuple(self.responses)
        found = Knowledge(*terms, rows, total, self.weight_bits, lanes)
        return found._canonical().check_possible()

    def _check(self, piece: Knowledge) -> None:
        """Raise unless the sums of a site are of the form that was agreed on."""
        check_same_specification(self.specification, piece.specification)
        ours = {"task": self.task, "classwise": self.classwise}
        for name, value in ours.items():
            if getattr(piece, name) != value:
                raise MismatchError(
                    f"The sites agreed on {name}={value!r}; here it is {getattr(piece, name)!r}."
                )
        if self.fingerprint and piece.fingerprint is None:
            raise MismatchError("The sites agreed on fingerprints: learn with fingerprint=True.")
        new = [name for name in piece.responses if name not in self.responses]
        if new or (self.task != "classification" and len(piece.responses) != len(self.responses)):
            raise MismatchError(
                f"The sites agreed on {len(self.responses)} classes or targets, and here is "
                f"{new[0] if new else len(piece.responses)!r}: agree on all of them beforehand."
            )
        if piece.weight_bits > self.weight_bits:
            raise MismatchError(
                f"Weights have {piece.weight_bits} binary places here, and the sites agreed on "
                f"{self.weight_bits}: agree on weight_bits={piece.weight_bits} or more."
            )
        for label, n in zip(piece.responses, piece.counts, strict=False):
            if 0 < n < self.minimum_rows:
                raise FederationError(
                    f"This site has {n} rows of {label!r}, and the sites agreed on "
                    f"{self.minimum_rows} at least: few rows could be recognised in a total. Leave "
                    "them out, or merge with a neighbour first."
                )


def _neighbours(n: int, c: int, T: int) -> tuple[int, int]:
    """The smallest k, and t, that satisfy both bounds; see above."""
    m = n - 1
    for k in range(2, m + 1):
        corrupt, alive = _tail(m, c, k), _tail(m, T - 1, k)
        ways = comb(m, k)
        for t in range(1, k + 1):
            if n * corrupt[t] * _SECRECY <= ways:
                if n * (ways - alive[t]) * _SUCCESS <= ways:
                    return k, t
                break  # a larger t is only rarer to be reached
    raise ValueError(f"{n} sites cannot allow {c} to collude and {n - T} to drop out.")


def _tail(m: int, marked: int, k: int) -> list[int]:
    """For each t: in how many of the ways to draw k of m at least t are marked."""
    ways = [comb(marked, x) * comb(m - marked, k - x) for x in range(k + 1)]
    return [*reversed([*accumulate(reversed(ways))]), 0]
