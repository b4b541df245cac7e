"""Messages past nats-py when the server refuses, stops or dies, or strangers answer."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator

import nats
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from tests.conftest import BINARY
from tests.integration.buckets import SLOW, ignore
from tests.integration.tapping import go_on, is_tapped, socket_of
from tests.integration.test_bucket_faults import LATE, stop
from tests.patience import at_once, patiently, until

from jskv_saver import LocalServer
from jskv_saver._nats.waiting import Message
from jskv_saver.adapters.jetstream.bucket import Bucket, BucketOptions, Put
from jskv_saver.errors import (
    DocumentTooLargeError,
    PermissionDeniedError,
    StoreUnavailableError,
    UnknownOutcomeError,
)

_log = logging.getLogger(__name__)
KB = 1024
MB = 1024 * KB
RIGHTS = """
authorization {
  users = [
    {user: admin, password: pw}
    {user: limited, password: pw, permissions: {publish: {deny: [
      "$KV.*.no.>", "$JS.API.DIRECT.GET.*.$KV.*.no.>"
    ]}}}
    {user: deaf, password: pw, permissions: {subscribe: "_INBOX_deaf.>"}}
  ]
}
"""


@pytest.fixture(scope="module")
def guarded() -> Iterator[LocalServer]:
    with LocalServer(
        binary=BINARY, user="admin", password="pw", sync_interval="2m", config=RIGHTS
    ) as server:
        yield server


@pytest.fixture
def small_server() -> Iterator[LocalServer]:
    with LocalServer(
        binary=BINARY, sync_interval="2m", config="max_payload: 64KB"
    ) as server:
        yield server


@pytest.fixture(params=["own", "given"])
async def limited(
    request: pytest.FixtureRequest, guarded: LocalServer, bucket: str
) -> AsyncIterator[Bucket]:
    """Of a user who may not do everything."""
    url = f"nats://limited:pw@127.0.0.1:{guarded.port}"
    if request.param == "own":
        client = None
        kv = Bucket(url, bucket, SLOW)
    else:
        client = await nats.connect(url, error_cb=ignore)
        kv = Bucket(client, bucket, SLOW)
    await kv.put("a", b"x")
    yield kv
    await kv.close()
    if client is not None:
        await client.close()


# -- what the server refuses ---------------------------------------------------------


async def test_a_refusal_is_told_at_once_and_to_the_right_one(limited: Bucket) -> None:
    assert await is_tapped(limited)
    calls = [
        limited.put(key, b"x") if write else limited.get(key)
        for n in range(30)
        for write in (True, False)
        for key in (f"yes.{n}", f"no.{n}")
    ]
    # A batch has the refused one in the middle, and what follows it is not stored.
    batch = [Put("b", b"x"), Put("no.b", b"x"), Put("c", b"x")]
    with at_once():
        *results, batched = await asyncio.gather(
            *calls, limited.put_many(batch), return_exceptions=True
        )
    for place, result in enumerate(results):
        if place % 2 == 0:
            assert not isinstance(result, BaseException)
            continue
        assert isinstance(result, PermissionDeniedError)
        assert result.subject is not None
        assert result.subject.endswith(f".no.{place // 4}")
        assert result.subject.startswith("$KV" if place % 4 == 1 else "$JS.API.DIRECT")
    assert isinstance(batched, PermissionDeniedError)
    assert batched.subject == f"$KV.{limited.name}.no.b"
    assert await limited.get("c") is None


async def test_a_refused_inbox_is_told_at_once_to_all(
    guarded: LocalServer, bucket: str
) -> None:
    client = await nats.connect(
        f"nats://deaf:pw@127.0.0.1:{guarded.port}", error_cb=ignore
    )
    kv = Bucket(client, bucket, SLOW)
    with at_once():
        results = await asyncio.gather(
            *(kv.get(f"a.{n}") for n in range(20)), return_exceptions=True
        )
    assert {type(result) for result in results} == {PermissionDeniedError}
    await kv.close()
    await client.close()


async def test_a_refusal_that_came_before_the_tap_is_told_too(
    guarded: LocalServer, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"nats://limited:pw@127.0.0.1:{guarded.port}"
    told = asyncio.Event()

    async def tell(error: Exception) -> None:
        told.set()

    client = await nats.connect(url, error_cb=tell)
    kv = Bucket(client, bucket)
    await kv.put("a", b"x")
    with monkeypatch.context() as patch:
        patch.setattr(kv._requests, "_set_tap", lambda client: None)
        socket_of(client).get_protocol().remove()
        kv._requests._tap = None
        refused = asyncio.create_task(kv.put("no.a", b"x"))
        await told.wait()
    await kv.get("a")
    with pytest.raises(PermissionDeniedError):
        await refused
    assert await is_tapped(kv)
    await kv.close()
    await client.close()


# -- a server that stops or dies -----------------------------------------------------


@pytest.mark.parametrize("source", ["own", "given"])
async def test_killed_while_many_requests_are_pending(
    own_server: LocalServer, bucket: str, source: str
) -> None:
    client: Client | None = None
    if source == "given":
        client = await nats.connect(
            own_server.url, reconnect_time_wait=0.05, error_cb=ignore
        )
    kv = Bucket(client or own_server.url, bucket, SLOW)
    await kv.put("a", b"x")
    assert await is_tapped(kv)
    stop(own_server)
    calls = [
        asyncio.create_task(kv.get("a") if n % 2 else kv.put(f"c.{n}", bytes(n)))
        for n in range(1000)
    ]
    await until(lambda: len(kv._requests._pending) == len(calls))
    await asyncio.to_thread(own_server.kill)
    with at_once():
        results = await asyncio.gather(*calls, return_exceptions=True)
    assert Counter(map(type, results)) == {
        UnknownOutcomeError: 500,
        StoreUnavailableError: 500,
    }
    assert not kv._requests._pending
    await asyncio.to_thread(own_server.start)
    await until(lambda: kv.client.is_connected)
    assert await is_tapped(kv)
    await kv.close()
    if client is not None:
        await client.close()


async def test_a_stuck_socket_holds_nobody_beyond_the_deadline(
    own_server: LocalServer, bucket: str
) -> None:
    kv = Bucket(own_server.url, bucket, BucketOptions(timeout=1))
    await patiently(lambda: kv.put("a", b"x"))
    assert await patiently(lambda: is_tapped(kv))
    stop(own_server)
    begun = time.monotonic()
    calls = [asyncio.create_task(kv.put(f"c.{n}", bytes(512 * KB))) for n in range(60)]
    cancelled = calls.pop()
    await until(lambda: len(kv._requests._pending) == 60)
    cancelled.cancel()
    results = await asyncio.gather(*calls, kv.get("a"), return_exceptions=True)
    assert time.monotonic() - begun < LATE
    assert {type(result) for result in results[:-1]} == {UnknownOutcomeError}
    assert isinstance(results[-1], StoreUnavailableError)
    assert socket_of(kv.client).get_write_buffer_size() < 2 * MB
    assert not kv._requests._pending
    go_on(own_server)
    # What had no room is not sent once its caller has been told.
    await patiently(lambda: kv.put("b", b"after all that was sent"))
    stored = await patiently(lambda: kv.names(["c.*"]))
    assert len(stored) < 40
    await patiently(lambda: kv.put("b", b"later"))
    assert await patiently(lambda: kv.names(["c.*"])) == stored
    await kv.close()


async def test_many_large_writes_wait_for_room_and_small_calls_pass(
    own_server: LocalServer, bucket: str
) -> None:
    kv = Bucket(own_server.url, bucket)
    await kv.put("a", b"x")
    wire = socket_of(kv.client)
    largest = 0
    slowest = 0.0
    writes = asyncio.gather(*(kv.put(f"c.{n}", bytes(512 * KB)) for n in range(32)))
    while not writes.done():
        begun = time.monotonic()
        entry = await kv.get("a")
        assert entry is not None
        slowest = max(slowest, time.monotonic() - begun)
        largest = max(largest, wire.get_write_buffer_size())
    await writes
    assert largest < 2 * MB
    assert len(await kv.names(["c.*"])) == 32
    _log.info("%s bytes waited at most, a small read %.3f s", largest, slowest)
    await kv.close()


# -- what is too large, and who answers ----------------------------------------------


async def test_many_keys_are_read_from_a_server_of_small_messages(
    small_server: LocalServer, bucket: str
) -> None:
    kv = Bucket(small_server.url, bucket)
    keys = [f"k.{n}.{'x' * 150}" for n in range(900)]
    await kv.put_many([Put(key, b"v") for key in keys])
    assert kv.client.max_payload == 64 * KB
    found = await kv.get_many([*keys, "k.*.y"])
    assert [entry.key for entry in found] == keys
    assert len(await kv.get_many(["k.*.>", *keys])) == 900
    await kv.close()


@pytest.mark.parametrize("tapped", [True, False])
async def test_more_than_the_server_takes_is_too_large(
    small_server: LocalServer, bucket: str, tapped: bool
) -> None:
    kv = Bucket(small_server.url, bucket)
    await kv.put("a", b"x")
    assert await is_tapped(kv)
    requests = kv._requests
    if not tapped:
        socket_of(kv.client).get_protocol().remove()
        requests._subscription = None
        requests._tap = None
    headers = {"A": "b"}
    framed = 64 * KB - len("NATS/1.0\r\nA: b\r\n\r\n")
    with pytest.raises(DocumentTooLargeError) as caught:
        await requests.request(Message("a", bytes(framed + 1), headers), write=True)
    assert (caught.value.size, caught.value.limit) == (64 * KB + 1, 64 * KB)
    assert "nothing was sent" in str(caught.value)
    front = f"$KV.{bucket}."
    fits = Message(f"{front}b", bytes(framed), headers)
    answer = await requests.request(fits, write=True)
    assert json.loads(answer.data)["seq"] == 2
    # Of a batch something was sent by then.
    with pytest.raises(UnknownOutcomeError, match="interrupted: nothing"):
        await requests.fast_batch(
            [Message(f"{front}c", b"x"), Message(f"{front}d", bytes(MB))]
        )
    await kv.close()


async def test_an_answer_of_a_stranger_ends_that_request_only(
    nats_url: str, client: Client, bucket: str
) -> None:
    kv = Bucket(nats_url, bucket)
    await kv.put("a", b"x")
    assert await is_tapped(kv)

    async def answer(msg: Msg) -> None:
        for answer in (b"{", b"[]", b"null"):
            await client.publish(msg.reply, answer)

    await client.subscribe(f"{bucket}.*", cb=answer)
    await client.flush()
    with pytest.raises(UnknownOutcomeError, match="none of a NATS server"):
        await kv._requests.fast_batch(
            [Message(f"{bucket}.1", b"x"), Message(f"{bucket}.2", b"x")]
        )
    # Neither a subject that is no text nor an answer to nobody does any harm.
    prefix = kv._requests._prefix.encode()
    socket_of(client).write(b"PUB " + prefix + b"\xff.1.$FI 1\r\nx\r\n")
    await client.publish(f"{kv._requests._prefix}1", b"x")
    await client.flush()
    assert await kv.get("a") is not None
    assert kv.client.stats["reconnects"] == 0
    await kv.close()
    await client.jetstream().delete_stream(f"KV_{bucket}")
