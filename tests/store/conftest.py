import os

import numpy as np
import pytest

from traceless import LSSVC
from traceless.store import Store


@pytest.fixture
def rows(rng):
    """300 rows of two classes."""
    X = rng.normal(size=(300, 3))
    return X, np.where(X[:, 0] + X[:, 1] > 0, "yes", "no")


@pytest.fixture
def store(tmp_path, rows):
    """A store that has learned the first 200 of them."""
    store = Store.new(tmp_path / "store", LSSVC())
    store.learn(rows[0][:200], rows[1][:200])
    return store


@pytest.fixture
def forked():
    """A function that does something in a process of its own, which ends with 0 or an error."""

    def fork(do):
        pid = os.fork()
        if not pid:
            status = 7
            try:
                do()
                status = 0
            finally:
                os._exit(status)
        return pid

    return fork
