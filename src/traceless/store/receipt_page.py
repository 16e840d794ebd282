"""The page of a receipt: for the person concerned, on one sheet of paper.

A sentence says what was done; below it what that proves, what it does not, and how to check it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traceless.store.page import code, document, named, text

if TYPE_CHECKING:
    from traceless.store.receipts import Receipt

_SEVERAL = 3  # keys or classes; others are counted
_LONGEST = 40  # characters of a name: all must be on one page
TITLES = {
    "new": "A model was made",
    "learn": "Records were learned",
    "forget": "Records were removed",
    "relabel": "Records were corrected",
    "merge": "What another model had learned was taken in",
    "destroy": "Something was destroyed",
    "queue": "A request to remove records has come, and waits",
    "cancel": "A request to remove records was taken back",
    "key": "Another key signs from now on",
}
_STYLE = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")


def page(receipt: Receipt) -> str:
    """The page of a receipt, as HTML."""
    title = f"Receipt {receipt.sequence}: {TITLES.get(receipt.kind, receipt.kind)}"
    organisation = _about(receipt).get("organisation")
    owner = f"<p>{text(organisation)}</p>" if organisation else ""
    lines = _lines(receipt, receipt.store).items()
    rows = "\n".join(f"<tr><th>{k}</th><td>{v}</td></tr>" for k, v in lines if v)
    body = f"""<header>{owner}<h1>{text(title)}</h1></header>
{_warning(receipt)}
<p class="said">{sentence(receipt)}</p>
<section class="two">
<div><h2>What this proves</h2>{_list("ul", _proven(receipt))}</div>
<div><h2>What it does not prove</h2>{_list("ul", _not_proven(receipt))}</div>
</section>
<section class="check"><h2>How to check it</h2>{_list("ol", _steps(receipt))}</section>
<table>
{rows}
</table>"""
    return document(title, body, _STYLE)


def _warning(receipt: Receipt) -> str:
    if receipt.dry_run:
        return '<p class="bad">This was only tried: nothing was changed, and nothing is proven.</p>'
    if receipt.check():
        return ""
    return (
        '<p class="bad">The signature of this receipt is wrong, or its place in the log: it was '
        "changed.</p>"
    )


def sentence(receipt: Receipt) -> str:
    """What was done, for the person concerned, as HTML."""
    rows, model = _count(receipt.rows), _model(receipt)
    said = {
        "new": f"{model} was made. It had learned nothing.",
        "learn": f"{rows} {_were(receipt.rows)} learned by {model}.",
        "forget": f"{_which(receipt)} {_were(receipt.rows)} removed from {model}.",
        "relabel": f"{rows} in {model} {_were(receipt.rows)} given other labels or values.",
        "merge": f"what another model had learned of {rows} was taken into {model}.",
        "destroy": f"{_DESTROYED.get(receipt.subject or '', '')}{model} was destroyed.",
        "queue": f"a request to remove {rows} from {model}{_under(receipt)} arrived. It waits for "
        "others, so that nobody finds these records by comparing the model before and after.",
        "cancel": f"a request to remove {rows} from {model}{_under(receipt)} was taken back.",
        "key": f"another key took the place of the one that signs the changes of {model}.",
    }.get(receipt.kind, f"an entry of the kind {named(receipt.kind)} was made for {model}.")
    day, _, hour = receipt.time.removesuffix("Z").partition("T")
    return f"On {text(day)} at {text(hour)} UTC, {said}{_now(receipt)}"


def _which(receipt: Receipt) -> str:
    """The records that were removed: by their request, or as the slice that they came in."""
    many = f"the {_count(receipt.rows)}" if receipt.rows > 1 else "the record"
    if receipt.undoes is not None:
        return f"{many} of entry {receipt.undoes}"
    if receipt.subject is not None:
        return f"{many} that had been taken in as {named(receipt.subject, _LONGEST)}"
    return f"{many}{_under(receipt)}" if receipt.keys else _count(receipt.rows)


def _under(receipt: Receipt) -> str:
    """The keys of the requests, where there are any."""
    keys = _some(named(key, _LONGEST) for key in receipt.keys)
    return f", kept under {keys}," if keys else ""


def _now(receipt: Receipt) -> str:
    """What the model is since then."""
    kinds = ("forget", "learn", "merge", "relabel")
    if receipt.kind not in kinds or receipt.generation is None:
        return ""
    if not receipt.held:
        return " The model is now empty, as if it had never learned anything."
    if receipt.kind != "forget":
        return f" It now holds {_count(receipt.held)}."
    left = f"{_count(receipt.held)} left in it {'gives' if receipt.held == 1 else 'give'}"
    gone = "this one" if receipt.rows == 1 else f"these {receipt.rows}"
    left += " (up to rounding)" if _is_updated(receipt) else ""
    return f" The model is now the one that the {left}, as if {gone} had never been learned."


def _is_updated(receipt: Receipt) -> bool:
    """Whether the coefficients are carried from change to change, as Woodbury's formula does."""
    try:
        return bool(receipt.store["model"]["parameters"]["solver"] == "woodbury")
    except (TypeError, KeyError):
        return False


