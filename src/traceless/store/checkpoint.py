"""Heads and proofs of the log, by C2SP: signed-note, tlog-checkpoint, tlog-cosignature, tlog-proof.

A head is three lines, an empty line, and lines of signatures, each by a key of a name:

    traceless/<store>                    the name of the log
    <number of entries>
    <root of their Merkle tree>, base64

    — <name> <base64 of 4 bytes that tell keys apart, and the signature of the three lines>

A witness signs the time as well, in eight bytes between the two: that it has seen this head then,
and before it none that the log does not continue.

A proof that an entry is in the log of a head is "c2sp.org/tlog-proof@v1", a line "index <number>",
the hashes of the proof, an empty line, and the head. One that a head continues another is lines of
hashes alone.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterable
from time import gmtime, strftime
from typing import NamedTuple, Self

from traceless.exceptions import StoreError
from traceless.store.envelope import from_base64
from traceless.store.keys import SigningKey, is_signed
from traceless.store.merkle import is_included

_PROOF = "c2sp.org/tlog-proof@v1"
_ED25519, _COSIGNATURE = b"\1", b"\4"  # types of keys


class Head(NamedTuple):
    """A head of a log.

    Attributes
    ----------
    origin : str
        The name of the log.
    size : int
        Number of entries.
    root : bytes
        Of their tree.
    text : str
        What is signed: the lines above.
    signatures : tuple of (str, bytes)
        The name of each key, and its signature with the four bytes before it.
    """

    origin: str
    size: int
    root: bytes
    text: str
    signatures: tuple[tuple[str, bytes], ...]

    @classmethod
    def signed(cls, origin: str, size: int, root: bytes, keys: Iterable[SigningKey]) -> Self:
        """A head, signed with these keys in the name of the log."""
        text = f"{origin}\n{size}\n{b64encode(root).decode()}\n"
        each = [_key_id(origin, key.public) + key.sign(text.encode()) for key in keys]
        return cls(origin, size, root, text, tuple((origin, signature) for signature in each))

    @classmethod
    def parsed(cls, note: str) -> Self:
        """The head in a text, of which nothing is checked but the form."""
        text, _, signatures = note.rpartition("\n\n")
        try:
            origin, size, root, *_ = text.split("\n")
            lines = [line.split(" ") for line in signatures.removesuffix("\n").split("\n")]
            found = [(name, from_base64(sig)) for dash, name, sig in lines if dash == "\N{EM DASH}"]
            said = cls(origin, int(size), from_base64(root), f"{text}\n", tuple(found))
            if (
                len(found) < len(lines)
                or not 0 < said.size < 1 << 62
                or str(said.size) != size
                or len(said.root) != 32
            ):
                raise ValueError("it has another form")
        except ValueError as error:
            raise ValueError(
                f"This is not the head of a store: {note[:100]!r} ({error}). It has three lines, "
                "and signatures below them, as 'traceless status STORE --head' prints it."
            ) from None
        return said

    def is_signed(self, public: str) -> bool:
        """Whether the log has signed it with this key."""
        start = _key_id(self.origin, public)
        given = [signed for name, signed in self.signatures if name == self.origin]
        ours = [signed[4:] for signed in given if signed[:4] == start]
        return any(is_signed(self.text.encode(), public, signature) for signature in ours)

    def cosigned(self, witness: str) -> str | None:
        """When the witness with this verifier key saw the head, UTC; None if it did not sign it."""
        name, public = witness_of(witness)
        start = _key_id(name, public, _COSIGNATURE)
        for other, given in self.signatures:
            seen = int.from_bytes(given[4:12])
            text = f"cosignature/v1\ntime {seen}\n{self.text}".encode()
            if (other, given[:4]) == (name, start) and is_signed(text, public, given[12:]):
                return strftime("%Y-%m-%dT%H:%M:%SZ", gmtime(seen))
        return None

    def __str__(self) -> str:
        lines = [f"\N{EM DASH} {n} {b64encode(s).decode()}\n" for n, s in self.signatures]
        return f"{self.text}\n{''.join(lines)}"


def _key_id(name: str, public: str, kind: bytes = _ED25519) -> bytes:
    """Four bytes that tell apart the keys of a name."""
    return hashlib.sha256(name.encode() + b"\n" + kind + bytes.fromhex(public)).digest()[:4]


def verifier_key(name: str, public: str) -> str:
    """A public key as witnesses and other programs for C2SP's notes take it."""
    key = b64encode(_ED25519 + bytes.fromhex(public)).decode()
    return f"{name}+{_key_id(name, public).hex()}+{key}"


def witness_of(key: str) -> tuple[str, str]:
    """The name and the public key in the verifier key of a witness (tlog-cosignature)."""
    try:
        name, number, text = key.split("+", 2)
        kind, public = (raw := from_base64(text))[:1], raw[1:].hex()
        known = kind == _COSIGNATURE and len(raw) == 33
        if not known or _key_id(name, public, kind).hex() != number:
            raise ValueError("it has another form, or is a key of another type")
    except ValueError as error:
        raise ValueError(
            f"{key[:100]!r} is not the verifier key of a witness, name+hash+key ({error})."
        ) from None
    return name, public


def hashes_text(proof: Iterable[bytes]) -> str:
    """The hashes of a proof, one on each line."""
    return "".join(f"{b64encode(one).decode()}\n" for one in proof)


def hashes_of(text: str) -> list[bytes]:
    """Inverse of `hashes_text`."""
    found = [from_base64(line) for line in text.removesuffix("\n").split("\n") if text]
    if {*map(len, found)} - {32}:
        raise ValueError("a proof has hashes of 32 bytes each")
    return found


def proof_text(index: int, proof: list[bytes], head: Head | str) -> str:
    """The proof that the entry of this number is in the log of a head."""
    return f"{_PROOF}\nindex {index}\n{hashes_text(proof)}\n{head}"


def proven_by(text: str, index: int, leaf: bytes) -> Head:
    """The head of a proof; raises `StoreError` unless it proves this entry."""
    start, _, note = text.partition("\n\n")
    try:
        head, (name, number, *_) = Head.parsed(note), start.split("\n")
        proof = hashes_of("\n".join(start.split("\n")[2:]))
    except ValueError as error:
        raise StoreError(f"Not a proof that an entry is in a log: {error}") from None
    named = (name, number) == (_PROOF, f"index {index}") and proof_text(index, proof, head) == text
    if not named or not is_included(leaf, index, head.size, proof, head.root):
        raise StoreError(f"The proof does not show that this is entry {index} of its log.")
    return head
