"""DSSE: a payload with a signature over its exact bytes, so that nothing need be canonical.

    signature = Ed25519 over  "DSSEv1" SP length SP type SP length SP payload

The specification is that of secure-systems-lab/dsse, version 1. The payload is a statement of
in-toto, version 1: what is said (a predicate) of which files (subjects, by their SHA-256). What is
read is refused unless it could have been written here: names that are unknown or repeated, other
base64 for the same bytes.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from traceless.exceptions import StoreError

TYPE = "application/vnd.in-toto+json"
STATEMENT = "https://in-toto.io/Statement/v1"


def statement(
    kind: str, subjects: Mapping[Any, Any], predicate: Mapping[str, Any]
) -> dict[str, Any]:
    """A statement of this kind about subjects, given by name and SHA-256."""
    return {
        "_type": STATEMENT,
        "subject": [{"name": name, "digest": {"sha256": one}} for name, one in subjects.items()],
        "predicateType": kind,
        "predicate": dict(predicate),
    }


def signed_bytes(payload: bytes, kind: str = TYPE) -> bytes:
    """The bytes that a signature covers: the pre-authentication encoding."""
    named = kind.encode()
    return b"DSSEv1 %d %s %d %s" % (len(named), named, len(payload), payload)


def envelope(payload: bytes, signature: str, signer: str) -> dict[str, Any]:
    """The envelope, for JSON."""
    text = base64.b64encode(payload).decode()
    signatures = [{"keyid": signer, "sig": signature}]
    return {"payload": text, "payloadType": TYPE, "signatures": signatures}


def opened(given: Mapping[str, Any]) -> tuple[bytes, str, str]:
    """Payload, signature and named key of an envelope; the signature is not checked here."""
    try:
        ((said,), payload) = given["signatures"], from_base64(given["payload"])
        found = payload, str(said["sig"]), str(said["keyid"])
        if given != envelope(*found):
            raise ValueError("there is more or less in it than there should be")
    except (ValueError, TypeError, KeyError) as error:
        raise StoreError(f"Not an envelope of DSSE with one signature: {error}.") from None
    return found


def from_base64(text: str) -> bytes:
    """The bytes of a text; each has one text only."""
    found = base64.b64decode(text, validate=True)
    if base64.b64encode(found).decode() != text:
        raise ValueError(f"{text[:80]!r} is not the base64 of its bytes")
    return found
