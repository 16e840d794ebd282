"""Random histories of rows from the host and from a device end in the bits of one fit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="torch is not installed: make test-torch")

from cases import MAPS, name  # noqa: E402
from test_history import ROWS, histories, play, responses_of  # noqa: E402
from traceless import LSSVC, LSSVR  # noqa: E402
from traceless.device import tensors  # noqa: E402


@pytest.mark.filterwarnings("ignore::traceless.ResolutionWarning")
@pytest.mark.parametrize("phi", MAPS, ids=name)
@pytest.mark.parametrize("kind", [LSSVC, LSSVR])
@settings(max_examples=8)
@given(data=st.data())
def test_any_history_on_any_device(kind, phi, data):
    model = kind(phi)
    X, y = data.draw(ROWS), data.draw(responses_of(model))
    steps, held = data.draw(histories())
    there = data.draw(st.randoms(use_true_random=False))

    def take(rows):
        some = X[rows], y[rows]
        if there.random() < 0.6:
            some = tuple(torch.from_numpy(part) for part in some)
        return *some, None

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tensors, "HOST", frozenset())
        play(model, steps, take)
        if not held:
            assert not model.knowledge_.gram.any()
            return
        answers = model.predict(torch.from_numpy(X)).numpy()
    fresh = kind(phi).fit(X[held], y[held])
    assert model.digest() == fresh.digest()
    assert np.array_equal(model.feature_coef_, fresh.feature_coef_)
    assert np.array_equal(answers, fresh.predict(X))
