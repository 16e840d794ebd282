"""Pictures in scikit-learn's style: made by `from_estimator`, drawn on axes by ``plot``.

The data are kept as attributes, so that they can be drawn again on other axes.
Matplotlib is imported when something is drawn: ``pip install 'traceless[plots]'``.
"""

from traceless.displays.forget import ForgetDisplay
from traceless.displays.history import HistoryDisplay

__all__ = ["ForgetDisplay", "HistoryDisplay"]
