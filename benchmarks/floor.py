"""What a job cannot avoid: flops through dgemm, bytes through memory, whichever takes longer.

    floor = max(flops / rate of a matrix product, bytes / rate of streaming)

Both rates are measured here, on the cores at hand and with the BLAS that the jobs use: the
fastest of some rounds, since a floor is what nobody can go below.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg.blas import dgemm, dsymv, dsyr

from papers.timing import interleave


@dataclass(frozen=True)
class Rates:
    """Flops per second of dgemm, and bytes per second of reading and writing half a J × J."""

    flops: float
    bytes: float

    @classmethod
    def measured(cls, J: int = 4096) -> Rates:
        """J says how large the matrix is that streams by: a small one stays in the caches."""
        A = np.asfortranarray(np.random.default_rng(0).random((1500, 1500)))
        P, x = np.eye(J, order="F"), np.ones(J)

        def stream() -> None:
            dsymv(1.0, P, x)
            dsyr(1e-9, x, a=P, overwrite_a=True)

        t = interleave({"dgemm": lambda: dgemm(1.0, A, A), "stream": stream}, 15, of=min)
        return cls(2 * 1500**3 / t["dgemm"], 1.5 * 8 * J * J / t["stream"])

    def floor(self, flops: float, bytes_: float = 0.0) -> float:
        """Seconds."""
        return max(flops / self.flops, bytes_ / self.bytes)

    def __str__(self) -> str:
        return (
            f"The floor is the longer of flops at {self.flops / 1e9:.0f} Gflop/s (dgemm) and "
            f"bytes at {self.bytes / 1e9:.0f} GB/s (streaming), as measured here."
        )


def gram_flops(n: float, J: float) -> float:
    """The symmetric sum of n outer products of J numbers: half a matrix product."""
    return n * J * (J + 1)


def cholesky_flops(J: float) -> float:
    """A factorisation."""
    return J**3 / 3
