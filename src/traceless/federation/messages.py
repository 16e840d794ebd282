"""Messages as bytes: the file format of `traceless.files.container`, signed by the site.

    message of a site = Ed25519 over the body, as DSSE encodes it ‖ body
    body              = a safetensors file of kind "federation STEP", with a hash of its own

Each names its round: before the keys of all sites are known, the digest of the agreement. Messages
of the coordinator are bodies: it has no key, because nothing depends on its word. What is read is
of the types below, whatever was sent; bytes are in hexadecimal.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from traceless.exceptions import FederationError
from traceless.federation.agreement import Agreement, require
from traceless.files import container, facts
from traceless.store.envelope import signed_bytes

_TYPE = "application/vnd.traceless.federation+safetensors"
_SIGNATURE = 64  # bytes
_HEX = re.compile("(?:[0-9a-f]{2})*").fullmatch

# what a site sends, what it is told next, and so on, beside the round; a dict has bytes by site
FACTS: dict[str, dict[str, type]] = {
    "keys": {"site": str, "state": str, "share_key": str, "mask_key": str, "b_digest": str},
    "roster": {"keys": dict},
    "shares": {"site": str, "boxes": dict},
    "delivery": {"present": list, "boxes": dict},
    "sums": {"site": str, "signature": str},
    "survivors": {"survivors": list, "signatures": dict},
    "signature": {"site": str, "signature": str},
    "signatures": {"signatures": dict},
    "opened": {"site": str, "shares": dict},
}
SENT, TOLD = ([*[*FACTS][first::2], ""] for first in (0, 1))  # "" when all is done


def body(step: str, round_: str, facts: dict[str, Any], sums: Any = None) -> bytes:
    """A message without a signature."""
    tensors = {} if sums is None else {"sums": sums.view(np.int64)}
    return container.encoded(f"federation {step}", {**facts, "round": round_}, tensors)


def list_of(step: str, round_: str, names: list[str]) -> bytes:
    """The bytes that sites sign, in this step, under a list of sites."""
    return body(f"list of {step}", round_, {"sites": names})


def signature(key: Ed25519PrivateKey, body: bytes) -> bytes:
    """The signature of a site."""
    return key.sign(signed_bytes(body, _TYPE))


def check_signatures(terms: Agreement, names: Any, signatures: Any, body: bytes) -> None:
    """Raise unless each of these sites has signed these bytes."""
    data = signed_bytes(body, _TYPE)
    for name in names:
        require(name in terms.sites, f"{facts.short(name)} is none of the sites agreed on.")
        public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(terms.sites[name]))
        try:
            public.verify(bytes.fromhex(signatures.get(name, "")), data)
        except InvalidSignature:
            raise FederationError(f"{name!r} has not signed this, or another list.") from None


def read(data: bytes, step: str, round_: str) -> dict[str, Any]:
    """The facts of a message, which must be of this step and round, and its sums if it has any."""
    found, types = container.parsed(data, "It"), {"round": str, **FACTS[step]}
    kind = facts.short(found.kind.removeprefix("federation "))
    require(kind == repr(step), f"it is a message {kind}, which came twice, too early or too late.")
    facts.only(found.tensors, *(["sums"] if step == "sums" else []))
    said = facts.named(found.facts, {*types})
    right = all(_is(types[name], value) for name, value in said.items())
    require(right, "a fact is of another type, or not in order.")
    require(said["round"] == round_, "it is of another round, or of other terms.")
    return said | found.tensors


def read_signed(data: bytes, step: str, round_: str, agreement: Agreement) -> dict[str, Any]:
    """The same of a message of a site, with its signature checked."""
    found, signature = read(data[_SIGNATURE:], step, round_), data[:_SIGNATURE].hex()
    check_signatures(agreement, [found["site"]], {found["site"]: signature}, data[_SIGNATURE:])
    return found


def roster(agreement: Agreement, keys: dict[str, str]) -> dict[str, dict[str, str]]:
    """What each site has said in its first message."""
    sent, first = map(bytes.fromhex, keys.values()), agreement.digest
    out = {f["site"]: f for f in (read_signed(data, "keys", first, agreement) for data in sent)}
    require(out.keys() == keys.keys(), "it has a site twice, or under another name.")
    require(len(out) >= agreement.survivors, f"it has {len(out)} sites, which are too few.")
    return out


def _is(type_: type, value: Any) -> bool:
    items = [*value.values()] if isinstance(value, dict) else [value] if type_ is str else value
    texts = type(value) is type_ and {*map(type, items)} <= {str}
    return texts and (all(map(_HEX, items)) if type_ is dict else items == sorted({*items}))
