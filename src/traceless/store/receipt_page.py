"""The page of a receipt: one file of HTML to print, with nothing to be loaded from elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from traceless.store.receipts import Receipt

_DID = {
    "new": "A store was made",
    "learn": "Rows were learned",
    "forget": "Rows were forgotten",
    "relabel": "Rows were given other labels",
    "merge": "What another model had learned was taken in",
    "seal": "The model was sealed",
    "destroy": "Something was destroyed",
    "queue": "A request to forget rows has come, and waits",
    "cancel": "A request to forget rows was taken back",
    "key": "Another key signs from now on",
    "upgrade": "The store was brought to a newer version",
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


def page(receipt: Receipt) -> str:
    """The page of a receipt, as HTML."""
    lines = _lines(receipt, receipt.store).items()
    rows = "\n".join(f"<tr><th>{k}</th><td>{v}</td></tr>" for k, v in lines if v)
    warning = "" if receipt.check() else '<p class="bad">The hashes of this receipt are wrong.</p>'
    return f"""<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>Receipt {receipt.sequence}</title><style>{_STYLE}</style></head>
<body>
<h1>Receipt {receipt.sequence}: {_DID[receipt.kind]}</h1>
{warning}
<table>
{rows}
</table>
<p>{_PROVES if receipt.version > 1 else _PROVED} The hash is the SHA-256 of all the fields of this
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
        "Signature": _code(entry.signature),
        "Signed with the key": _code(entry.signer),
    }


def _code(text: Any) -> str:
    return f"<code>{escape(str(text))}</code>" if text else ""
