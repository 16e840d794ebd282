"""The bits that were frozen: every case of `tests/vectors` is computed again, and is the same."""

import pytest

from vectors.make import KINDS, read


@pytest.mark.filterwarnings("ignore::traceless.ResolutionWarning")
@pytest.mark.filterwarnings("ignore::traceless.exceptions.UninformativeWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_every_bit_is_that_of_the_vectors(kind):
    held = list(read(kind))
    assert held
    wrong = []
    for case in held:
        computed, frozen = KINDS[kind](case), case["answer"]
        fields = [f for f in computed.keys() | frozen if computed.get(f) != frozen.get(f)]
        wrong += [(case["name"], case.get("model"), field) for field in fields]
    assert not wrong
