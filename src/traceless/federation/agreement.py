"""What all sites agree on before a round: who takes part, what is summed, and who may fail.

Of n sites, c may work together with the coordinator, and a round ends with T survivors or more.
Two lists of survivors cannot both be signed by T sites as long as 2 T > n + c, since an honest site
signs one list only.

Of the r sites in a round, T ≤ r ≤ n, each shares its seeds among k others that it picks at random,
so that any t of them restore the seeds (Bell et al. 2020, section 4). With X the number of sites
of a kind among them, hypergeometric(r - 1, ·, k),

    r P(X_c ≥ t)       ≤ 2^-40     the c restore no seed of an honest site
    r P(X_(T-1) < t)   ≤ 2^-20     the survivors among them are enough

decide k and t; up to 40 sites, where k would be large anyway, all share with all. The tails are
summed in integers, so that every site finds the same numbers. Every site also requires t of its k
among the survivors, so that sites cannot be cut off by a coordinator that chooses who drops out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property
from hashlib import sha256
from itertools import accumulate
from math import comb
from typing import Any, Self

import numpy as np

from traceless.arithmetic import integers
from traceless.exceptions import FederationError
from traceless.federation.masks import Words
from traceless.files import saving
from traceless.files.container import canonical_json
from traceless.knowledge import Knowledge
from traceless.knowledge.fingerprint import LANES

_ALL_SHARE, _SECRECY, _SUCCESS = 40, 2**40, 2**20
_HEX = frozenset("0123456789abcdef")


def require(condition: Any, otherwise: str) -> None:
    """Raise FederationError with this sentence unless the condition holds."""
    if not condition:
        raise FederationError(otherwise)


def digest(value: Any) -> str:
    """SHA-256 of a value in JSON's types."""
    return sha256(canonical_json(value).encode()).hexdigest()


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
        All class labels that any site may have; otherwise as `Knowledge` has them.
    n_outputs : int
        Features of the map.
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
    table : optional
        Whatever else must be the same everywhere, in JSON's types: the columns in order, their
        units, what a blank stands for. It is compared, not read.

    Examples
    --------
    >>> from traceless import LSSVC
    >>> keys = {name: f"{k:064x}" for k, name in enumerate(["north", "south", "west"])}
    >>> piece = LSSVC().fit([[0.0], [1.0]], ["no", "yes"]).knowledge_
    >>> terms = Agreement.like(piece, keys, table={"columns": ["age"], "unit": "years"})
    >>> terms.colluding, terms.dropouts, terms.survivors
    (1, 0, 3)
    """

    sites: Mapping[str, str]
    specification: Mapping[str, Any]
    task: Any
    responses: Sequence[Any]
    n_outputs: int
    colluding: int = -1
    dropouts: int = -1
    minimum_rows: int = 20
    minimum_changes: int = -1
    classwise: bool = False
    fingerprint: bool = False
    wide: bool = False
    weight_bits: int = 0
    table: Any = None

    def __post_init__(self) -> None:
        n, keys = len(self.sites), [*self.sites.values()]
        right = len({*keys}) == n and {*map(len, keys)} == {64} and {*"".join(keys)} <= _HEX
        require(right, "Each site needs a public key of its own, of 64 hexadecimal digits.")
        c = self.colluding if self.colluding >= 0 else n // 3
        d = self.dropouts if self.dropouts >= 0 else max(0, (n - c - 1) // 2)
        least = self.minimum_changes if self.minimum_changes >= 0 else c + 2
        names = tuple(sorted(saving.labels_from(self.responses)))
        vars(self).update(colluding=c, dropouts=d, minimum_changes=least, responses=names)
        vars(self).update(sites=dict(sorted(self.sites.items())))
        right = n >= 3 and 2 * (n - d) > n + c and n - d - c >= 2  # of two, each sees the other
        said = f"Of {n} sites {c} cannot collude and {d} drop out: two lists could be signed,"
        require(right, f"{said} or a total show one honest site. Have more sites, or allow fewer.")

    @classmethod
    def like(cls, piece: Knowledge, sites: Mapping[str, str], **terms: Any) -> Self:
        """The terms for sums like these.

        Parameters
        ----------
        piece : Knowledge
            Of any site, or of made-up rows: only its form is used.
        sites : mapping of str to str
        **terms
            All other parameters, and the responses, if the piece does not have all classes.
        """
        names, prints = terms.pop("responses", piece.responses), piece.fingerprint is not None
        form = {"classwise": piece.classwise, "fingerprint": prints} | terms
        return cls(sites, piece.specification, piece.task, names, piece.n_outputs, **form)

    @property
    def survivors(self) -> int:
        """How many sites must answer to the end."""
        return len(self.sites) - self.dropouts

    def neighbours(self, present: int) -> tuple[int, int]:
        """With how many others a site shares its seeds, and how many restore them."""
        return _neighbours(present, self.colluding, self.survivors)

    def to_json(self) -> str:
        """The terms as JSON, to be sent to all sites: ``Agreement(**json.loads(text))``."""
        return canonical_json(asdict(self) | {"responses": saving.labels(self.responses)})

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the terms, in hexadecimal: what each site's keys are bound to."""
        return digest(["traceless federation 1", self.to_json()])

    # --- sums as numbers that can be masked ------------------------------------------------

    @cached_property
    def nothing(self) -> Knowledge:
        """The sums of no rows, in the form that was agreed on."""
        K, J = len(self.responses), self.n_outputs
        shape = (K, J + 1, J + 1) if self.classwise else (J + K, J + K)
        counts = (0,) * (1 if self.task == "regression" else K)
        terms = dict(self.specification), self.task, tuple(self.responses), counts
        lanes = np.zeros(LANES, np.uint16) if self.fingerprint else None
        return Knowledge(*terms, np.zeros(shape, np.int64), self.weight_bits, lanes)

    def words(self, piece: Knowledge) -> Words:
        """The sums of a site as numbers modulo 2^64 or 2^128, one limb or two in a first axis."""
        n_limbs = 2 if self.wide else 1
        self._check(piece)
        piece = piece._with(tuple(self.responses))
        total = integers.shifted(piece.total, self.weight_bits - piece.weight_bits)
        largest = int(np.asarray(total).max(initial=0))  # on the diagonal, a sum of squares
        fits = largest * len(self.sites) < 2 ** (64 * n_limbs - 1)
        require(fits, "Sums could be too large: agree on wide=True, or on a coarser resolution.")
        limbs = integers.extended(integers.as_limbs(integers.packed(total)), n_limbs)
        lanes = np.array(piece.fingerprint if self.fingerprint else (), np.uint64)
        counts = np.array(piece.counts)
        others = np.zeros((n_limbs, counts.size + lanes.size), np.uint64)
        others[0, : counts.size], others[-1, counts.size :] = counts, lanes << 48  # modulo 2^16
        return np.concatenate([limbs.reshape(n_limbs, -1), others], axis=1)

    def knowledge(self, words: Words) -> Knowledge:
        """The knowledge that such numbers are; raises if no rows have these sums."""
        zero, K = self.nothing, len(self.nothing.counts)
        words, others = np.split(words, [-K - LANES * self.fingerprint], axis=1)
        limbs = words.reshape(len(words), *zero.total.shape[:-2], -1).copy()
        total = integers.unpacked(integers.least(integers.of_limbs(limbs)), zero.total.shape[-1])
        lanes = (others[-1, K:] >> 48).astype(np.uint16) if self.fingerprint else None
        counts = tuple(others[0, :K].view(np.int64).tolist())
        found = replace(zero, counts=counts, total=total, fingerprint=lanes)
        return found._canonical().check_possible()

    def _check(self, piece: Knowledge) -> None:
        """Raise unless the sums of a site are of the form that was agreed on."""
        self.nothing._check_combinable(piece)
        new = {*piece.responses} - {*self.responses}
        require(not new, f"The sites have not agreed on classes {sorted(new)}: agree on all.")
        bits, few = piece.weight_bits, [n for n in piece.counts if n and n < self.minimum_rows]
        require(bits <= self.weight_bits, f"Weights are fractions: agree on weight_bits={bits}.")
        said = f"{self.minimum_rows} or more were agreed on: leave them out, or merge beforehand."
        require(not few, f"This site has {few[:1]} rows of a class, and {said}")


@cache
def _neighbours(r: int, c: int, T: int) -> tuple[int, int]:
    """The smallest k, and t, that satisfy both bounds; see above."""
    m = r - 1
    for k in range(m if r <= _ALL_SHARE else 2, m + 1):
        corrupt, alive, ways = _tail(m, c, k), _tail(m, T - 1, k), comb(m, k)
        t = next(t for t in range(1, k + 2) if r * corrupt[t] * _SECRECY <= ways)
        if r * (ways - alive[t]) * _SUCCESS <= ways:
            break  # for k = m at the latest, where t = c + 1
    return k, t


def _tail(m: int, marked: int, k: int) -> list[int]:
    """For each t: in how many of the ways to draw k of m at least t are marked."""
    ways = [comb(marked, x) * comb(m - marked, k - x) for x in range(k + 1)]
    return [*reversed([*accumulate(reversed(ways))]), 0]
