"""Words as tables and people write them, in one form."""

from __future__ import annotations

import re
from unicodedata import normalize


def canonical_word(text: str) -> str:
    """A text in Unicode's composed form; a whole number, such as 3.0, without its zeros."""
    return re.sub(r"^([+-]?[0-9]+)\.0+$", r"\1", normalize("NFC", text))


def canonical_id(text: str) -> str:
    """An id: 17, 17.0 and " 17.0 " are one; "017" is another."""
    return canonical_word(text.strip())
