"""``traceless demo``: learn, forget and verify in a temporary store."""

from __future__ import annotations

import tempfile
from typing import Any

from traceless.cli.command import command
from traceless.cli.output import Grid, Result


@command("traceless demo", "traceless demo --json")
def demo() -> Result:
    """Learn digits, forget some, and compare with a model that never saw them."""
    from sklearn.base import clone
    from sklearn.datasets import load_digits

    from traceless import LSSVC
    from traceless.features import RandomFourier
    from traceless.store import Store

    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = X[:1500], X[1500:], y[:1500], y[1500:]
    model = LSSVC(RandomFourier(300, gamma=0.0004, random_state=0), fingerprint=True)
    with tempfile.TemporaryDirectory() as folder:
        store = Store.new(f"{folder}/digits", model)
        receipts: list[tuple[str, Any, slice]] = [
            ("learn 1000 rows", store.learn(X[:1000], y[:1000]), slice(0, 1000)),
            ("learn 500 more", store.learn(X[1000:], y[1000:]), slice(0, 1500)),
            ("forget the first 300", store.forget(X[:300], y[:300]), slice(300, 1500)),
        ]
        verified = store.verify(X[300:], y[300:]).ok
        accuracy = store.model().score(X_test, y_test)
    steps = []
    for step, receipt, held in receipts:
        digest, fresh = receipt.digest_after, clone(model).fit(X[held], y[held]).digest()
        same = digest == fresh
        steps.append({"step": step, "rows": receipt.held, "digest": digest, "same": same})
    rows = [[s["step"], s["rows"], s["digest"][:16], s["same"]] for s in steps]
    shown: list[str | Grid] = [Grid(rows, ["step", "rows", "digest", "as if made from scratch"])]
    ok = verified and all(s["same"] for s in steps)
    if ok:
        shown.append(
            "The digest after forgetting is that of a model that never saw the 300 rows. "
            f"Accuracy on 297 other digits: {accuracy:.1%}."
        )
    return Result({"steps": steps, "accuracy": accuracy, "verified": verified}, shown, ok)
