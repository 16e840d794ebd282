"""Machine learning that can be taken back.

Models that learn new rows, forget old ones and merge with models from elsewhere, exactly:
the same data gives the same bits, whatever the history.

Names are imported when they are first used, so that the command line starts at once.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from traceless.estimators.by_group import fit_by
    from traceless.estimators.loading import load
    from traceless.estimators.lssvm import LSSVC, LSSVR
    from traceless.estimators.path_one_class import PathOneClass
    from traceless.estimators.path_svc import PathSVC
    from traceless.estimators.path_svr import PathSVR
    from traceless.estimators.proximal import ESVM, LPSVM, wESVM
    from traceless.estimators.sliding_window import SlidingWindow
    from traceless.exceptions import (
        AlreadyLearnedError,
        FileError,
        MismatchError,
        NotLearnedError,
        RangeError,
        ResolutionWarning,
        RevealingWarning,
        StoreError,
        TableError,
    )
    from traceless.knowledge import Knowledge
    from traceless.sources import from_batches, from_spark, on_device, on_spark, scan
    from traceless.store import Store

    __version__: str

__all__ = [
    "ESVM",
    "LPSVM",
    "LSSVC",
    "LSSVR",
    "AlreadyLearnedError",
    "FileError",
    "Knowledge",
    "MismatchError",
    "NotLearnedError",
    "PathOneClass",
    "PathSVC",
    "PathSVR",
    "RangeError",
    "ResolutionWarning",
    "RevealingWarning",
    "SlidingWindow",
    "Store",
    "StoreError",
    "TableError",
    "fit_by",
    "from_batches",
    "from_spark",
    "load",
    "on_device",
    "on_spark",
    "scan",
    "wESVM",
]

_MODULES = {
    "estimators.by_group": ["fit_by"],
    "estimators.loading": ["load"],
    "estimators.lssvm": ["LSSVC", "LSSVR"],
    "estimators.path_one_class": ["PathOneClass"],
    "estimators.path_svc": ["PathSVC"],
    "estimators.path_svr": ["PathSVR"],
    "estimators.proximal": ["ESVM", "LPSVM", "wESVM"],
    "estimators.sliding_window": ["SlidingWindow"],
    "knowledge": ["Knowledge"],
    "sources": ["from_batches", "from_spark", "on_device", "on_spark", "scan"],
    "store": ["Store"],
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}


if not TYPE_CHECKING:  # a type checker would take any name for one that it finds here

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            from importlib.metadata import version

            return version(__name__)
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = importlib.import_module(f"{__name__}.{_HOME.get(name, 'exceptions')}")
        globals()[name] = getattr(module, name)
        return globals()[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
