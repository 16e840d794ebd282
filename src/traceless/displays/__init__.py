"""Pictures in scikit-learn's style: made by `from_...`, drawn on axes by ``plot``.

The data are kept as attributes, so that they can be drawn again on other axes.
Matplotlib is imported when something is drawn: ``pip install 'traceless[plots]'``.
"""

from traceless.displays.forget import ForgetDisplay
from traceless.displays.history import HistoryDisplay
from traceless.displays.interval import CoefficientDisplay, IntervalDisplay
from traceless.displays.rho import RhoDisplay
from traceless.displays.update_cost import UpdateCostDisplay

__all__ = [
    "CoefficientDisplay",
    "ForgetDisplay",
    "HistoryDisplay",
    "IntervalDisplay",
    "RhoDisplay",
    "UpdateCostDisplay",
]
