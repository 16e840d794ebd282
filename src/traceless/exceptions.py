"""What can go wrong, by name. Each is also the built-in type one would expect."""


class NotLearnedError(ValueError):
    """Rows were to be forgotten that the model cannot have learned."""


class RangeError(ValueError):
    """A value is beyond what the grid, or float64, can hold exactly."""


class MismatchError(ValueError):
    """Two pieces of knowledge do not speak of the same features, classes or targets."""


class AlreadyMergedError(ValueError):
    """A slice was to be merged that the model has taken in before."""


class UnsealableError(ValueError):
    """The exact model was asked of a state that came without the knowledge of its rows."""


class ConditionError(ArithmeticError):
    """The linear system is too ill-conditioned for its solution to be certified."""


class EngineError(RuntimeError):
    """Worker processes or a cluster failed; the data had no part in it."""


class ResolutionWarning(UserWarning):
    """A column varies by only a few steps of the grid it is rounded to, or takes very many."""


class TableError(ValueError):
    """A table cannot be read, or its rows are not what its schema says."""


class FileError(ValueError):
    """A file is not one of traceless, is damaged, or was written by a newer version."""


class AlreadyLearnedError(ValueError):
    """A store was to learn, once, the rows that it learned last."""


class StoreError(ValueError):
    """A folder is not a store, is damaged, or cannot do what it was asked to."""


class StoreBusyError(TimeoutError):
    """Another process is changing the store."""


class RevealingWarning(UserWarning):
    """So few rows are forgotten that the models before and after would reveal them."""


class UninformativeWarning(UserWarning):
    """A model has as many degrees of freedom as rows, so its probabilities are the priors."""
