"""Receipts: an entry of the ledger that can leave the store, and be checked without it.

A receipt is JSON, or a page to print: one file of HTML, with nothing to be loaded from elsewhere.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from html import escape
from typing import Any, Self

from traceless.exceptions import StoreError
from traceless.files.container import parsed_json
from traceless.store import version_1
from traceless.store.entries import VERSION, Entry, hash_of

_FORMAT = "traceless receipt "  # and the version of the entry
_DID = {
    "new": "A store was made",
    "learn": "Rows were learned",
    "forget": "Rows were forgotten",
    "relabel": "Rows were given other labels",
    "merge": "What another model had learned was taken in",
    "seal": "The model was sealed",
    "destroy": "Something was destroyed",
}
_STYLE = """
body { font: 11pt/1.5 Georgia, serif; max-width: 46em; margin: 3em auto; padding: 0 1em }
h1 { font-size: 1.5em; font-weight: normal; border-bottom: 2px solid; padding-bottom: .3em }
table { border-collapse: collapse; width: 100% }
th { text-align: left; font-weight: normal; color: #555; vertical-align: top; width: 11em }
th, td { padding: .35em .8em .35em 0; border-bottom: 1px solid #ddd }
code { font: .85em/1.4 ui-monospace, Menlo, Consolas, monospace; overflow-wrap: anywhere }
.bad { color: #b00; font-weight: bold }
@media print { body { margin: 0; max-width: none } }
"""


_PROVES = """The root is a hash of the rows that the model holds, and the digest one of the model
that they give. Whoever has these rows can learn them from scratch, in any order, and must find the
same; other rows give another root."""
_PROVED = """The digest is one of the sums that the model holds of its rows. Whoever has these rows
can learn them from scratch, in any order, and must find the same. (A receipt of version 1 has no
root, which would tell apart other rows with the same sums.)"""
_NOTE = "So few rows were forgotten that the models before and after, together, would reveal them."


@dataclass(frozen=True, kw_only=True)
class Receipt(Entry):
    """The proof of one change, for the person who asked for it.

    Its fields are those of the `Entry`: counts, the digests of the model before and after, and
    hashes. None of them names a row.

    Attributes
    ----------
    store : dict
        The description of the store: its ``model``, what it is ``about``, when it was
        ``created``. The field `origin` is its hash, so a changed description shows.
    replayed : bool
        Whether the request had been answered before; this is then the first answer, and nothing
        was changed again.

    Examples
    --------
    >>> import tempfile
    >>> from traceless import LSSVC, Store
    >>> from traceless.store import Receipt, verify_receipt
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store = Store.new(f"{folder}/store", LSSVC())
    ...     text = store.learn([[0.0], [1.0]], ["no", "yes"]).to_json()
    >>> receipt = Receipt.from_json(text)
    >>> receipt.kind, receipt.rows, receipt.check()
    ('learn', 2, True)
    >>> verify_receipt(receipt, [[1.0], [0.0]], ["yes", "no"]).ok  # no store is needed
    True
    """

    store: Mapping[str, Any]
    replayed: bool = field(default=False, compare=False)

    @classmethod
    def of(cls, entry: Entry, store: Mapping[str, Any], replayed: bool = False) -> Self:
        """The receipt of an entry."""
        said = {f.name: getattr(entry, f.name) for f in fields(Entry)}
        return cls(**said, store=store, replayed=replayed)

    def check(self) -> bool:
        """Whether its hashes are right: no field was changed after it was written."""
        honest = self.version > 1 or version_1.is_version_1(self.store)
        return honest and self.is_intact() and self.origin == hash_of(self.store)

    def to_json(self) -> str:
        """The receipt as JSON, to be kept or sent."""
        said = {
            "format": f"{_FORMAT}{self.version}",
            "entry": self.facts(),
            "hash": self.hash,
            "store": self.store,
        }
        return json.dumps(said, indent=2, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read the text of `to_json`.

        Raises
        ------
        StoreError
            If the text is no receipt. `check` says whether its hashes are right.
        """
        try:
            said = parsed_json(text)
            known = said["format"].startswith(_FORMAT) and isinstance(said["store"], dict)
            facts, told = json.dumps(said["entry"]), said["hash"]
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            known = False
        if not known:
            raise StoreError(
                f"This is not a receipt: a JSON object of format '{_FORMAT}{VERSION}' is."
            )
        entry = Entry.from_body(facts, told)
        if said["format"] != f"{_FORMAT}{entry.version}":
            raise StoreError(f"This is not a receipt: its entry is of version {entry.version}.")
        return cls.of(entry, said["store"])

    def to_html(self) -> str:
        """The receipt as an HTML page to print, which loads nothing from elsewhere."""
        lines = _lines(self, self.store).items()
        rows = "\n".join(f"<tr><th>{k}</th><td>{v}</td></tr>" for k, v in lines if v)
        warning = "" if self.check() else '<p class="bad">The hashes of this receipt are wrong.</p>'
        return f"""<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>Receipt {self.sequence}</title><style>{_STYLE}</style></head>
<body>
<h1>Receipt {self.sequence}: {_DID[self.kind]}</h1>
{warning}
<table>
{rows}
</table>
<p>{_PROVES if self.version > 1 else _PROVED} The hash is the SHA-256 of all the fields of this
receipt, and of the hash of the receipt before.</p>
</body>
</html>
"""


def _lines(entry: Receipt, store: Mapping[str, Any]) -> dict[str, str]:
    classes = ", ".join(f"class {escape(k)}: {n:+d}" for k, n in entry.classes.items())
    model = store.get("model")
    return {
        "When": escape(entry.time),
        "Store": _code(store.get("store")),
        "Model": escape(str(model.get("kind")) if isinstance(model, Mapping) else "?"),
        "Requests": "<br>".join(map(_code, entry.keys)),
        "About": escape(entry.subject or ""),
        "Rows": f"{entry.rows}{f' ({classes})' if classes else ''}",
        "Rows held since": str(entry.held),
        "Digest before": _code(entry.digest_before),
        "Digest after": _code(entry.digest_after),
        "Root before": _code(entry.root_before if entry.version > 1 else None),
        "Root after": _code(entry.root_after if entry.version > 1 else None),
        "File of the model": _code(entry.sha256),
        "Note": _NOTE if entry.revealing else "",
        "Receipt before": _code(entry.previous),
        "Hash": _code(entry.hash),
    }


def _code(text: Any) -> str:
    return f"<code>{escape(str(text))}</code>" if text else ""
