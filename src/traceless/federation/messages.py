"""Messages as bytes: the file format of `traceless.files.container`, signed by the site.

    message of a site = Ed25519 over PAE(type, body) ‖ body         PAE: DSSE's encoding
    body              = a safetensors file of kind "federation STEP", with a hash of its own

Messages of the coordinator are bodies: it has no key, because nothing depends on its word.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)
from numpy.typing import NDArray

from traceless.exceptions import FederationError, FileError
from traceless.federation.agreement import Agreement
from traceless.files import container, facts

_TYPE = b"application/vnd.traceless.federation+safetensors"
_SIGNATURE = 64

# what a site sends, and what it is answered
SENT = {
    "keys": {"agreement", "site", "state", "share_key", "mask_key"},
    "shares": {"round", "site", "boxes", "commitments"},
    "sums": {"round", "site", "included"},
    "survivors": {"round", "site", "survivors"},
    "opened": {"round", "site", "shares"},
}
INCLUDED = {"included": {"round", "site", "present"}}  # inside of a message with sums
ANSWERED = {
    "roster": {"messages"},
    "delivery": {"round", "present", "boxes"},
    "survivors": {"round", "survivors", "included"},
    "signatures": {"round", "messages"},
}


class Message(NamedTuple):
    """What a message says: its facts, and its sums if it has any."""

    facts: dict[str, Any]
    sums: NDArray[np.int64] | None


def body(step: str, facts: Mapping[str, Any], sums: Any = None) -> bytes:
    """A message without a signature."""
    tensors = {} if sums is None else {"sums": sums.view(np.int64)}
    return container.encoded(f"federation {step}", facts, tensors)


def signed(key: Ed25519PrivateKey, body: bytes) -> bytes:
    """A message with the signature of a site."""
    return key.sign(_encoded(body)) + body


def read(data: bytes, step: str, names: Mapping[str, set[str]]) -> Message:
    """A message without a signature, which must be of this step."""
    try:
        found = container.parsed(data, f"This message ({step})")
        kind = found.kind.removeprefix("federation ")
        if kind != step:
            raise FederationError(
                f"Expected a message {step!r}, got {kind!r}: it is of another step, or came twice."
            )
        facts.only(found.tensors, *(["sums"] if step == "sums" else []))
        said = facts.named(found.facts, names[step])
    except (FileError, ValueError) as error:
        raise FederationError(f"A message is refused: {error}") from None
    return Message(said, found.tensors.get("sums"))


def read_signed(
    data: bytes, step: str, agreement: Agreement, names: Mapping[str, set[str]] = SENT
) -> Message:
    """A message of a site, with its signature checked."""
    message = read(data[_SIGNATURE:], step, names)
    name = message.facts["site"]
    if not isinstance(name, str) or name not in agreement.sites:
        raise FederationError(f"{facts.short(name)} is none of the sites that were agreed on.")
    public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(agreement.sites[name]))
    try:
        public.verify(data[:_SIGNATURE], _encoded(data[_SIGNATURE:]))
    except InvalidSignature:
        raise FederationError(
            f"A message {step!r} in the name of {name!r} does not have its signature: it is "
            "forged, or was changed on the way. Ask the site for it again."
        ) from None
    return message


def _encoded(body: bytes) -> bytes:
    return b"DSSEv1 %d %b %d %b" % (len(_TYPE), _TYPE, len(body), body)
