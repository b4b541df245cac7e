"""Which keys there are, and which are none."""

from __future__ import annotations

import base64
import copy
import pickle
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.encryption.keys import NEW, OLD

from jskv_saver import DocumentCheckpointSaver, Encryption, MemoryDocumentStore
from jskv_saver.checkpoint.encryption import encoded
from jskv_saver.checkpoint.envelope import OVERHEAD, envelope_of
from jskv_saver.checkpoint.sealing import SealedStore
from jskv_saver.errors import InvalidRequestError

BASE64 = base64.b64encode(NEW).decode()


@pytest.mark.parametrize(
    "key",
    [
        NEW,
        NEW.hex(),
        NEW.hex().upper(),
        f" {NEW.hex()}\n",
        BASE64,
        BASE64.rstrip("="),
        base64.urlsafe_b64encode(NEW).decode(),
    ],
    ids=["bytes", "hex", "HEX", "spaces", "base64", "without =", "urlsafe"],
)
def test_a_key_is_bytes_hex_or_base64(key: bytes | str) -> None:
    assert Encryption(key).key_ids == Encryption(NEW).key_ids


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (b"", "has 0 bytes"),
        (NEW[:16], "has 16 bytes: a key is 32 random bytes"),
        (NEW + b"x", "has 33 bytes"),
        (NEW.hex().encode(), "has 64 bytes"),
        (NEW[:16].hex(), "has 24 bytes"),
        (BASE64[:-4], "has 30 bytes"),
        ("", "has 0 bytes"),
        ("correct horse battery staple", "neither hex nor base64, it has 28 char"),
        (f"{NEW.hex()[:-1]}g", "has 48 bytes"),
        (bytes(32), "is not random"),
        ("00" * 32, "is not random"),
        (b"0123456789abcdef0123456789abcdef", "is not random"),
        (7, "is a int"),
        (None, "is a NoneType"),
        (bytearray(NEW), "is a bytearray"),
    ],
)
def test_what_is_no_key_is_refused_with_what_is_one(key: Any, message: str) -> None:
    with pytest.raises(InvalidRequestError, match=message) as caught:
        Encryption([key])

    assert "openssl rand -hex 32" in str(caught.value)


@pytest.mark.parametrize("keys", [[], (), None, 7, {"a": NEW}])
def test_no_keys_are_refused(keys: Any) -> None:
    with pytest.raises(InvalidRequestError, match="one key or a list of keys"):
        Encryption(keys)


def test_a_mistake_in_the_second_key_names_the_second() -> None:
    with pytest.raises(InvalidRequestError, match="key 2 has 3 bytes"):
        Encryption([NEW, b"old"])


@given(st.binary(max_size=40) | st.text(max_size=70))
def test_no_message_shows_a_key(key: bytes | str) -> None:
    try:
        shown = repr(Encryption(key))
    except InvalidRequestError as exc:
        shown = str(exc)

    text = key.hex() if isinstance(key, bytes) else key
    # Short ones are in any text.
    assert len(text) < 12 or text not in shown


def test_keys_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    both = Encryption([NEW, OLD]).key_ids
    for text in (f"{NEW.hex()},{OLD.hex()}", f" {BASE64} , {OLD.hex()}\n"):
        monkeypatch.setenv("JSKV_ENCRYPTION_KEYS", text)
        assert Encryption.from_env().key_ids == both
    monkeypatch.setenv("ELSEWHERE", OLD.hex())
    assert Encryption.from_env("ELSEWHERE").key_ids == both[1:]


@pytest.mark.parametrize("text", [None, "", " , "])
def test_an_environment_without_keys_says_so(
    monkeypatch: pytest.MonkeyPatch, text: str | None
) -> None:
    monkeypatch.delenv("KEYS", raising=False)
    if text is not None:
        monkeypatch.setenv("KEYS", text)
    with pytest.raises(InvalidRequestError, match="KEYS is not set, or empty: a key"):
        Encryption.from_env("KEYS")


