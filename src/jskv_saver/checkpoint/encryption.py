"""Keys, and what is derived from them: one key for each thread, one for its names.

`cryptography` is imported when an `Encryption` is made, and by nothing else.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
import re
import secrets
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

from jskv_saver.checkpoint.arguments import parse_flag
from jskv_saver.checkpoint.envelope import (
    FORMAT,
    HEADER,
    KEY_ID,
    NONCE,
    VARIABLE,
    Envelope,
)
from jskv_saver.document.model import Path
from jskv_saver.errors import CorruptDocumentError, EncryptionError, InvalidRequestError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

KEY: Final = 32
"""Bytes of a key."""
DIGEST: Final = 16
"""Bytes of a part's name."""
_OWNER: Final = 2
"""Segments of an id that say whose a document is: agent and thread."""
_THREADS: Final = 4096
_LEAST_VARIETY: Final = 8
_HEX: Final = re.compile(r"[0-9a-fA-F]*")
_BASE64: Final = re.compile(r"[0-9A-Za-z+/_-]*={0,2}")
_HOW: Final = (
    f"a key is {KEY} random bytes, as bytes, or as text in hex ({2 * KEY} digits) or "
    "base64 (44 characters); `openssl rand -hex 32` prints one"
)


class Encryption:
    """Encrypts all that a saver stores: AES-256-GCM, by keys that only the caller has.

    Each thread has keys of its own, derived from the first key. The names of the keys
    in the bucket stay readable: namespace, agent, thread, checkpoint namespace,
    checkpoint, task and run ids. What is stored under them does not.

    Needs the package `cryptography`: `pip install "jskv-saver[crypto]"`.

    Args:
        keys: A key, or several: the first one is written with, all are read with. Each
            is 32 random bytes, as bytes or as text in hex or base64.
        accept_plaintext: Also read what is not encrypted, while a bucket moves to
            encryption. Whoever can write to the bucket can then forge a checkpoint.

    Raises:
        InvalidRequestError: A key or `accept_plaintext` is none, or `cryptography` is
            not installed.
    """

    def __init__(
        self,
        keys: bytes | str | Sequence[bytes | str],
        *,
        accept_plaintext: bool = False,
    ) -> None:
        self.accept_plaintext = parse_flag("accept_plaintext", accept_plaintext)
        given = [keys] if isinstance(keys, bytes | str) else keys
        if not isinstance(given, Sequence) or not given:
            raise InvalidRequestError(f"keys must be one key or a list of keys: {_HOW}")
        masters = [_master(key, at) for at, key in enumerate(given)]
        self._crypto = _library()
        self._masters = {self._id(master): master for master in masters}
        self._current = self._id(masters[0])
        self._header = bytes((FORMAT,)) + self._current
        # Savers of several threads may share this.
        self._cipher = lru_cache(_THREADS)(self._make_cipher)
        self._naming = lru_cache(_THREADS)(self._make_naming)

    @classmethod
    def from_env(
        cls, variable: str = VARIABLE, *, accept_plaintext: bool = False
    ) -> Encryption:
        """The keys in an environment variable.

        Args:
            variable: Its name; it holds one key in hex or base64, or several with
                commas, the one to write with first.
            accept_plaintext: As for the class.

        Raises:
            InvalidRequestError: It is not set, or holds something else.
        """
        if not isinstance(variable, str):
            raise InvalidRequestError(
                "variable must be the name of an environment variable, not "
                f"{variable!r:.80}"
            )
        words = os.environ.get(variable, "").replace(",", " ").split()
        if not words:
            raise InvalidRequestError(
                f"the environment variable {variable} is not set, or empty: {_HOW}"
            )
        try:
            return cls(words, accept_plaintext=accept_plaintext)
        except InvalidRequestError as exc:
            raise InvalidRequestError(f"{variable}: {exc}") from exc

    @staticmethod
    def generate_key() -> str:
        """A new random key, in base64."""
        return base64.b64encode(secrets.token_bytes(KEY)).decode()

    @property
    def key_ids(self) -> tuple[str, ...]:
        """How errors name the keys, the one to write with first; they tell nothing."""
        return tuple(id.hex() for id in self._masters)

    def __repr__(self) -> str:
        return f"Encryption(key_ids={list(self.key_ids)})"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "an Encryption holds keys and cannot be pickled: make one in the process "
            "that needs it"
        )

    def seal(self, aad: bytes, owner: Path, content: bytes) -> bytes:
        """An envelope with the key to write with.

        Args:
            aad: What names the document; it is authenticated, not stored.
            owner: The document's namespace, agent and thread.
            content: What to encrypt.
        """
        # Random: no two writers need to agree. 2^32 of them for each thread and key
        # keep a collision below 2^-32 (NIST SP 800-38D).
        nonce = os.urandom(NONCE)
        cipher = self._cipher(self._current, owner)
        return self._header + nonce + cipher.encrypt(nonce, content, self._header + aad)

    def open(self, envelope: Envelope, aad: bytes, owner: Path, key: str) -> bytes:
        """What is in an envelope.

        Args:
            envelope: As stored.
            aad: As for `seal`.
            owner: As for `seal`.
            key: What errors call the document.

        Raises:
            EncryptionError: It was written with another key.
            CorruptDocumentError: It is not what was written under this name.
        """
        key_id = envelope.header[1:HEADER]
        if key_id not in self._masters:
            raise EncryptionError(
                f"{key!r} is encrypted with key {envelope.key_id}, which is none of "
                f"those given ({', '.join(self.key_ids)}): add it behind the first one",
                key=key,
                key_id=envelope.key_id,
            )
        try:
            return self._cipher(key_id, owner).decrypt(
                envelope.nonce, envelope.sealed, envelope.header + aad
            )
        except self._crypto.invalid as exc:
            raise CorruptDocumentError(
                f"{key!r} is not what was encrypted under this name: its bytes were "
                "changed, or moved here from another one",
                key=key,
            ) from exc

    def naming(self, *scope: str) -> Callable[[bytes], bytes]:
        """What gives the parts of a checkpoint namespace their names.

        By HMAC: who has no key cannot tell whether a guess at a content is right.
        Contents that are the same have the same name within one checkpoint namespace.

        Args:
            *scope: Namespace, agent, thread, checkpoint namespace.
        """
        return self._naming(self._current, scope)

    def namings(self, *scope: str) -> list[Callable[[bytes], bytes]]:
        """The same for each key, the one to write with first."""
        return [self._naming(key_id, scope) for key_id in self._masters]

    def _id(self, master: bytes) -> bytes:
        return self._crypto.derive(master, b"jskv 1 id", KEY_ID)

    def _make_cipher(self, key_id: bytes, owner: Path) -> AESGCM:
        info = b"jskv 1 seal" + encoded(owner)
        key = self._crypto.derive(self._masters[key_id], info, KEY)
        return self._crypto.cipher(key)

    def _make_naming(
        self, key_id: bytes, scope: tuple[str, ...]
    ) -> Callable[[bytes], bytes]:
        info = b"jskv 1 name" + encoded(scope)
        key = self._crypto.derive(self._masters[key_id], info, KEY)

        def name_of(content: bytes) -> bytes:
            return hmac.digest(key, content, "sha256")[:DIGEST]

        return name_of


