import numpy as np
import pandas
import pytest

from traceless import LSSVC, LSSVR
from traceless.estimators import inputs

PLAIN_LABELS = {
    "regression": [np.array([1.5, 2.0, -3.0]), np.array([1, 2, 3], dtype=np.int32)],
    "classification": [np.array([0, 1, 0], dtype=np.uint8), np.array([1.0, 2.0, 1.0])],
}


@pytest.mark.parametrize("task", PLAIN_LABELS)
@pytest.mark.parametrize("which", [0, 1])
def test_plain_rows_are_what_scikit_learn_would_return(rng, monkeypatch, task, which):
    """Not checked again by scikit-learn, they are the same arrays, and leave the same behind."""
    X, y = rng.normal(size=(3, 4)), PLAIN_LABELS[task][which]
    make = LSSVR if task == "regression" else LSSVC
    slow, quick = make(), make()
    for model, plain in ((slow, False), (quick, True)):
        with monkeypatch.context() as patch:
            if plain:
                patch.setattr(inputs, "validate_data", None)
            else:
                patch.setattr(inputs, "_are_plain", lambda *_: False)
            for reset in (True, False):
                found = inputs.checked_arrays(model, (X, y, None), task, reset)
                assert found[0] is X
                assert found[1] is y or (found[1] == y).all()
                assert found[2] is None
    assert vars(slow) == vars(quick)


def test_rows_without_names_are_reported_where_there_are_names(rng):
    X = rng.normal(size=(9, 2))
    model = LSSVR().fit(pandas.DataFrame(X, columns=["a", "b"]), X[:, 0])
    with pytest.warns(UserWarning, match="valid feature names"):
        model.partial_fit(X, X[:, 0])
    assert not hasattr(model.fit(X, X[:, 0]), "feature_names_in_")


def test_plain_rows_need_no_check_of_scikit_learn(rng):
    class Fitted:
        n_features_in_ = 2

    X, y = rng.normal(size=(5, 2)), np.arange(5)
    assert inputs.is_plain(Fitted(), X)
    assert inputs.is_plain(Fitted(), X, y)
    assert inputs.is_plain(Fitted(), X, y + 0.0)
    for other in (
        X[:, :1],
        X.astype(np.float32),
        X.T[:2].T[:, ::-1],
        X * np.nan,
        X[:0],
        X.tolist(),
    ):
        assert not inputs.is_plain(Fitted(), other)
    for labels in (None, y[:3], y + 0.5, y.tolist(), y.astype(str)):
        assert not inputs.is_plain(Fitted(), X, labels)
