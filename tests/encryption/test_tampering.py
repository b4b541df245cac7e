"""Who can write to the bucket, and has no key, can destroy but not change a thing.

What is put here goes past the saver, with a checksum that is right.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.checkpoint.saving import OpenSaver, at, get, ids, put, values
from tests.encryption.keys import NEW, OLD, OTHER
from tests.encryption.stored import changed, documents, everything, fill

from jskv_saver import DocumentCheckpointSaver, Encryption, MemoryDocumentStore
from jskv_saver.checkpoint.envelope import HEADER, NONCE
from jskv_saver.checkpoint.sealing import SealedStore
from jskv_saver.errors import (
    CorruptDocumentError,
    EncryptionError,
    InvalidRequestError,
    UnsupportedFormatError,
)

DAMAGED = (CorruptDocumentError, EncryptionError, UnsupportedFormatError)


async def test_what_is_written_is_read_by_whoever_has_the_key(
    open_saver: OpenSaver,
) -> None:
    async with open_saver(encryption=None, agent_id="plain") as plain:
        await fill(plain)
        expected = await everything(plain)
    async with open_saver() as writer:
        await fill(writer)
        assert await everything(writer) == expected
    async with open_saver() as reader:
        assert await everything(reader) == expected
        assert await ids(reader, at(), filter={"about": "about"}) == ["1"]
        assert await ids(reader, at(), filter={"about": "else"}) == []


@pytest.mark.parametrize("collection", ["cp", "wr", "bl"])
async def test_what_is_moved_to_another_key_is_refused(
    open_saver: OpenSaver, collection: str
) -> None:
    async with open_saver() as saver:
        await fill(saver)
        await fill(saver, "u")
        stored = await documents(saver.store)
        of_t = [key for key in stored if key[0] == collection and key[1][1] == "t"]
        assert len(of_t) > 1
        for key in of_t:
            # A few are enough, of whatever collection and thread.
            others = [other for other in stored if other != key]
            for other in others[:: len(others) // 4]:
                await saver.store.put("default", *key, stored[other])
                async with open_saver() as reader:
                    with pytest.raises(CorruptDocumentError) as caught:
                        await _open(reader, key)
                assert caught.value.key == "/".join((key[0], *key[1]))
            await saver.store.put("default", *key, stored[key])
        assert len(await everything(saver)) == 4


async def _open(saver: DocumentCheckpointSaver, key: tuple[str, Any]) -> Any:
    return await saver._partition.store.get("default", *key)


async def test_a_checkpoint_of_another_thread_agent_or_module_is_refused(
    open_saver: OpenSaver,
) -> None:
    """As a whole: its record, its parts and its writes."""
    async with open_saver() as saver:
        await fill(saver)
        await put(saver, "9", {"x": 1})
        stored = await documents(saver.store)
    for namespace, agent, thread in (
        ("default", "default", "moved"),
        ("default", "moved", "t"),
        ("moved", "default", "t"),
    ):
        async with open_saver(namespace=namespace, agent_id=agent) as reader:
            for (collection, path), data in stored.items():
                moved = (agent, thread, *path[2:])
                await reader.store.put(namespace, collection, moved, data)
            with pytest.raises(CorruptDocumentError, match="moved here"):
                await get(reader, thread=thread)
            with pytest.raises(CorruptDocumentError, match="moved here"):
                await get(reader, "1", thread=thread)


async def test_a_checkpoint_under_another_id_is_refused(open_saver: OpenSaver) -> None:
    async with open_saver() as saver:
        await put(saver, "1", {"x": "old"})
        await put(saver, "2", {"x": "new"}, parent="1")
        old = await saver.store.get("default", "cp", ("default", "t", "", "1"))
        # An old state as the newest one.
        for id in ("2", "3"):
            await saver.store.put("default", "cp", ("default", "t", "", id), old.data)
            async with open_saver() as reader:
                with pytest.raises(CorruptDocumentError, match="moved here"):
                    await get(reader)


@given(st.data())
def test_a_bit_that_is_turned_over_is_noticed(drawn: st.DataObject) -> None:
    async def attempt() -> None:
        store, stored = await _filled()
        key = drawn.draw(st.sampled_from(sorted(stored)))
        length = len(stored[key]["sealed"])
        position = drawn.draw(st.integers(0, length - 1))
        bad = changed(stored[key], position, drawn.draw(st.integers(1, 255)))
        await store.put("default", key[0], key[1], bad)
        await _is_refused(store, key)

    asyncio.run(attempt())


@given(st.data())
def test_what_is_cut_off_or_grows_is_noticed(drawn: st.DataObject) -> None:
    async def attempt() -> None:
        store, stored = await _filled()
        key = drawn.draw(st.sampled_from(sorted(stored)))
        sealed = stored[key]["sealed"]
        bad = drawn.draw(
            st.integers(0, len(sealed) - 1).map(lambda n: sealed[:n])
            | st.binary(min_size=1, max_size=40).map(lambda more: sealed + more)
            | st.binary(max_size=80)
        )
        await store.put("default", key[0], key[1], {"sealed": bad})
        await _is_refused(store, key)

    asyncio.run(attempt())


_STORED: dict[tuple[str, Any], dict[str, Any]] = {}


async def _filled() -> tuple[MemoryDocumentStore, dict[tuple[str, Any], Any]]:
    """A store with a thread, made once and copied then."""
    store = MemoryDocumentStore()
    if not _STORED:
        async with DocumentCheckpointSaver(store, encryption=Encryption(NEW)) as saver:
            await fill(saver)
        _STORED.update(await documents(store))
    else:
        for (collection, path), data in _STORED.items():
            await store.put("default", collection, path, data)
    return store, _STORED


async def _is_refused(store: MemoryDocumentStore, key: tuple[str, Any]) -> None:
    encryption = Encryption(NEW)
    with pytest.raises(DAMAGED) as caught:
        await SealedStore(store, encryption).get("default", *key)
    named = "/".join((key[0], *key[1]))
    assert getattr(caught.value, "key", None) == named
    reader = DocumentCheckpointSaver(store, encryption=encryption)
    if key[0] in ("wr", "bl") or (key[0] == "cp" and key[1][-1]):
        with pytest.raises(DAMAGED):
            await everything(reader)
    else:
        # Indexes and epochs are not read by who lists.
        assert len(await everything(reader)) == 4
    await reader.aclose()


@pytest.mark.parametrize(
    "data",
    [
        {"sealed": "text"},
        {"sealed": None},
        {"sealed": b""},
        {"sealed": b"\0" * 60},
        {"sealed": b"\1" + b"\0" * 60, "l": b""},
        {"sealed": [1]},
    ],
)
async def test_what_is_no_envelope_is_corrupt(
    open_saver: OpenSaver, data: dict[str, Any]
) -> None:
    async with open_saver() as saver:
        await put(saver, "1", {"x": 1})
        await saver.store.put("default", "cp", ("default", "t", "", "1"), data)
    for options in ({}, {"encryption": None}):
        async with open_saver(**options) as reader:
            with pytest.raises(CorruptDocumentError) as caught:
                await get(reader)
            assert caught.value.key == "cp/default/t//1"


async def test_a_newer_envelope_says_so(open_saver: OpenSaver) -> None:
    async with open_saver() as saver:
        await put(saver, "1", {"x": 1})
        key = ("cp", ("default", "t", "", "1"))
        sealed = (await saver.store.get("default", *key)).data["sealed"]
        await saver.store.put("default", *key, {"sealed": b"\2" + sealed[1:]})
        async with open_saver() as reader:
            with pytest.raises(UnsupportedFormatError, match="upgrade") as caught:
                await get(reader)
        assert caught.value.version == 2


async def test_another_key_s_id_is_refused(open_saver: OpenSaver) -> None:
    """Also where the reader has both."""
    async with open_saver(encryption=Encryption([NEW, OLD])) as saver:
        await put(saver, "1", {"x": 1})
        key = ("cp", ("default", "t", "", "1"))
        sealed = (await saver.store.get("default", *key)).data["sealed"]
        for id in (Encryption(OLD).key_ids[0], Encryption(OTHER).key_ids[0]):
            swapped = sealed[:1] + bytes.fromhex(id) + sealed[HEADER:]
            await saver.store.put("default", *key, {"sealed": swapped})
            async with open_saver(encryption=Encryption([NEW, OLD])) as reader:
                with pytest.raises((CorruptDocumentError, EncryptionError)) as caught:
                    await get(reader)
            expected = "none of those" if id in str(caught.value) else "not what was"
            assert expected in str(caught.value)


async def test_a_nonce_that_is_swapped_is_noticed(open_saver: OpenSaver) -> None:
    async with open_saver() as saver:
        await put(saver, "1", {"x": 1})
        key = ("cp", ("default", "t", "", "1"))
        sealed = (await saver.store.get("default", *key)).data["sealed"]
        swapped = sealed[:HEADER] + bytes(NONCE) + sealed[HEADER + NONCE :]
        await saver.store.put("default", *key, {"sealed": swapped})
        async with open_saver() as reader:
            with pytest.raises(CorruptDocumentError):
                await get(reader)


@pytest.mark.parametrize("what", ["cp", "wr", "bl", "epoch"])
async def test_plaintext_is_refused(open_saver: OpenSaver, what: str) -> None:
    async with open_saver(encryption=None) as plain:
        await fill(plain)
        forged = await documents(plain.store)
        await plain.adelete_thread("t")
    async with open_saver() as saver:
        await fill(saver)
        for (collection, path), data in forged.items():
            is_epoch = collection == "cp" and not path[-1]
            if is_epoch if what == "epoch" else (collection == what and not is_epoch):
                await saver.store.put("default", collection, path, data)
    async with open_saver() as reader:
        if what == "bl":
            # A forged part has another name: it is put in the place of the others.
            for id in await reader.store.ids("default", "bl"):
                await reader.store.put("default", "bl", id, {"b": b"forged " * 5_000})
        with pytest.raises(EncryptionError, match="is not encrypted") as caught:
            await (everything(reader) if what != "epoch" else get(reader))
    assert caught.value.key_id is None
    assert (caught.value.key or "").startswith("cp" if what == "epoch" else what)


async def test_without_a_key_the_error_says_what_to_do(open_saver: OpenSaver) -> None:
    async with open_saver() as saver:
        await fill(saver)
        await saver.aprune(["t"])
    id = Encryption(NEW).key_ids[0]
    async with open_saver(encryption=None) as stranger:
        for call in (
            stranger.aget_tuple(at()),
            stranger.aget_tuple(at("2")),
            everything(stranger),
            put(stranger, "3", {"x": 1}, parent="2"),
            stranger.aprune(["t"]),
            stranger.arepair(["t"]),
            stranger.acopy_thread("t", "u"),
            stranger.aget_delta_channel_history(config=at("2"), channels=["x"]),
            stranger.aput_writes(at("2"), [("small", 1)], "task"),
        ):
            with pytest.raises(EncryptionError, match="no key was given") as caught:
                await call
            assert "encryption=Encryption" in str(caught.value)
            assert caught.value.key_id == id
            assert caught.value.key
        # Nothing was lost by that, and erasing needs no key.
        async with open_saver() as saver:
            assert await ids(saver, at()) == ["2"]
        await stranger.adelete_thread("t")
        assert await documents(stranger.store) == {}


async def test_with_another_key_the_error_names_both(open_saver: OpenSaver) -> None:
    async with open_saver() as saver:
        await fill(saver)
    other = Encryption([OTHER, OLD])
    async with open_saver(encryption=other) as stranger:
        with pytest.raises(EncryptionError, match="none of those given") as caught:
            await get(stranger)
    assert caught.value.key_id == Encryption(NEW).key_ids[0]
    assert all(id in str(caught.value) for id in other.key_ids)


async def test_keys_are_rotated(open_saver: OpenSaver) -> None:
    async with open_saver(encryption=Encryption(OLD)) as saver:
        await fill(saver)
        expected = await everything(saver)
    old, new = Encryption(OLD).key_ids[0], Encryption(NEW).key_ids[0]
    both = Encryption([NEW, OLD])
    async with open_saver(encryption=both) as saver:
        assert await everything(saver) == expected
        await put(
            saver,
            "3",
            await values(saver, "2") | {"more": "x" * 9_000},
            parent="2",
            versions={"small": "2", "large": "2", "n": "2", "more": "3"},
            new={"more": "3"},
        )
        assert await _keys_of(saver, "3") == {new}
        assert await _keys_of(saver, "2") == {old}
        # What the thread goes on with is still under the old key; a copy is not.
        await saver.acopy_thread("t", "copy")
        copied = await everything(saver, "copy")
    async with open_saver(encryption=Encryption(NEW)) as saver:
        with pytest.raises(EncryptionError, match=old):
            await values(saver, "3")
        assert await everything(saver, "copy") == copied
        assert len(copied) == len(expected) + 1
    async with open_saver(encryption=Encryption(OLD)) as saver:
        with pytest.raises(EncryptionError, match=new):
            await values(saver, "3")


async def _keys_of(saver: DocumentCheckpointSaver, id: str) -> set[str]:
    stored = await documents(saver.store)
    return {
        data["sealed"][1:HEADER].hex()
        for (collection, path), data in stored.items()
        if collection == "cp" and path[-1] == id
    }


async def test_a_bucket_moves_to_encryption(open_saver: OpenSaver) -> None:
    async with open_saver(encryption=None) as plain:
        await fill(plain)
        expected = await everything(plain)
    moving = Encryption(NEW, accept_plaintext=True)
    async with open_saver(encryption=moving) as saver:
        assert await everything(saver) == expected
        await put(saver, "3", {"x": 1}, parent="2")
        await saver.acopy_thread("t", "u")
        await saver.adelete_thread("t")
        stored = await documents(saver.store)
        assert {"sealed"} == {name for data in stored.values() for name in data}
    async with open_saver() as saver:
        assert await values(saver, "3", thread="u") == {"x": 1}
        assert len(await everything(saver, "u")) == 5


async def test_fields_are_not_searched(open_saver: OpenSaver) -> None:
    async with open_saver() as saver:
        store = saver._partition.store
        where: Any = [("l", "eq", b"")]
        for call in (
            store.find("default", "cp", where),
            store.find("default", "cp", order_by=("l", "asc")),
            store.count("default", "cp", where),
            store.delete_many("default", "cp", where),
            anext(store.iterate("default", "cp", where)),
        ):
            with pytest.raises(InvalidRequestError, match="encrypted fields"):
                await call


async def test_what_the_first_release_wrote_is_read_for_ever() -> None:
    """Format, derivation of keys, associated data and names of parts, as they were."""
    sealed = bytes.fromhex(
        "018b51bcd06c15be4171e2105560e434de65234f0b7ee7735ed18238bcf640917b7afac7bbe080"
        "7944973f0a96f13ada4b4561e27d62ef"
    )
    store, encryption = MemoryDocumentStore(), Encryption(NEW)
    id = ("agent", "thread é", "", "1")
    await store.put("module", "cp", id, {"sealed": sealed})
    found = await SealedStore(store, encryption).get("module", "cp", id)
    assert found.data == {"l": b"layout", "k": b"", "n": 7}
    name_of = encryption.naming("module", "agent", "thread é", "ns")
    assert name_of(b"content").hex() == "7aee84812eb98fac9864ed3d1a8093c1"
