"""The page of a receipt: for the person concerned, on one sheet of paper (``receipt.html``).

It says what was done, what that proves, what it does not, and how to check it; and it has one
fingerprint, that of the entry, which ``traceless verify`` prints too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from traceless.pages import LANGUAGES, render

_SEVERAL = 3  # classes


def page(receipt: Any, language: str = "en") -> str:
    """The page of a receipt, as HTML; what it says of its store is not trusted.

    Parameters
    ----------
    receipt : Receipt
    language : {"en", "de"}
    """
    if language not in LANGUAGES:
        raise ValueError(f"language must be one of {', '.join(LANGUAGES)}, got {language!r}.")
    about = receipt.store.get("about")
    about = about if isinstance(about, Mapping) else {}
    return render(
        "receipt.html",
        language,
        r=receipt,
        owner=about.get("organisation"),
        intact=receipt.dry_run or receipt.check(),
        targets=_targets(about),
        classes=list(receipt.classes.items())[:_SEVERAL],
        rounded=_is_updated(receipt),
    )


def _targets(about: Mapping[str, Any]) -> list[str]:
    """What the model predicts."""
    try:
        column = about["table"]["target"]["column"]
    except (TypeError, KeyError):
        return []
    return [column] if isinstance(column, str) else [str(one) for one in column or ()]


def _is_updated(receipt: Any) -> bool:
    """Whether the coefficients are carried from change to change, as Woodbury's formula does."""
    try:
        return bool(receipt.store["model"]["parameters"]["solver"] == "woodbury")
    except (TypeError, KeyError):
        return False
