"""Predictions on a device: sums Σ_j c_j z_j, correctly rounded, and whose is the largest.

Codes c are cut into digits of eight bits, and so are coefficients, scaled such that |z| ≤ 1:

    z_j = 2^(2 - 8 D) Σ_m 256^m z_jm + r_j,     P_am = Σ_j c_ja z_jm

P is exact in int32 for J < 2^17. The coefficient of the constant feature, which is much larger
than the others on a fine grid, is added as it is.

Three places a + m at a time are added up in int64, below 2^50, and these sums in twofold
precision: s + t with an error of at most δ, which includes max|c| Σ_j |r_j|. Where s + (t - δ) and
s + (t + δ) round to the same float64, so does the exact sum. Rows with another are taken again with
more digits, and then left to the host.

The class with the largest score takes fewer digits: with three of them, v ± δ, and a row is
decided where the lower end of one class is above the upper ends of all others. All others are
scored exactly. So labels, too, are those of the exact scores.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch

from traceless.arithmetic.plain import two_sum
from traceless.arithmetic.products import Coefficients
from traceless.device import kernels
from traceless.device.cutting import MOST, cut, digits_for, padded
from traceless.device.encoders import Encoder
from traceless.device.gram import has_small_products, multiply
from traceless.device.memory import answered, block_rows, free_there, smaller
from traceless.device.tensors import HostRows, Tensor, to_array
from traceless.features.feature_map import BoundMap

_FEW, _MANY, _MOST = 3, 9, 13  # digits of coefficients: for labels, for scores, for close calls
_BYTES, _LEAST = 2**31, 2**24  # that the products of a block of rows may take
_WIDEST = 2**17 - 16  # features whose products fit into int32
_SAFE = 400  # exponents of coefficients that may be scaled by a power of two
_HOST_ROWS = 4096
_FEWEST = 256  # rows of a block, below which smaller blocks are no help


def scores(solution: Coefficients, phi: BoundMap, X: Any) -> Tensor:
    """``(codes - shift) Z`` of rows, each entry the float64 nearest to the exact sum.

    Those of rows in the host's memory are there too.
    """
    return _answered(partial(_scores, solution, phi), X, solution.Z.shape[1])


def winners(solution: Coefficients, phi: BoundMap, X: Any) -> Tensor:
    """The number of the largest of several scores of each row, the first of equal ones."""
    return _answered(partial(_winners_of, solution, phi), X, solution.Z.shape[1])


def _answered(work: Callable[[Tensor, int], Tensor], X: Any, K: int) -> Tensor:
    """What is found for rows; where memory is short, in smaller blocks."""

    def needs() -> str:
        return (
            f"{len(X)} rows of {X.shape[1]} columns and {K} classes or targets take more of "
            f"{X.device}'s memory than there is: {free_there(X.device)}. Free some, or ask for "
            "fewer rows at a time. Nothing was changed."
        )

    def found(some: Tensor) -> Tensor:
        return smaller(partial(work, some), _BYTES, _LEAST, needs)

    if not isinstance(X, HostRows):
        return found(X)
    return smaller(partial(answered, X, found), block_rows(X, 2**17), _FEWEST, needs)


def _scores(solution: Coefficients, phi: BoundMap, X: Tensor, room: int) -> Tensor:
    model = _Model.of(solution, phi, X)
    out = torch.empty((len(X), solution.Z.shape[1]), dtype=torch.float64, device=X.device)
    left = torch.arange(len(X), device=X.device)
    if model is not None:
        for digits in (_MANY, _MOST):
            left = left[model.score(X, left, out, digits, room)] if len(left) else left
    for some in left.split(_HOST_ROWS):
        found = solution.times(phi.codes(to_array(X[some])))
        out[some] = torch.from_numpy(found).to(out.device)
    return out


def _winners_of(solution: Coefficients, phi: BoundMap, X: Tensor, room: int) -> Tensor:
    model = _Model.of(solution, phi, X)
    if model is None:
        return _scores(solution, phi, X, room).argmax(1)
    best = torch.empty(len(X), dtype=torch.int64, device=X.device)
    for rows in model.blocks(len(X), _FEW, room):
        unsure = model.choose(X[rows], best[rows])
        if len(unsure):
            best[rows][unsure] = _scores(solution, phi, X[rows][unsure], room).argmax(1)
    return best


class _Model:
    """Coefficients in digits, and the map, on a device."""

    def __init__(self, solution: Coefficients, phi: BoundMap, device: Tensor) -> None:
        self.encoder, bias = Encoder(phi, device), int(phi.has_bias)
        self.J, self.K, self.digits = self.encoder.width, solution.Z.shape[1], 2
        Z = torch.from_numpy(np.array(solution.Z.T)).to(device)
        own = Z[:, -1] if bias else torch.zeros_like(Z[:, 0])
        Z = Z[:, : self.J]
        shift = np.zeros(len(phi.steps)) if solution.shift is None else solution.shift
        top, constant = to_array(Z.abs().amax(1)), to_array(own)
        self._exponents = np.frexp(top)[1]
        apart = np.where(constant == 0, 0, np.frexp(constant)[1] - self._exponents)
        farthest = max(np.abs(self._exponents).max(), np.abs(apart).max())
        finite = np.isfinite(top).all() and np.isfinite(constant).all()
        self.safe = bool(finite and farthest <= _SAFE and not (bias and shift[-1]))
        self._scaled = Z * torch.from_numpy(np.ldexp(1.0, -self._exponents)).to(device)[:, None]
        self._tables: dict[int, tuple[Tensor, Tensor, Tensor]] = {}
        self.constant, self.shift = own.contiguous(), torch.from_numpy(np.array(shift)).to(device)

    @classmethod
    def of(cls, solution: Coefficients, phi: BoundMap, X: Tensor) -> _Model | None:
        """The model for rows; made once for a device. None where the host must score."""
        small = has_small_products(X.device) and len(phi.steps) <= _WIDEST
        if not small or not Encoder.takes(phi) or not solution.Z.size:
            return None
        made: dict[object, _Model] = vars(solution).setdefault("_on_devices", {})
        model = made.get(X.device)
        if model is None:
            model = made[X.device] = cls(solution, phi, X.device)
        return model if model.safe else None

    def table(self, D: int) -> tuple[Tensor, Tensor, Tensor]:
        """Coefficients in so many digits, what these leave out, and the unit of the last."""
        if D not in self._tables:
            J, K, device = self.J, self.K, self._scaled.device
            digits, rest = _coefficient_digits(self._scaled, D)
            planes = torch.zeros((padded(D * K, 8), padded(J, 16)), dtype=torch.int8, device=device)
            planes[: D * K, :J] = digits.reshape(D * K, J)
            power = np.ldexp(1.0, self._exponents - (8 * D - 2))
            self._tables[D] = planes, rest, torch.from_numpy(power).to(device)
        return self._tables[D]

    def blocks(self, n: int, D: int, room: int) -> list[slice]:
        """Rows whose products fit into so many bytes."""
        size = room // max(4 * self.digits * D * self.K, 3 * self.J)
        count = -(-n // max(256, min(size, 2**17)))
        return [slice(n * k // count, n * (k + 1) // count) for k in range(count)]

    def score(self, X: Tensor, rows: Tensor, out: Tensor, D: int, room: int) -> Tensor:
        """Write the scores of some rows; returns which of these are undecided."""
        _, rest, power = self.table(D)
        unsure = torch.ones(len(rows), dtype=torch.int32, device=X.device)
        everything = len(rows) == len(X)
        for block in self.blocks(len(rows), D, room):
            some = X[block] if everything else X[rows[block]]
            P, largest = self._products(some, D)
            if P is None:
                continue
            unsure[block] = 0
            target = out[block] if everything else torch.empty_like(out[: len(some)])
            work = kernels.rounded if kernels.serves(P) else _rounded
            work(P, rest * largest, power, self.constant, target, unsure[block])
            if not everything:
                out[rows[block]] = target
        return unsure.nonzero()[:, 0]

    def choose(self, X: Tensor, best: Tensor) -> Tensor:
        """Write the number of the largest score; returns the rows that are undecided."""
        _, rest, power = self.table(_FEW)
        P, largest = self._products(X, _FEW)
        if P is None or self.J << (8 * (len(P) + _FEW) - 1) >= 2**63:  # beyond int64
            return torch.arange(len(X), device=X.device)
        unsure = torch.empty(len(X), dtype=torch.int32, device=X.device)
        work = kernels.winners if kernels.serves(P) else _winners
        work(P, power, self.constant, rest * largest * power, best, unsure)
        return unsure.nonzero()[:, 0]

    def _products(self, X: Tensor, D: int) -> tuple[Tensor | None, float]:
        """P_am, of shape (digits of codes, rows, D, K), and the largest code; None if too large."""
        codes, largest = self._code_digits(X)
        if codes is None:
            return None, 0.0
        shape = len(codes), len(X), D * self.K
        P = torch.empty(shape, dtype=torch.int32, device=X.device)
        for part, out in zip(codes, P, strict=True):
            multiply(part, self.table(D)[0], out)
        return P.view(len(codes), len(X), D, self.K), largest

    def _code_digits(self, X: Tensor) -> tuple[Tensor | None, float]:
        """Digits of codes less the shift, (digits, rows, features), and the largest of these.

        None where they are too large, or no numbers at all: the host says so.
        """
        n, features, encoder = len(X), self.encoder.width, self.encoder
        shape = max(padded(n, 8), 32), padded(self.J, 16)
        ones = torch.ones(features, dtype=torch.float64, device=X.device)
        linear = encoder.scale is not None
        size = n if linear else encoder.rows
        while True:
            codes = torch.empty((self.digits, *shape), dtype=torch.int8, device=X.device)
            codes[:, n:] = 0
            codes[:, :, features:] = 0
            peak = torch.ones(1, dtype=torch.int32, device=X.device)
            for start in range(0, n, max(size, 1)):
                some = X[start : start + size]
                values, scale = (some, encoder.scale) if linear else (encoder.codes(some), ones)
                cut(values, scale, codes.transpose(1, 2), start, peak, self.shift[:features])
            largest = int(peak)
            needed = digits_for(largest)
            if needed > MOST:
                return None, 0.0
            if needed <= len(codes):  # another thread may have raised `digits` since
                return codes[:needed], float(largest)
            self.digits = needed


def _coefficient_digits(Z: Tensor, D: int) -> tuple[Tensor, Tensor]:
    """Digits of numbers |z| ≤ 1, (D, *shape), and Σ|r| of each row in units of the last digit.

    2^(8 D - 2) z is cut into pieces of four digits, as int64 holds them, and these into digits,
    from the last one on; a carry goes up.
    """
    lower, rest = (D - 1) // 4, Z * 2.0 ** (8 * ((D - 1) % 4 + 1) - 2)
    pieces = [rest.round()]
    rest = rest - pieces[0]
    for _ in range(lower):
        rest = rest * 2.0**32
        pieces.append(rest.round())
        rest = rest - pieces[-1]
    digits: list[Tensor] = []
    carry = torch.zeros_like(Z, dtype=torch.int64)
    for piece in reversed(pieces):
        carry = carry + piece.to(torch.int64)
        for _ in range(min(4, D - len(digits))):
            digit = ((carry + 128) & 255) - 128
            digits.append(digit.to(torch.int8))
            carry = (carry - digit) >> 8
    return torch.stack(digits), rest.abs().sum(1) * (1 + 1e-6)


def _rounded(
    P: Tensor, rest: Tensor, power: Tensor, constant: Tensor, out: Tensor, unsure: Tensor
) -> None:
    """Scores from products of digits, and which rows have one that is undecided.

    Parameters
    ----------
    P : int32 tensor of shape (A, n, D, K)
    rest : float64 tensor of shape (K,)
        max|c| Σ_j |r_j|, in units of the last digit.
    power : float64 tensor of shape (K,)
        That unit.
    constant : float64 tensor of shape (K,)
        To be added to each score.
    out : float64 tensor of shape (n, K)
    unsure : int32 tensor of shape (n,)
    """
    A, n, D, K = P.shape
    groups = (A + D - 2) // 3 + 1
    s = torch.zeros((n, K), dtype=torch.float64, device=P.device)
    t, size = torch.zeros_like(s), torch.zeros_like(s)
    for g in range(groups):
        whole = torch.zeros((n, K), dtype=torch.int64, device=P.device)
        for a in range(A):
            for m in range(max(0, 3 * g - a), min(D, 3 * g + 3 - a)):
                whole.add_(P[a, :, m], alpha=256 ** ((a + m) % 3))
        total = two_sum(whole.double() * 2.0 ** (24 * g), s)
        s, t, size = total[0], t + total[1], size + abs(total[1])
    total = two_sum((constant / power).expand_as(s), s)
    s, t, size = total[0], t + total[1], size + abs(total[1])
    size = size * ((groups + 5) * 2.0**-52) + rest
    high = s + (t + size)
    unsure |= (high != s + (t - size)).any(1)
    torch.add(high * power, 0.0, out=out)


def _winners(
    P: Tensor, power: Tensor, constant: Tensor, bound: Tensor, best: Tensor, unsure: Tensor
) -> None:
    """The number of the largest score of each row, and which rows are undecided.

    Parameters are those of `_rounded`; `bound` is that of a score, in units of scores.
    """
    A, n, D, K = P.shape
    whole = torch.zeros((n, K), dtype=torch.int64, device=P.device)
    for a in range(A):
        for m in range(D):
            whole.add_(P[a, :, m], alpha=256 ** (a + m))
    value = whole.double() * power
    room = bound + (value.abs() + constant.abs()) * 2.0**-50
    value += constant
    low, high = value - room, value + room
    sure, who = low.max(1)
    high[torch.arange(n, device=P.device), who] = -torch.inf
    best.copy_(who)
    unsure.copy_(~(sure > high.amax(1)))
