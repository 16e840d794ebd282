"""The points that a binary problem should hold (`traceless.hinge.machines` says which)."""

from __future__ import annotations

from typing import NamedTuple

from traceless.arithmetic.integers import Floats, Integers


class Target(NamedTuple):
    """The points that a problem should hold, and what makes it one of some machine.

    The solution f of the problem stands for ``scale`` · f + ``offset``.

    Attributes
    ----------
    ids : ids of the points, in ascending order: each row is ``copies`` points
    y : signs, -1.0 and 1.0
    bounds : the largest that each α may be
    levels : the f of each point on the margin
    total : Σyα
    """

    ids: Integers
    y: Floats
    bounds: Floats
    levels: Floats
    total: float = 0.0
    scale: float = 1.0
    offset: float = 0.0
    copies: int = 1
