"""Machine learning that can be taken back.

Models that learn new rows, forget old ones and merge with models from elsewhere, exactly:
the same data gives the same bits, whatever the history.
"""

from traceless.exceptions import (
    ConditionError,
    MismatchError,
    NotLearnedError,
    RangeError,
    ResolutionWarning,
    UnsealableError,
)
from traceless.knowledge import Knowledge
from traceless.lssvm import LSSVC, LSSVR

__version__ = "0.1.0.dev0"
__all__ = [
    "LSSVC",
    "LSSVR",
    "ConditionError",
    "Knowledge",
    "MismatchError",
    "NotLearnedError",
    "RangeError",
    "ResolutionWarning",
    "UnsealableError",
]
