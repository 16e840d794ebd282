"""The path of a change of a `PathSVC`, `PathSVR` or `PathOneClass`."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from traceless.arithmetic.integers import Floats
from traceless.displays.canvas import BLUE, ORANGE, axes_for, legend_beside
from traceless.estimators.c_path import CPath, walked
from traceless.estimators.path_machine import PathMachine

_COLOURS = {"stays": "0.6", "comes": BLUE, "goes": ORANGE}


@dataclass
class PathDisplay:
    """The path of a change: dual coefficients over θ, with the breakpoints marked.

    Made by `from_estimator`; between breakpoints coefficients are straight lines.

    Attributes
    ----------
    theta : ndarray of shape (n_points_on_path,)
        From 0, before the change, to 1, after it.
    alpha : ndarray of shape (n_points_on_path, n_rows)
        Dual coefficients of all rows of the binary problem at these θ. A `PathSVR` has two of
        each row, below and above the tube.
    role : ndarray of shape (n_rows,)
        "stays", "comes" or "goes".
    classes : tuple
        The two classes of the problem; None for all others.
    C : ndarray of shape (n_points_on_path,) or None
        C at these θ, where the path is one to another C.
    is_whole : bool
        Whether it is a `CPath`: parts α / C of the bound are drawn, over the logarithm of C.
    """

    theta: Floats
    alpha: Floats
    role: NDArray[Any]
    classes: tuple[Any, Any]
    C: Floats | None = None
    is_whole: bool = False

    @property
    def breakpoints(self) -> Floats:
        """θ where the path bends."""
        return self.theta[1:-1]

    @classmethod
    def from_estimator(
        cls,
        estimator: PathMachine,
        *,
        add: Any = None,
        forget: Any = None,
        ids: Any = None,
        C: float | None = None,
        classes: tuple[Any, Any] | None = None,
        ax: Any = None,
    ) -> Self:
        """Follow a change on a copy of the estimator, and draw its path.

        Parameters
        ----------
        estimator : PathSVC, PathSVR or PathOneClass
            Fitted; it is not changed.
        add, forget : tuple (X, y) or (X, y, sample_weight), optional
            Rows that come and go, as for ``update``.
        ids : array-like of int, optional
            Rows that go, by their ids, in place of `forget`.
        C : float, optional
            In place of rows: the path to this C. It is the solution for every C between the one
            that is set and this one.
        classes : tuple of two labels, optional
            Which binary problem, where there are several; by default the first that the
            change touches.
        ax : matplotlib axes, optional

        Returns
        -------
        PathDisplay

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from traceless import PathSVC
        >>> from traceless.displays import PathDisplay
        >>> X, y = load_iris(return_X_y=True)
        >>> svc = PathSVC(C=10.0, gamma=0.3).fit(X[50:140], y[50:140])
        >>> display = PathDisplay.from_estimator(svc, add=(X[140:], y[140:]))
        >>> display.alpha.shape[1]
        100
        """
        check_is_fitted(estimator)
        if not isinstance(estimator, PathMachine):
            raise TypeError(f"A PathSVC follows paths, got {type(estimator).__name__}.")
        if C is not None and (add is not None or forget is not None or ids is not None):
            raise ValueError("A path is drawn to other rows or to another C, not to both.")

        def change(other: Any) -> None:
            if C is None:
                other.update(add=add, forget=forget if ids is None else np.asarray(ids))
            else:
                other.set_params(C=C).refresh()

        walk = walked(copy.deepcopy(estimator).refresh(), classes, change)
        stays = np.isin(walk.ids, walk.ids_after)
        n_new = walk.alpha.shape[1] - len(stays)
        role = np.where(stays, "stays", "goes").tolist() + ["comes"] * n_new
        levels = None if C is None else (1.0 - walk.theta) * estimator.C + walk.theta * C
        return cls(walk.theta, walk.alpha, np.array(role), walk.classes, levels).plot(ax)

    @classmethod
    def from_c_path(cls, path: CPath, ax: Any = None) -> Self:
        """Draw the solution for every C.

        Parameters
        ----------
        path : CPath
            As made by `PathSVC.c_path`.
        ax : matplotlib axes, optional

        Returns
        -------
        PathDisplay
            With C on a logarithmic axis.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from traceless import PathSVC
        >>> from traceless.displays import PathDisplay
        >>> X, y = load_iris(return_X_y=True)
        >>> path = PathSVC(gamma=0.3).fit(X[50:], y[50:]).c_path(0.1, 10.0)
        >>> display = PathDisplay.from_c_path(path)
        >>> display.alpha.shape == (len(path.C), 100)
        True
        """
        theta = (path.C - path.C[0]) / (path.C[-1] - path.C[0])
        role = np.full(len(path.ids), "stays")
        return cls(theta, path.alpha, role, path.classes, path.C, is_whole=True).plot(ax)

    def plot(self, ax: Any = None) -> Self:
        """Draw the path.

        Parameters
        ----------
        ax : matplotlib axes, optional
            New ones by default.

        Returns
        -------
        self
            With ``ax_``, ``figure_`` and ``lines_``.
        """
        ax = axes_for(self, ax, figsize=(7.0, 4.0))
        x = self.theta if self.C is None else self.C
        moves = np.ptp(self.alpha, axis=0) > 0.0
        along, height, label = x, self.alpha, "α"
        if self.is_whole:  # parts of the bound; straight lines in C are curves in its logarithm
            along = np.union1d(x, np.geomspace(x[0], x[-1], 400))
            height = np.column_stack([np.interp(along, x, one) for one in self.alpha.T])
            height, label = height / along[:, None], "α / C"
        self.lines_ = []
        for role, colour in _COLOURS.items():
            which = moves & (self.role == role)
            width = 0.8 if role == "stays" else 1.6
            self.lines_ += ax.plot(along, height[:, which], color=colour, lw=width)
            ax.plot([], [], color=colour, label=role)
        marks = ax.get_xaxis_transform()
        ax.vlines(x[1:-1], -0.06, -0.01, transform=marks, color="k", lw=0.6, clip_on=False)
        ax.set(xlim=(x.min(), x.max()), xlabel="θ" if self.C is None else "C", ylabel=label)
        ax.tick_params(axis="x", pad=14)
        if self.is_whole:
            ax.set_xscale("log")
        else:
            legend_beside(ax)
        ax.set_title(f"{len(self.breakpoints)} breakpoints", loc="right", fontsize="medium")
        return self
