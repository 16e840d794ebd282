"""Sums in digits for float64, for as long as the solvers read them so."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceless.arithmetic.integers import Sums, Wide
from traceless.arithmetic.plain import Limbs as Words

__all__ = ["Sums", "Wide", "in_digits"]

_CACHE = 2**14


def in_digits(words: Words, g: int, n: int) -> NDArray[np.float64]:
    """The numbers as Σ_k digits_k 2^(g k), with n digits between ±2^(g-1), in float64."""
    out = np.empty((n, *words.shape[1:]))
    size = max(1, _CACHE // (n * max(1, out[0, 0].size)))
    for rows in (slice(i, i + size) for i in range(0, out.shape[1], size)):
        part = words[:, rows].view(np.int64)
        carry: Any = 0
        for k, digit in enumerate(out[:, rows]):
            word, start = divmod(k * g, 64)
            bits = part[word] >> start if word < len(part) else part[-1] >> 63
            if start + g > 64 and word + 1 < len(part):
                bits = (bits & ((1 << (64 - start)) - 1)) | (part[word + 1] << (64 - start))
            bits = (bits & ((1 << g) - 1)) + carry
            carry = bits >> (g - 1)  # 0 or 1, and 2 where a carry has made it 2^g
            carry -= carry >> 1
            digit[:] = bits - (carry << g)
    return out
