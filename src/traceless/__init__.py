"""Machine learning that can be taken back.

Models that learn new rows, forget old ones and merge with models from elsewhere, exactly:
the same data gives the same bits, whatever the history.
"""

from traceless.distributed import from_spark, scan
from traceless.exceptions import (
    AlreadyMergedError,
    ConditionError,
    EngineError,
    MismatchError,
    NotLearnedError,
    RangeError,
    ResolutionWarning,
    UnsealableError,
)
from traceless.extreme import ESVM, LPSVM, wESVM
from traceless.knowledge import Knowledge
from traceless.lssvm import LSSVC, LSSVR
from traceless.path_svc import PathSVC
from traceless.window import SlidingWindow

__version__ = "0.1.0.dev0"
__all__ = [
    "ESVM",
    "LPSVM",
    "LSSVC",
    "LSSVR",
    "AlreadyMergedError",
    "ConditionError",
    "EngineError",
    "Knowledge",
    "MismatchError",
    "NotLearnedError",
    "PathSVC",
    "RangeError",
    "ResolutionWarning",
    "SlidingWindow",
    "UnsealableError",
    "from_spark",
    "scan",
    "wESVM",
]
