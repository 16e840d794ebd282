"""Exact predictions on a device."""

from __future__ import annotations

import torch

from traceless.arithmetic.products import Coefficients
from traceless.device.tensors import Tensor, to_array
from traceless.features.feature_map import BoundMap


def scores(solution: Coefficients, phi: BoundMap, X: Tensor) -> Tensor:
    """``(codes - shift) Z`` of rows, each entry the float64 nearest to the exact sum."""
    out = torch.empty((len(X), solution.Z.shape[1]), dtype=torch.float64, device=X.device)
    for start in range(0, len(X), 4096):
        rows = slice(start, start + 4096)
        out[rows] = torch.from_numpy(solution.times(phi.codes(to_array(X[rows])))).to(X.device)
    return out
