"""ρ against the exact cross-validated score, or the evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from traceless.arithmetic.integers import Floats
from traceless.displays.canvas import BLUE, ORANGE, axes_for, quieten


@dataclass
class RhoDisplay:
    """The scores of many ρ, with the best one marked.

    Made by `from_selection`.

    Attributes
    ----------
    rhos : ndarray of shape (n_rhos,)
    mean, std : ndarray of shape (n_rhos,)
        Of the scores over the splits.
    best : float
        The ρ that was chosen.
    score_name : str
    """

    rhos: Floats
    mean: Floats
    std: Floats
    best: float
    score_name: str = "score"

    @classmethod
    def from_selection(cls, selection: Any, *, score_name: str = "score", ax: Any = None) -> Self:
        """Draw what `traceless.model_selection.select_rho` found.

        Parameters
        ----------
        selection : RhoSelection
        score_name : str, default="score"
            What the scores are, for the axis; "log evidence" if they are.
        ax : matplotlib axes, optional

        Returns
        -------
        RhoDisplay

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from traceless import LSSVR
        >>> from traceless.displays import RhoDisplay
        >>> from traceless.model_selection import select_rho
        >>> X, y = load_diabetes(return_X_y=True)
        >>> selection = select_rho(LSSVR(), X, y, [0.01, 0.1, 1.0])
        >>> RhoDisplay.from_selection(selection, score_name="R²").best
        0.1
        """
        order = selection.rhos.argsort()
        rhos, mean, std = (v[order] for v in (selection.rhos, selection.mean, selection.std))
        if selection.method == "evidence" and score_name == "score":
            score_name = "log evidence"
        return cls(rhos, mean, std, selection.best, score_name).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the mean score of each ρ, and a band of one standard deviation of the splits.

        Parameters
        ----------
        ax : matplotlib axes, optional
            New ones by default.

        Returns
        -------
        self
            With ``ax_``, ``figure_``, ``line_`` and ``band_``.
        """
        ax = axes_for(self, ax)
        self.band_ = ax.fill_between(
            self.rhos, self.mean - self.std, self.mean + self.std, color=BLUE, alpha=0.15, lw=0
        )
        (self.line_,) = ax.plot(self.rhos, self.mean, "o-", color=BLUE, ms=4)
        height = self.mean[self.rhos == self.best].max()
        ax.plot(self.best, height, "o", color=ORANGE, ms=9)
        look = {"textcoords": "offset points", "ha": "center", "color": ORANGE}
        said = f"{height:.3g} at ρ = {self.best:.2g}"
        ax.annotate(said, (self.best, height), (0, 10), **look)
        crossed = "" if self.score_name == "log evidence" else ", cross-validated"
        ax.set(xscale="log", xlabel="ρ", ylabel=f"{self.score_name}{crossed}")
        ax.margins(y=0.12)
        quieten(ax)
        return self
