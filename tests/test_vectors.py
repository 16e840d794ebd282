"""The bits that were frozen: every case of `tests/vectors` is computed again, and is the same."""

import pytest

from vectors.make import KINDS, read


@pytest.mark.filterwarnings("ignore::traceless.ResolutionWarning")
@pytest.mark.filterwarnings("ignore::traceless.exceptions.UninformativeWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_every_bit_is_that_of_the_vectors(kind):
    held = list(read(kind))
    assert held
    wrong = {
        (case["name"], case.get("model"), field): (value, case["answer"].get(field))
        for case in held
        for field, value in KINDS[kind](case).items()
        if value != case["answer"].get(field)
    }
    assert not wrong