def _model(receipt: Receipt) -> str:
    """The model in words: whose it is, and what it is for."""
    about = _about(receipt)
    table, whose = about.get("table"), about.get("organisation")
    said = f"the model of <bdi>{text(whose)}</bdi>" if whose else "the model"
    try:
        targets = _some(named(name, _LONGEST) for name in list(table["target"]))  # type: ignore[index]
    except (TypeError, KeyError):
        return said
    return f"{said} that predicts {targets}"


def _about(receipt: Receipt) -> Mapping[str, Any]:
    about = receipt.store.get("about")
    return about if isinstance(about, Mapping) else {}


def _proven(receipt: Receipt) -> Iterable[str]:
    yield (
        "Who wrote it: it is signed with the key below, and nothing in it was changed since. "
        "Its place in the log of all changes is signed too."
    )
    if receipt.kind == "queue":
        yield "That the request has arrived. When the records are removed, a receipt says so."
    if receipt.digest_after is not None:
        yield (
            "Which records the model holds: the root is a hash of them, and the digest one of the "
            "model that they give. Whoever has them can learn them from scratch, in any order, and "
            "must find the same; other records give another root."
        )


def _not_proven(receipt: Receipt) -> Iterable[str]:
    if receipt.kind == "queue":
        yield "That the records are removed: the model holds them as yet."
    if receipt.kind == "forget":
        yield (
            "That no copy is left elsewhere: in tables, backups, earlier copies of the model, or "
            "answers that it gave."
        )
        yield (
            "That these were all records of a person: a receipt counts records, and names nobody. "
            "Whoever has those that are left can look."
        )
    else:
        yield "What is done with the model elsewhere: copies of it are not reached from here."
    if receipt.revealing:
        yield (
            '<span class="warn">Secrecy from whoever kept the model before: so few records were '
            "removed that the models before and after, together, would reveal them.</span>"
        )
    yield (
        "Whose the key is: compare it with the one that its owner has published. And when it was: "
        "the time is that of the writer's own clock."
    )


def _steps(receipt: Receipt) -> Iterable[str]:
    alone, key = "traceless verify receipt.json", " --public-key KEY"
    yield (
        f"Keep this page and the file {code('receipt.json')} that belongs to it "
        f"({code(f'traceless receipt STORE {receipt.sequence} --out receipt.json')})."
    )
    yield (
        "On Linux or macOS with Python 3.11 or newer: get the source of traceless, which is on no "
        f"package index, from whoever gave you this receipt, and run in its folder "
        f"{code(_INSTALL)}."
    )
    yield (
        f"Whoever has the receipt runs {code(alone + key)} with the key that the owner has "
        "published: the receipt is signed with it, and unchanged."
    )
    if receipt.digest_after is not None:
        yield (
            "Whoever may see the records that are left, such as an auditor, runs "
            f"{code(f'{alone} remaining.csv{key}')}. It learns them from scratch, without the "
            "store, and compares."
        )
    yield (
        "Whoever may see the store, today or later, runs "
        f"{code('traceless verify STORE receipt.json')}: the store must continue the "
        "history that this receipt belongs to."
    )


_DESTROYED = {"secret": "the secret of ", "suppression": "the suppression list of "}
_INSTALL = "pip install '.[cli]'"


def _lines(entry: Receipt, store: Mapping[str, Any]) -> dict[str, str]:
    model = store.get("model")
    kind = model.get("kind") if isinstance(model, Mapping) else "?"
    classes = _some(f"{named(label, _LONGEST)} {n:+d}" for label, n in entry.classes.items())
    held = f"{entry.held} are held since"
    held += f", {entry.waiting} of them wait to be removed" if entry.waiting else ""
    return {
        "Time": text(entry.time),
        "Store": f"{code(store.get('store'))} <span class='soft'>({text(kind)})</span>",
        "Requests": _some(named(key) for key in entry.keys),
        "About": text(entry.subject or ""),
        "Records": f"{entry.rows}; {held}{f'. {classes}' if classes else ''}",
        "Digest before": code(entry.digest_before),
        "Digest after": code(entry.digest_after),
        "Root before": code(entry.root_before),
        "Root after": code(entry.root_after),
        "File of the model": code(entry.sha256),
        "Entry": code(entry.hash),
        "Key": code(entry.signer),
        "Signature": code(entry.signature),
    }


def _list(tag: str, items: Iterable[str]) -> str:
    return f"<{tag}>{''.join(f'<li>{item}</li>' for item in items)}</{tag}>"


def _some(items: Iterable[str]) -> str:
    """Some of several things, and how many more there are."""
    found = list(items)
    more = len(found) - _SEVERAL
    return ", ".join(found[:_SEVERAL]) + (f" and {more} more" if more > 0 else "")


def _count(rows: int) -> str:
    return f"{rows} record{'s' * (rows != 1)}"


def _were(rows: int) -> str:
    return "was" if rows == 1 else "were"