def encryption_of_environment(*, accept_plaintext: bool = False) -> Encryption | None:
    """The keys in the environment, for tools; None where the variable is not set.

    Raises:
        InvalidRequestError: It is set, and holds no key: it was meant to.
    """
    if VARIABLE not in os.environ:
        return None
    return Encryption.from_env(accept_plaintext=accept_plaintext)


def encoded(segments: Iterable[str]) -> bytes:
    """Segments as bytes; different ones never give the same."""
    pieces: list[bytes] = []
    for segment in segments:
        # Whether it can be stored is the store's to say.
        raw = segment.encode("utf-8", "surrogatepass")
        pieces += (len(raw).to_bytes(4, "big"), raw)
    return b"".join(pieces)


def owner_of(namespace: str, path: Path) -> Path:
    """Who has a key of his own: the namespace, the agent and the thread."""
    return (namespace, *path[:_OWNER])


class _Library(NamedTuple):
    """What is used of `cryptography`."""

    cipher: type[AESGCM]
    derive: Callable[[bytes, bytes, int], bytes]
    invalid: type[Exception]


def _library() -> _Library:
    # All at once: what follows may run on a loop that must not wait for files.
    try:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        from cryptography.hazmat.primitives.hashes import SHA256
        from cryptography.hazmat.primitives.kdf.hkdf import HKDF
    except ModuleNotFoundError as exc:
        raise InvalidRequestError(
            "encryption needs the package cryptography: "
            'pip install "jskv-saver[crypto]"'
        ) from exc

    def derive(master: bytes, info: bytes, length: int) -> bytes:
        return HKDF(SHA256(), length, salt=None, info=info).derive(master)

    return _Library(AESGCM, derive, InvalidTag)


def _master(key: object, at: int) -> bytes:
    """A key as bytes; no message ever shows any of it."""
    which = f"encryption key {at + 1}"
    if isinstance(key, str):
        raw = _decoded(key.strip(), which)
    elif isinstance(key, bytes):
        raw = key
    else:
        raise InvalidRequestError(f"{which} is a {type(key).__name__}: {_HOW}")
    if len(raw) != KEY:
        raise InvalidRequestError(f"{which} has {len(raw)} bytes: {_HOW}")
    if len(set(raw)) < _LEAST_VARIETY or (isinstance(key, bytes) and _is_text(raw)):
        raise InvalidRequestError(f"{which} is not random: {_HOW}")
    return raw


def _decoded(text: str, which: str) -> bytes:
    if len(text) == 2 * KEY and _HEX.fullmatch(text):
        return bytes.fromhex(text)
    if _BASE64.fullmatch(text):
        standard = text.rstrip("=").replace("-", "+").replace("_", "/")
        try:
            return base64.b64decode(standard + "=" * (-len(standard) % 4))
        except binascii.Error:
            pass
    raise InvalidRequestError(
        f"{which} is neither hex nor base64, it has {len(text)} characters: {_HOW}"
    )


def _is_text(raw: bytes) -> bool:
    return all(0x20 <= byte < 0x7F for byte in raw)
