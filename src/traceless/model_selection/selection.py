"""What `select_rho` and `select_C` have in common: values of a parameter, and their scores."""

from __future__ import annotations

from typing import Any

import numpy as np

from traceless.arithmetic.integers import Floats
from traceless.parameters import positive


class Selection:
    """Base of `RhoSelection` and `CSelection`: ``scores`` has a row for each value."""

    scores: Floats

    @property
    def mean(self) -> Floats:
        """The mean score of each value."""
        return np.asarray(self.scores.mean(axis=1))

    @property
    def std(self) -> Floats:
        """The standard deviation of the scores of each value."""
        return np.asarray(self.scores.std(axis=1))

    def _best(self, values: Floats) -> Floats:
        """The values with the highest mean."""
        return np.asarray(values[self.mean == np.nanmax(self.mean)])

    def _shown(self, by: str, values: Floats, best: float, spread: bool) -> str:
        lines = [f"<{type(self).__name__} {by}"]
        for value, mean, std in zip(values, self.mean, self.std, strict=True):
            about, mark = f" ± {std:.5f}" if spread else "", "  best" if value == best else ""
            lines.append(f"  {value:<10.4g} {mean:10.5f}{about}{mark}")
        return "\n".join(lines) + ">"


def checked_values(name: str, values: Any) -> Floats:
    """The values to choose from: at least one, all positive."""
    if values is None:
        raise ValueError(f"Cross-validation needs {name}, the values to choose from.")
    found = np.array([positive(name, float(value)) for value in np.ravel(np.asarray(values))])
    if not found.size:
        raise ValueError(f"{name} is empty: give at least one value to choose from.")
    return found
