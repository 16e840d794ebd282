"""Errors and warnings of the library. Each is also the built-in type one would expect."""


class NotLearnedError(ValueError):
    """Rows cannot be forgotten, because the model does not hold them."""


class RangeError(ValueError):
    """A value is beyond what the grid, or float64, can hold exactly."""


class MismatchError(ValueError):
    """Two pieces of knowledge differ in their features, classes or targets."""


class AlreadyMergedError(ValueError):
    """A slice cannot be merged, because it was merged before."""


class UnsealableError(ValueError):
    """The model has no exact sums, so it cannot be sealed, merged or given a digest."""


class ConditionError(ArithmeticError):
    """The linear system is too ill-conditioned for its solution to be certified."""


class EngineError(RuntimeError):
    """Worker processes or a cluster failed; the data are not the cause."""


class ResolutionWarning(UserWarning):
    """The grid of a column is too coarse, or so fine that sums need more than 64 bits."""


class TableError(ValueError):
    """A table cannot be read, or its rows do not match its schema."""


class FileError(ValueError):
    """A file is not a traceless file, is damaged, or was written by a newer version."""


class AlreadyLearnedError(ValueError):
    """Rows come again: an earlier change learned exactly these, or their ids were forgotten."""


class StoreError(ValueError):
    """A folder is not a store or is damaged, or the store cannot make the change."""


class StoreBusyError(TimeoutError):
    """Another process is changing the store."""


class RevealingWarning(UserWarning):
    """So few rows are forgotten that the models before and after reveal them."""


class StoreWarning(UserWarning):
    """Everybody can read a secret of a store, or its clock runs backwards."""


class UninformativeWarning(UserWarning):
    """A model has as many degrees of freedom as rows, so its probabilities are the priors."""
