"""Cross-validation by unlearning: learn all rows once, take each fold out again.

`cross_val_score`, `cross_val_predict` and `cross_validate` have scikit-learn's signatures and
return scikit-learn's numbers. `leave_one_out`, `influence` and `select_rho` are what the
closed form makes cheap beyond that. See docs/cross-validation.md.
"""

from traceless.model_selection.cross_validation import (
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from traceless.model_selection.jackknife import Influence, influence, leave_one_out
from traceless.model_selection.rho import RhoSelection, select_rho

__all__ = [
    "Influence",
    "RhoSelection",
    "cross_val_predict",
    "cross_val_score",
    "cross_validate",
    "influence",
    "leave_one_out",
    "select_rho",
]
