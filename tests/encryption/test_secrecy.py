"""What a bucket tells whoever reads all of it, and has no key: names, times, sizes.

The scan looks at every message of the stream: its subject, headers and bytes.
"""

from __future__ import annotations

from typing import Any

import nats
import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.types import Interrupt
from tests.checkpoint.saving import AnySaver, at, get, meta, put
from tests.encryption.keys import NEW, OTHER

from jskv_saver import Encryption, JetStreamSaver

SECRET = {
    "a value": "secretvalue",
    "a large value": "secretlarge",
    "a value of metadata": "secretmeta",
    "a key of metadata": "secretkey",
    "a channel": "secretchannel",
    "a node": "secretnode",
    "a version": "secretversion",
    "what a task wrote": "secretwrite",
    "a channel that a task wrote to": "secrettarget",
    "a path of a task": "secretpath",
    "a question": "secretquestion",
    "a failure": "secretfailure",
    "a large write": "secretbulk",
    "a request": "secretrequest",
    "a version of a graph": "secretgraph",
}
VISIBLE = {
    "the module": "plainmodule",
    "the agent": "plainagent",
    "the thread": "plainthread",
    "a checkpoint namespace": "plainspace",
    "a checkpoint": "plaincheckpoint",
    "a task": "plaintask",
    "a run": "plainrun",
    "a request's id": "plainid",
}


async def _plant(saver: AnySaver) -> None:
    """Everything that a saver stores, each with a word of its own."""
    where: dict[str, Any] = {"thread": VISIBLE["the thread"]}
    for ns in ("", VISIBLE["a checkpoint namespace"]):
        where["ns"] = ns
        made = empty_checkpoint() | {
            "id": VISIBLE["a checkpoint"],
            "channel_values": {
                SECRET["a channel"]: SECRET["a value"],
                "large": SECRET["a large value"] * 60_000,
            },
            "channel_versions": {
                SECRET["a channel"]: SECRET["a version"],
                "large": "1",
            },
            "versions_seen": {SECRET["a node"]: {"large": "1"}},
            "updated_channels": [SECRET["a channel"]],
        }
        metadata = meta(
            run_id=VISIBLE["a run"],
            about=[SECRET["a value of metadata"]],
            **{SECRET["a key of metadata"]: 1},
        )
        config = at(None, **where)
        await saver.aput(config, made, metadata, made["channel_versions"])
        written = [
            (SECRET["a channel that a task wrote to"], SECRET["what a task wrote"]),
            ("__interrupt__", [Interrupt(SECRET["a question"], id="i")]),
            ("__error__", SECRET["a failure"]),
        ]
        task = VISIBLE["a task"]
        config = at(VISIBLE["a checkpoint"], **where)
        await saver.aput_writes(config, written, task, SECRET["a path of a task"])
        bulk = [("c", SECRET["a large write"] * 30_000)]
        await saver.aput_writes(config, bulk, "large")
    thread = at(None, thread=VISIBLE["the thread"])
    assert isinstance(saver, JetStreamSaver)
    await saver.aadmit(
        thread, SECRET["a request"], request_id=VISIBLE["a request's id"]
    )


async def _scan(url: str, bucket: str) -> bytes:
    """All messages of a bucket's stream, one after the other."""
    client = await nats.connect(url)
    jetstream = client.jetstream()
    state = (await jetstream.stream_info(f"KV_{bucket}")).state
    found: list[bytes] = []
    for sequence in range(state.first_seq, state.last_seq + 1):
        try:
            message = await jetstream.get_msg(f"KV_{bucket}", sequence, direct=True)
        except nats.js.errors.NotFoundError:
            continue
        headers = str(message.headers or {}).encode()
        found += ((message.subject or "").encode(), headers, message.data or b"")
    await client.close()
    assert len(found) > 3 * 15
    return b"\n".join(found)


def _found(words: dict[str, str], raw: bytes) -> set[str]:
    return {what for what, word in words.items() if word.encode() in raw}


@pytest.fixture(params=[True, False], ids=["encrypted", "plain"])
async def seen(
    request: pytest.FixtureRequest, nats_url: str, bucket: str
) -> tuple[bool, bytes]:
    """Whether it is encrypted, and all that there is in the bucket."""
    saver = JetStreamSaver.from_conn_string(
        nats_url,
        bucket=bucket,
        namespace=VISIBLE["the module"],
        agent_id=VISIBLE["the agent"],
        graph_version=SECRET["a version of a graph"],
        encryption=Encryption(NEW) if request.param else None,
    )
    async with saver:
        await _plant(saver)
    return request.param, await _scan(nats_url, bucket)


def test_all_secrets_are_in_a_plain_bucket_and_none_in_an_encrypted_one(
    seen: tuple[bool, bytes],
) -> None:
    encrypted, raw = seen
    assert _found(SECRET, raw) == (set() if encrypted else SECRET.keys())


def test_the_names_of_things_are_what_can_be_read(seen: tuple[bool, bytes]) -> None:
    _, raw = seen
    assert _found(VISIBLE, raw) == VISIBLE.keys()


async def test_a_guess_at_a_content_cannot_be_checked_without_the_key(
    nats_url: str, bucket: str
) -> None:
    """Names of parts differ by key, thread and namespace; the same one they share."""
    state = {"guess": "yes " * 150_000}
    names: dict[tuple[Any, ...], set[str]] = {}
    for key in (None, NEW, OTHER):
        for agent, thread, ns in (
            ("a", "t", ""),
            ("a", "u", ""),
            ("b", "t", ""),
            ("a", "t", "sub"),
        ):
            namespace = key.hex()[:8] if key else "plain"
            encryption = Encryption(key) if key else None
            async with JetStreamSaver.from_conn_string(
                nats_url,
                bucket=bucket,
                namespace=namespace,
                agent_id=agent,
                encryption=encryption,
            ) as saver:
                await put(saver, "1", state, thread=thread, ns=ns)
                await put(saver, "2", state, thread=thread, ns=ns)
                stored = await saver.store.ids(
                    namespace, "bl", within=(agent, thread, ns)
                )
                names[key, agent, thread, ns] = {id[-1] for id in stored}
                assert (await get(saver, "2", thread=thread, ns=ns)).checkpoint[
                    "channel_values"
                ] == state
    plain = [found for key, found in names.items() if key[0] is None]
    assert plain[0]
    assert all(found == plain[0] for found in plain)
    secret = [found for key, found in names.items() if key[0] is not None]
    assert len(set().union(plain[0], *secret)) == sum(map(len, [plain[0], *secret]))
    # What comes again is stored once, all the same.
    assert {len(found) for found in secret} == {len(plain[0])}
