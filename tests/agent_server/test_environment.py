from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from jskv_saver import Encryption, LocalServer
from jskv_saver.agent_server import VARIABLES, checkpointer
from jskv_saver.errors import BucketNotFoundError, InvalidRequestError

THREAD: RunnableConfig = {"configurable": {"thread_id": "t"}}
DOCUMENT = Path(__file__).parents[2] / "docs" / "agent-server.md"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, nats_server: LocalServer) -> None:
    for name in (
        *VARIABLES,
        "JSKV_ENCRYPTION_KEYS",
        "LANGGRAPH_AES_KEY",
        "NATS_CREDS",
        "NATS_NKEY",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NATS_URL", nats_server.url)


async def test_the_variables_are_the_saver_s_arguments(
    monkeypatch: pytest.MonkeyPatch, bucket: str
) -> None:
    monkeypatch.setenv("JSKV_BUCKET", bucket)
    monkeypatch.setenv("JSKV_NAMESPACE", "my_app")
    monkeypatch.setenv("JSKV_AGENT_ID", "approval-v1")
    monkeypatch.setenv("JSKV_ON_CONFLICT", "raise")
    monkeypatch.setenv("JSKV_STORAGE", "memory")
    monkeypatch.setenv("JSKV_TIMEOUT", "7.5")
    monkeypatch.setenv("JSKV_MAX_BYTES", "10000000")
    monkeypatch.setenv("JSKV_PLACEMENT_TAGS", "")
    async with checkpointer() as saver:
        assert (saver.namespace, saver.agent_id) == ("my_app", "approval-v1")
        assert isinstance(saver.serde, JsonPlusSerializer)
        store: Any = saver.store
        requests = store._bucket._requests
        client = requests.client
        info = await client.jetstream().stream_info(f"KV_{bucket}")
        assert (info.config.storage, info.config.max_bytes) == ("memory", 10_000_000)
        assert requests.timeout == 7.5
        assert saver._on_conflict == "raise"


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("JSKV_REPLICAS", "three", "JSKV_REPLICAS has to be a number, not 'three'"),
        ("JSKV_REPLICAS", "9", "replicas has to be a number from 1 to 5, not 9"),
        ("JSKV_TIMEOUT", "-1", "timeout has to be a number of seconds above 0"),
        ("JSKV_CREATE", "maybe", "JSKV_CREATE has to be true or false, not 'maybe'"),
        ("JSKV_ON_CONFLICT", "merge", "on_conflict must be 'fork' or 'raise'"),
        ("JSKV_BUKET", "b", "no variable JSKV_BUKET: did you mean JSKV_BUCKET?"),
        ("LANGGRAPH_AES_KEY", "short", "LANGGRAPH_AES_KEY"),
    ],
)
async def test_a_variable_that_says_nothing_is_named(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, told: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(InvalidRequestError, match=re.escape(told)):
        async with checkpointer():
            pass


@pytest.mark.parametrize("name", ["NATS_CREDS", "NATS_NKEY"])
async def test_a_login_that_is_missing_is_named(
    monkeypatch: pytest.MonkeyPatch, name: str, tmp_path: Path
) -> None:
    path = str(tmp_path / "missing")
    monkeypatch.setenv("NATS_URL", "nats://127.0.0.1:4222")
    monkeypatch.setenv(name, path)
    with pytest.raises(InvalidRequestError, match=re.escape(path)):
        async with checkpointer():
            pass


async def test_a_variable_of_somebody_else_is_none_of_ours(
    monkeypatch: pytest.MonkeyPatch, bucket: str
) -> None:
    monkeypatch.setenv("JSKV_TEST_NATS_SERVER", "somewhere")
    monkeypatch.setenv("JSKV_BUCKET", bucket)
    monkeypatch.setenv("JSKV_CREATE", "True")
    async with checkpointer():
        pass


async def test_a_bucket_that_must_not_be_made_is_not_made(
    monkeypatch: pytest.MonkeyPatch, bucket: str
) -> None:
    monkeypatch.setenv("JSKV_BUCKET", bucket)
    monkeypatch.setenv("JSKV_CREATE", "false")
    with pytest.raises(BucketNotFoundError, match=bucket):
        async with checkpointer():
            pass


async def test_langgraph_s_own_key_encrypts(
    monkeypatch: pytest.MonkeyPatch, bucket: str
) -> None:
    monkeypatch.setenv("JSKV_BUCKET", bucket)
    monkeypatch.setenv("LANGGRAPH_AES_KEY", "0123456789abcdef")
    async with checkpointer() as saver:
        assert isinstance(saver.serde, EncryptedSerializer)


async def test_the_keys_of_this_package_encrypt_all(
    monkeypatch: pytest.MonkeyPatch, bucket: str
) -> None:
    monkeypatch.setenv("JSKV_BUCKET", bucket)
    monkeypatch.setenv("JSKV_ENCRYPTION_KEYS", Encryption.generate_key())
    async with checkpointer() as saver:
        assert saver._partition.encryption is not None
    monkeypatch.setenv("JSKV_ENCRYPTION_KEYS", "short")
    with pytest.raises(InvalidRequestError, match="JSKV_ENCRYPTION_KEYS"):
        async with checkpointer():
            pass


async def test_each_loop_has_a_saver_of_its_own(
    monkeypatch: pytest.MonkeyPatch, bucket: str
) -> None:
    monkeypatch.setenv("JSKV_BUCKET", bucket)

    async def use() -> bool:
        async with checkpointer() as saver:
            return await saver.aget_tuple(THREAD) is None

    async with checkpointer() as saver:
        assert await asyncio.to_thread(asyncio.run, use())
        assert await saver.aget_tuple(THREAD) is None


def test_the_document_lists_every_variable() -> None:
    named = re.findall(r"^\| `(JSKV_\w+)`", DOCUMENT.read_text(), re.MULTILINE)
    assert named == list(VARIABLES)
