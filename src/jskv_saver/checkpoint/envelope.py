"""How an encrypted document is stored, as far as one can tell without a key. Pure.

A document of any fields becomes one of the field `sealed`:

    format        1 byte
    key id        8 bytes
    nonce        12 bytes
    ciphertext   of the fields as MessagePack, and 16 bytes of tag

The key id is no part of the key: it is derived from it, one way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from jskv_saver.errors import (
    CorruptDocumentError,
    EncryptionError,
    UnsupportedFormatError,
)

SEALED: Final = "sealed"
"""The field of an encrypted document."""
FORMAT: Final = 1
KEY_ID: Final = 8
NONCE: Final = 12
TAG: Final = 16
HEADER: Final = 1 + KEY_ID
"""Bytes that are authenticated with the document's key."""
OVERHEAD: Final = 128
"""Bytes that encryption adds to a document at most."""
VARIABLE: Final = "JSKV_ENCRYPTION_KEYS"
"""The environment variable that keys are looked for in."""


class Envelope(NamedTuple):
    """The parts of what is stored.

    Attributes:
        header: Format and key id, as stored.
        key_id: The key id in hex digits.
        nonce: The nonce.
        sealed: Ciphertext and tag.
    """

    header: bytes
    key_id: str
    nonce: bytes
    sealed: bytes


def is_sealed(data: Mapping[str, Any]) -> bool:
    """Whether a document's fields are those of an encrypted one."""
    return SEALED in data


def envelope_of(data: Mapping[str, Any], key: str) -> Envelope:
    """The envelope in an encrypted document.

    Args:
        data: The document's fields.
        key: What errors call the document.

    Raises:
        CorruptDocumentError: It is none.
        UnsupportedFormatError: A newer release wrote it.
    """
    raw = data[SEALED]
    if len(data) > 1 or type(raw) is not bytes or not raw:
        raise CorruptDocumentError(f"{key!r} is no encrypted document", key=key)
    if raw[0] > FORMAT:
        raise UnsupportedFormatError(
            f"{key!r} is encrypted in format {raw[0]}, this release reads up to "
            f"{FORMAT}: upgrade it",
            key=key,
            version=raw[0],
        )
    if raw[0] != FORMAT or len(raw) < HEADER + NONCE + TAG:
        raise CorruptDocumentError(
            f"{key!r} is damaged: {len(raw)} bytes are no encrypted document", key=key
        )
    body = HEADER + NONCE
    return Envelope(raw[:HEADER], raw[1:HEADER].hex(), raw[HEADER:body], raw[body:])


def locked(data: Mapping[str, Any], key: str) -> EncryptionError | None:
    """The error of a document that is read without keys; None: it is not encrypted.

    Args:
        data: The document's fields.
        key: What the error calls the document.
    """
    if not is_sealed(data):
        return None
    key_id = envelope_of(data, key).key_id
    return EncryptionError(
        f"{key!r} is encrypted with key {key_id}, and no key was given: open the saver "
        f"with encryption=Encryption(…), or set {VARIABLE} for the command jskv",
        key=key,
        key_id=key_id,
    )
