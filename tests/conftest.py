from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from papers.datasets import find_mnist, load_mnist

collect_ignore = ["conftest.py"]  # which --doctest-modules would import under a name taken below
if not find_spec("torch"):
    collect_ignore += ["on_gpu.py", "device/same_bits.py"]

settings.register_profile(
    "traceless",
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("traceless")


@pytest.fixture
def rng():
    return np.random.default_rng(20190922)


@pytest.fixture(scope="session")
def mnist():
    """(X, y, X_test, y_test), pixels between 0 and 1."""
    if find_mnist() is None:
        pytest.skip("MNIST is not here: set TRACELESS_DATA to a folder that holds its idx files")
    (X, y), (X_test, y_test) = load_mnist("train"), load_mnist("test")
    return X / 255.0, y, X_test / 255.0, y_test