def test_a_bad_key_in_the_environment_names_the_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KEYS", f"{NEW.hex()} secret!")
    with pytest.raises(InvalidRequestError, match="KEYS: encryption key 2") as caught:
        Encryption.from_env("KEYS")
    assert "secret!" not in str(caught.value)


def test_generated_keys_are_keys_and_all_different() -> None:
    keys = [Encryption.generate_key() for _ in range(50)]
    assert len({Encryption(key).key_ids for key in keys}) == 50


def test_key_ids_tell_keys_apart_and_are_no_part_of_them() -> None:
    ids = Encryption([NEW, OLD]).key_ids
    assert ids == Encryption(NEW).key_ids + Encryption(OLD).key_ids
    assert all(len(id) == 16 and id not in (NEW + OLD).hex() for id in ids)
    # The same key twice is one.
    assert Encryption([NEW, OLD, NEW.hex()]).key_ids == ids


def test_keys_are_not_pickled_or_shown() -> None:
    encryption = Encryption(NEW)
    for spoil in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match="holds keys"):
            spoil(encryption)
    assert repr(encryption) == f"Encryption(key_ids=['{encryption.key_ids[0]}'])"


@pytest.mark.parametrize("encryption", [NEW, "key", 7, Encryption])
def test_a_saver_takes_an_encryption_only(encryption: Any) -> None:
    with pytest.raises(InvalidRequestError, match="must be an Encryption"):
        DocumentCheckpointSaver(MemoryDocumentStore(), encryption=encryption)


def test_the_library_is_imported_where_keys_are_made_only() -> None:
    script = (
        "import sys\n"
        "from jskv_saver import DocumentCheckpointSaver, MemoryDocumentStore\n"
        "from jskv_saver import Encryption, JetStreamSaver\n"
        "DocumentCheckpointSaver(MemoryDocumentStore())\n"
        "assert 'cryptography' not in sys.modules\n"
        "Encryption(Encryption.generate_key())\n"
        "assert 'cryptography' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_without_the_library_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    with pytest.raises(InvalidRequestError, match=r"jskv-saver\[crypto\]"):
        Encryption(NEW)


paths = st.lists(st.text(max_size=4), max_size=5).map(tuple)


@given(paths, paths)
def test_two_names_are_never_one(left: tuple[str, ...], right: tuple[str, ...]) -> None:
    assert (encoded(left) == encoded(right)) == (left == right)


async def test_each_thread_has_a_key_of_its_own_and_no_nonce_comes_twice() -> None:
    raw, encryption = MemoryDocumentStore(), Encryption(NEW)
    sealed = SealedStore(raw, encryption)
    nonces: set[bytes] = set()
    for thread in ("t", "u"):
        for n in range(100):
            await sealed.put("default", "cp", ("a", thread, "", str(n)), {"b": b""})
    for thread in ("t", "u"):
        for n in range(100):
            found = await raw.get("default", "cp", ("a", thread, "", str(n)))
            nonces.add(envelope_of(found.data, "").nonce)
    assert len(nonces) == 200
    ciphers = {
        encryption._cipher(encryption._current, owner)
        for owner in (
            ("n", "a", "t"),
            ("n", "a", "u"),
            ("n", "b", "t"),
            ("m", "a", "t"),
        )
    }
    assert len({c.encrypt(bytes(12), b"", None) for c in ciphers}) == 4


async def test_what_encryption_adds_fits_its_reserve() -> None:
    raw = MemoryDocumentStore()
    sealed = SealedStore(raw, Encryption(NEW))
    assert sealed.limits.data == raw.limits.data - OVERHEAD
    for size in (0, 1, 300, 70_000):
        data = {"l": bytes(size), "k": b"", "d": bytes(32), "b": bytes(size)}
        await sealed.put("default", "bl", "x", data)
        found = await raw.get("default", "bl", "x")
        assert len(found.data["sealed"]) - 2 * size - 32 < OVERHEAD - 32
