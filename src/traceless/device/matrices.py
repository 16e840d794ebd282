"""Large systems on a device: what `traceless.device.solve` needs of a matrix and of arrays.

Sums modulo 2^64 are exact where what they add up to is within int64, on a device as on the host;
products of integers in float64 while they stay below 2^53.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from traceless.arithmetic.integers import Floats, Integers, wide
from traceless.device.memory import fetch, send
from traceless.device.tensors import Tensor, as_tensor, to_array

Products = Callable[[Tensor, int], tuple[Tensor, Tensor]]
_FITS = 2**62


class TensorMatrix:
    """A symmetric positive semidefinite matrix of int64 on a device."""

    dtype = np.dtype(np.int64)

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self.arrays = _Arrays(tensor.device)

    @classmethod
    def of(cls, tensor: Tensor, shift: Integers | None) -> TensorMatrix | None:
        """Σφφᵀ, made that of features less a shift (`traceless.solvers.centring`), in place.

        None if it would be beyond int64.
        """
        S = cls(tensor)
        if shift is None:
            return S
        s, m, n = wide(S[:, -1]), wide(shift), int(S[-1, -1])
        new = s - n * m
        new[-1] = n
        diagonal = wide(S.diagonal()) - m * (s + new)
        if diagonal[:-1].max(initial=n) >= _FITS:
            return None
        first = tensor[:, -1].clone()
        moved, last = (torch.from_numpy(_low_word(v)).to(tensor.device) for v in (m, new))
        for rows in range(0, len(tensor), 1024):  # what is made on the way stays small
            some = slice(rows, rows + 1024)
            tensor[some] -= moved[some, None] * last
            tensor[some] -= first[some, None] * moved
        return S

    def __len__(self) -> int:
        return len(self.tensor)

    def __getitem__(self, index: Any) -> NDArray[Any]:
        return np.asarray(to_array(self.tensor[index]))

    def diagonal(self) -> Integers:
        """The diagonal, for the host."""
        return np.array(to_array(self.tensor.diagonal()))

    def of_features(self, used: NDArray[np.intp]) -> TensorMatrix:
        """The same for some of the features."""
        kept = torch.from_numpy(used).to(self.tensor.device)
        return TensorMatrix(self.tensor[kept][:, kept])

    def on_host(self) -> Integers:
        """All of it, for the host."""
        return np.asarray(to_array(self.tensor))


class _Arrays:
    """What a solve needs of arrays, in torch."""

    rint, sqrt = torch.round, torch.sqrt

    def __init__(self, device: Any) -> None:
        self._device = device

    def here(self, array: Tensor) -> NDArray[Any]:
        """An array for the host."""
        return fetch(array)

    def there(self, array: NDArray[Any]) -> Tensor:
        """The same for the device."""
        return torch.from_numpy(np.array(array)).to(self._device)

    def prepared(self, S: TensorMatrix, own: Integers, h: int) -> tuple[Tensor, Products]:
        """S in float64, and products with H 2^h + L = S with another diagonal."""
        whole, upper = S.tensor, (own + (1 << (h - 1))) >> h
        high = (whole + (1 << (h - 1))) >> h
        H = high.double()
        high <<= h
        L = torch.sub(whole, high, out=high).double()
        self.put_diagonal(H, upper)
        self.put_diagonal(L, own - (upper << h))

        def products(pieces: Tensor, g: int) -> tuple[Tensor, Tensor]:
            (Hu, Hv), (Lu, Lv) = ((limb @ pieces).chunk(2, dim=1) for limb in (H, L))
            near = (Hu * 2.0**g + Hv) * 2.0**h + (Lu * 2.0**g + Lv)
            Hu, Hv, Lu, Lv = (part.to(torch.int64) for part in (Hu, Hv, Lu, Lv))
            return near, (((Hu << g) + Hv) << h) + (Lu << g) + Lv

        return whole.double(), products

    def put_diagonal(self, A: Tensor, values: Any) -> None:
        """Replace the diagonal."""
        A.diagonal().copy_(self.there(np.asarray(values, dtype=np.float64)))

    def factor(self, A: Tensor) -> Tensor:
        """The Cholesky factor of A."""
        factor, failed = torch.linalg.cholesky_ex(A)
        if int(failed):
            raise np.linalg.LinAlgError("not positive definite")
        return factor

    def solved(self, factor: Tensor, B: Tensor) -> Tensor:
        """A⁻¹B."""
        return torch.cholesky_solve(B, factor)

    def beside(self, A: Tensor, B: Tensor) -> Tensor:
        """Two matrices beside each other."""
        return torch.cat([A, B], 1)

    def whole(self, A: Any) -> Tensor:
        """Integers as int64; OverflowError where those of the host do not fit."""
        if isinstance(A, np.ndarray):
            return self.there(np.ascontiguousarray(A, dtype=np.int64))
        return A.to(torch.int64)

    def floats(self, A: Tensor) -> Tensor:
        """In float64."""
        return A.double()

    def largest(self, A: Tensor) -> Floats:
        """The largest absolute value of each column, for the host."""
        return self.here(abs(A).amax(0))


def sent(sums: Integers, device: Any) -> Tensor:
    """A copy on a device."""
    out = torch.empty(sums.shape, dtype=torch.int64, device=device)
    send(as_tensor(sums), out)
    return out


def _low_word(a: Integers) -> NDArray[np.int64]:
    """Python integers modulo 2^64, as int64."""
    return np.asarray((a & (2**64 - 1)).astype(np.uint64).view(np.int64))
