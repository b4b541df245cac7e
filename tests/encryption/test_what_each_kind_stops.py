"""The claims of docs/security.md: what each kind of encryption stops, and what not."""

from __future__ import annotations

from typing import Any

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from tests.checkpoint.saving import AnySaver, at, get, ids, put, values
from tests.encryption.keys import NEW
from tests.encryption.stored import documents

from jskv_saver import DocumentCheckpointSaver, Encryption, MemoryDocumentStore
from jskv_saver.errors import EncryptionError

RECORD = ("cp", ("default", "t", "", "1"))


def _serialiser() -> EncryptedSerializer:
    return EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")


class Counting(JsonPlusSerializer):
    """LangGraph's serialiser, and how often it was given bytes to make objects of."""

    loaded = 0

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        self.loaded += 1
        return super().loads_typed(data)


async def _forge(store: MemoryDocumentStore) -> None:
    """Put a whole checkpoint of one's own in the place of another's."""
    mine = MemoryDocumentStore()
    await put(DocumentCheckpointSaver(mine), "1", {"x": "forged"})
    for (collection, path), data in (await documents(mine)).items():
        await store.put("default", collection, path, data)


async def test_forged_bytes_never_reach_the_serialiser() -> None:
    store, serde = MemoryDocumentStore(), Counting()
    await put(DocumentCheckpointSaver(store), "1", {"x": "real"})
    await _forge(store)
    plain = DocumentCheckpointSaver(store, serde=serde)
    assert await values(plain) == {"x": "forged"}
    assert serde.loaded > 0

    store, serde = MemoryDocumentStore(), Counting()
    locked: dict[str, Any] = {"encryption": Encryption(NEW)}
    await put(DocumentCheckpointSaver(store, **locked), "1", {"x": "real"})
    await _forge(store)
    saver = DocumentCheckpointSaver(store, serde=serde, **locked)
    with pytest.raises(EncryptionError, match="is not encrypted"):
        await get(saver)
    with pytest.raises(EncryptionError, match="is not encrypted"):
        await ids(saver, at(), filter={"step": 0})
    assert serde.loaded == 0


async def test_langgraph_s_serialiser_reads_what_is_not_encrypted() -> None:
    store = MemoryDocumentStore()
    saver: AnySaver = DocumentCheckpointSaver(store, serde=_serialiser())
    await put(saver, "1", {"x": "real"})
    await _forge(store)
    reader = DocumentCheckpointSaver(store, serde=_serialiser())
    assert await values(reader) == {"x": "forged"}


async def test_langgraph_s_serialiser_reads_what_was_moved() -> None:
    store = MemoryDocumentStore()
    saver = DocumentCheckpointSaver(store, serde=_serialiser())
    await put(saver, "1", {"x": "mine"})
    await put(saver, "1", {"x": "another's"}, thread="u")
    other = await store.get("default", "cp", ("default", "u", "", "1"))
    await store.put("default", RECORD[0], RECORD[1], other.data)
    reader = DocumentCheckpointSaver(store, serde=_serialiser())
    assert await values(reader) == {"x": "another's"}


async def test_langgraph_s_serialiser_shows_channels_and_no_values() -> None:
    store = MemoryDocumentStore()
    saver = DocumentCheckpointSaver(store, serde=_serialiser())
    await put(saver, "1", {"channelname": "secretvalue"}, about="secretmeta")
    await saver.aput_writes(at("1"), [("target", "secretwrite")], "task", "pathname")
    raw = b"".join(
        b"".join(each.values()) for each in (await documents(store)).values()
    )
    assert all(word in raw for word in (b"channelname", b"target", b"pathname"))
    assert b"secret" not in raw


async def test_a_whole_thread_can_be_set_back_by_who_can_write() -> None:
    """No encryption tells that something newer has been there."""
    store = MemoryDocumentStore()
    saver = DocumentCheckpointSaver(store, encryption=Encryption(NEW))
    await put(saver, "1", {"x": "old"})
    await put(saver, "2", {"x": "new"}, parent="1")
    await store.delete("default", "cp", ("default", "t", "", "2"))
    reader = DocumentCheckpointSaver(store, encryption=Encryption(NEW))
    assert await values(reader) == {"x": "old"}
