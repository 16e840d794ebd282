"""The key of a store: Ed25519, with which every entry of its ledger is signed.

It signs entries (`envelope`) and heads (`checkpoint`). The file is PEM (PKCS 8), as
``openssl genpkey -algorithm ed25519`` writes it. It lies in the folder of the store as `key`, or
wherever TRACELESS_SIGNING_KEY says: who may write the folder can then still not sign. A new key,
`key.new`, takes the place of the old one after the commit of the entry that hands over to it; if
the process is killed between, the next one finds it by its public half.

Public keys are written in hexadecimal, signatures in base64.
"""

from __future__ import annotations

import os
from base64 import b64encode
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from traceless.exceptions import StoreError
from traceless.files import container
from traceless.store.envelope import from_base64
from traceless.store.regular import read_outside

try:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import serialization as to
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )
except ImportError as error:
    message = "Stores need the package cryptography: pip install 'traceless[store]'"
    raise ImportError(message) from error

if TYPE_CHECKING:
    from traceless.store.folder import Folder

VARIABLE = "TRACELESS_SIGNING_KEY"
_HOW = "Give a file as 'openssl genpkey -algorithm ed25519' writes it. Nothing was changed."
_LARGEST = 10_000  # bytes of a file: a key has 119


class SigningKey:
    """A private key.

    Attributes
    ----------
    public : str
        The public half, 64 digits.
    """

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self.public: str = private.public_key().public_bytes_raw().hex()

    @classmethod
    def new(cls) -> Self:
        """A random key."""
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def read(cls, path: Any) -> Self:
        """The key of a file, which may be anywhere."""
        try:
            content = read_outside(path, _LARGEST, private=True)
        except (OSError, ValueError) as error:
            said = getattr(error, "strerror", None) or error
            raise StoreError(f"{path} is not a signing key: {said}. {_HOW}") from error
        return cls.from_pem(content, path)

    @classmethod
    def from_pem(cls, content: bytes, path: Any) -> Self:
        """The key that the file of this path contains."""
        try:
            key = to.load_pem_private_key(content, password=None)
        except (ValueError, TypeError) as error:  # TypeError: it needs a password
            raise StoreError(f"{path} is not a signing key: {error}. {_HOW}") from None
        if not isinstance(key, Ed25519PrivateKey):
            raise StoreError(f"{path} is a key of another kind than Ed25519. {_HOW}")
        return cls(key)

    def pem(self) -> bytes:
        """The content of a file with the key."""
        how = to.Encoding.PEM, to.PrivateFormat.PKCS8, to.NoEncryption()
        return self._private.private_bytes(*how)

    def sign(self, message: bytes) -> bytes:
        """The signature of a message."""
        return self._private.sign(message)

    def signature(self, message: bytes) -> str:
        """The signature of a message, in base64."""
        return b64encode(self.sign(message)).decode()


def is_signed(message: bytes, public: str, signature: str | bytes) -> bool:
    """Whether a message was signed with the private half of this public key."""
    try:
        named = bytes.fromhex(public)
        if named.hex() != public:  # capitals, or blanks
            return False
        given = signature if isinstance(signature, bytes) else from_base64(signature)
        Ed25519PublicKey.from_public_bytes(named).verify(given, message)
    except (ValueError, InvalidSignature):
        return False
    return True


def public_pem(public: str) -> str:
    """The content of a file with a public key."""
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public))
    return key.public_bytes(to.Encoding.PEM, to.PublicFormat.SubjectPublicKeyInfo).decode()


def public_from_pem(text: str, path: str) -> str:
    """The public key that the file of this path contains."""
    try:
        key = to.load_pem_public_key(text.encode())
    except ValueError as error:
        raise StoreError(f"{path} is not a public key: {error}.") from None
    if not isinstance(key, Ed25519PublicKey):
        raise StoreError(f"{path} is a public key of another kind than Ed25519.")
    return str(key.public_bytes_raw().hex())


def chosen(given: Any) -> tuple[SigningKey, bool]:
    """The key for a new store, and whether it is to be kept in its folder.

    It is that of the file given, or of the one that TRACELESS_SIGNING_KEY names, or a new one.
    """
    elsewhere = (os.environ.get(VARIABLE) or None) if given is None else given
    return (SigningKey.new(), True) if elsewhere is None else (SigningKey.read(elsewhere), False)


def find(folder: Folder, given: Any, public: str) -> SigningKey:
    """The private half of the public key of the store in a folder.

    It is the file given; without one, that which TRACELESS_SIGNING_KEY names, or that in the
    folder.
    """
    looked, variable = str(folder.path / "key"), os.environ.get(VARIABLE)
    if given is not None:
        key = SigningKey.read(given)
        if key.public == public:
            return key
        raise StoreError(
            f"{given} is another key: the changes of this store are signed with the key "
            f"{public[:16]}…. Nothing was changed."
        )
    found = [] if not variable else [SigningKey.read(variable)]
    found += filter(None, (_inside(folder, name) for name in ("key", "key.new")))
    for key in found:
        if key.public == public:
            return key
    looked = f"{variable}, {looked}" if variable else looked
    raise StoreError(
        f"The changes of this store are signed with the key {public[:16]}…, and its private half "
        f"is not in {looked}. Say where it is with {VARIABLE} or signing_key=FILE "
        "(--signing-key FILE). Nothing was changed."
    )


def settle(folder: Folder, public: str) -> None:
    """Replace the old key by the new one, once the ledger names it."""
    with suppress(OSError, StoreError):
        new = _inside(folder, "key.new")
        if new is not None and new.public == public:
            os.replace(folder.path / "key.new", folder.path / "key")
            container.sync_folder(folder.path)
        elif new is not None:  # of a change of keys that was not committed
            folder.remove(folder.path / "key.new")


def _inside(folder: Folder, name: str) -> SigningKey | None:
    """A key in the folder; None if there is none."""
    try:
        return SigningKey.from_pem(folder.read_private(name), folder.path / name)
    except FileNotFoundError:
        return None
