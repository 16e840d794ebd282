"""``traceless demo``: learn, forget, and prove it, in a store that is gone afterwards."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING, Any

from traceless.cli.answer import Answer, Grid
from traceless.cli.command import command

if TYPE_CHECKING:
    from traceless import LSSVC


@command("traceless demo", "traceless demo --json")
def demo() -> Answer:
    """Learn digits, forget some, and compare with a model that never saw them."""
    from sklearn.datasets import load_digits

    from traceless.store import Store

    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = X[:1500] / 16, X[1500:] / 16, y[:1500], y[1500:]
    with tempfile.TemporaryDirectory() as folder:
        store = Store.new(f"{folder}/digits", _model())
        steps = [
            ("learn 1000 rows", store.learn(X[:1000], y[:1000]), slice(0, 1000)),
            ("learn 500 more", store.learn(X[1000:], y[1000:]), slice(0, 1500)),
            ("forget the first 300", store.forget(X[:300], y[:300]), slice(300, 1500)),
        ]
        told = [_told(*step, X, y) for step in steps]
        verified = store.verify(X[300:], y[300:]).ok
        accuracy = store.model().score(X_test, y_test)
    rows = [[t["step"], t["rows"], t["digest"][:16], t["same"]] for t in told]
    proof = (
        "The digest after forgetting is that of a model that never saw the 300 rows. "
        f"Accuracy on 297 other digits: {accuracy:.1%}."
    )
    ok = verified and all(t["same"] for t in told)
    return Answer(
        {"steps": told, "accuracy": accuracy, "verified": verified},
        [Grid(["step", "rows", "digest", "fit from scratch"], rows), *([proof] if ok else [])],
        ok,
    )


def _model() -> LSSVC:
    from traceless import LSSVC
    from traceless.features import RandomFourier

    return LSSVC(RandomFourier(300, gamma=0.1, random_state=0), rho=0.1, fingerprint=True)


def _told(step: str, receipt: Any, held: slice, X: Any, y: Any) -> dict[str, Any]:
    fresh = _model().fit(X[held], y[held]).digest()
    return {
        "step": step,
        "rows": receipt.held,
        "digest": receipt.digest_after,
        "same": receipt.digest_after == fresh,
    }
