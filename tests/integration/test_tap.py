"""Messages past nats-py: where they go so, and on a client that others use too."""

from __future__ import annotations

import asyncio
import gc
import ssl
import weakref
from collections.abc import AsyncIterator
from typing import Any

import nats
import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.transport import TcpTransport
from tests.conftest import BINARY
from tests.integration.buckets import SLOW, ignore
from tests.integration.tapping import is_tapped, socket_of
from tests.integration.test_connection import CERTIFICATE, CONFIG
from tests.patience import at_once, until

from jskv_saver import LocalServer
from jskv_saver._nats.tap import Tap, tap
from jskv_saver.adapters.jetstream.bucket import Bucket, Put
from jskv_saver.errors import JskvError, StoreClosedError, UnknownOutcomeError

MB = 1024 * 1024


@pytest.fixture
async def given(own_server: LocalServer) -> AsyncIterator[Client]:
    """A client that reconnects fast, on a server that may die."""
    client = await nats.connect(
        own_server.url, reconnect_time_wait=0.05, error_cb=ignore
    )
    yield client
    await client.close()


async def restarted(server: LocalServer, kv: Bucket) -> None:
    server.kill()
    await until(lambda: not kv.client.is_connected)
    await asyncio.to_thread(server.start)
    await until(lambda: kv.client.is_connected)


# -- where it is used ----------------------------------------------------------------


@pytest.mark.parametrize("secure", [False, True], ids=["tcp", "tls"])
async def test_answers_come_past_nats_py_also_after_a_reconnect(
    bucket: str, secure: bool
) -> None:
    config = CONFIG if secure else ""
    options = {"tls": ssl.create_default_context(cafile=str(CERTIFICATE))}
    with LocalServer(binary=BINARY, sync_interval="2m", config=config) as server:
        url = server.url.replace("nats:", "tls:") if secure else server.url
        kv = Bucket(url, bucket, connect=options if secure else {})
        await kv.put_many([Put("a", b"x"), Put("b", bytes(900_000))])
        assert await is_tapped(kv)
        await restarted(server, kv)
        assert await is_tapped(kv)
        entries = await kv.get_many(["a", "b"])
        assert [len(entry.value) for entry in entries] == [1, 900_000]
        await kv.close()


async def test_a_connection_of_tls_that_is_gone_can_be_closed(bucket: str) -> None:
    with LocalServer(binary=BINARY, sync_interval="2m", config=CONFIG) as server:
        context = ssl.create_default_context(cafile=str(CERTIFICATE))
        client = await nats.connect(server.url, tls=context, error_cb=ignore)
        kv = Bucket(client, bucket)
        await kv.put("a", b"x")
        assert await is_tapped(kv)
        server.kill()
        await until(lambda: not client.is_connected)
        # The second time that nats-py closes this socket.
        await client.close()
        await kv.close()


class Carrier(TcpTransport):
    """A transport that has no socket to show, as that of web sockets."""

    def __init__(self, carrier: Any) -> None:
        self.carrier = carrier

    def __getattribute__(self, name: str) -> Any:
        if name in ("carrier", "__class__"):
            return super().__getattribute__(name)
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.carrier, name)

    def __bool__(self) -> bool:
        return bool(self.carrier)


async def test_without_a_socket_nats_py_carries_all(
    client: Client, bucket: str
) -> None:
    client._transport = Carrier(client._transport)
    kv = Bucket(client, bucket)
    await kv.put_many([Put("a", b"x"), Put("b", b"y", 0)])
    assert not await is_tapped(kv)
    assert [entry.key for entry in await kv.get_many(["a", "b"])] == ["a", "b"]
    await asyncio.gather(*(kv.put(f"c.{n}", bytes(n)) for n in range(50)))
    assert len(await kv.names(["c.*"])) == 50
    await kv.close()


async def test_no_tap_in_the_middle_of_a_frame(client: Client, bucket: str) -> None:
    def made() -> Tap | None:
        return tap(client, 999, lambda _: None, lambda _: None)

    transport: Any = client._transport
    reader, parser = transport._io_reader._buffer, client._ps.buf
    wire = socket_of(client)
    # In nats-py's reader, then in its parser, then in a tap; of no subscription.
    wire.get_protocol().data_received(b"MSG a 998 5\r\nab")
    assert reader
    assert made() is None
    await until(lambda: parser == b"ab")
    assert made() is None
    # Of this one it has the line and nothing of the rest.
    wire.get_protocol().data_received(b"cde\r\nMSG a 998 0\r\n")
    await until(lambda: not (reader or parser))
    assert made() is None
    wire.get_protocol().data_received(b"\r\nMSG a")
    await until(lambda: parser == b"MSG a")
    assert made() is None
    wire.get_protocol().data_received(b" 998 0\r\n\r\n")
    await until(lambda: not (reader or parser))
    first = made()
    assert first is not None
    first.data_received(b"MSG a 998 5\r\nab")
    assert made() is None
    first.data_received(b"cde\r\n")
    await until(lambda: not (reader or parser))
    second = made()
    assert second is not None
    first.remove()
    second.remove()
    assert not isinstance(wire.get_protocol(), Tap)
    await client.flush()


async def test_no_tap_from_another_loop(client: Client) -> None:
    async def made() -> Tap | None:
        return tap(client, 999, lambda _: None, lambda _: None)

    assert await asyncio.to_thread(asyncio.run, made()) is None


# -- a client that others use too ----------------------------------------------------


class User:
    """Publishes numbered messages to itself and keeps the numbers that come."""

    def __init__(self, client: Client, subject: str) -> None:
        self.client = client
        self.subject = subject
        self.sent = 0
        self.seen: list[int] = []
        self.sizes: list[int] = []
        self.ended = False

    async def take(self, msg: Msg) -> None:
        self.seen.append(int(msg.headers["Number"]) if msg.headers else -1)
        self.sizes.append(len(msg.data))

    async def work(self) -> None:
        await self.client.subscribe(self.subject, cb=self.take)
        while not self.ended:
            size = 900_000 if self.sent % 50 == 3 else self.sent % 7
            await self.client.publish(
                self.subject, bytes(size), headers={"Number": f"{self.sent}"}
            )
            self.sent += 1
            if self.sent % 5 == 0:
                await asyncio.sleep(0)
            if self.sent % 20 == 0:
                await self.client.flush()

    async def end(self, working: asyncio.Task[None]) -> None:
        """Stop; everything has come, in order."""
        self.ended = True
        await working
        await until(lambda: len(self.seen) == self.sent)
        assert self.seen == list(range(self.sent))
        assert self.sizes == [
            900_000 if n % 50 == 3 else n % 7 for n in range(self.sent)
        ]


async def rounds(kv: Bucket, name: str, count: int) -> None:
    """Writes and reads that must all be right."""
    for number in range(count):
        size = 400_000 if number % 10 == 7 else number
        key = f"{name}.{number}"
        await kv.put(key, bytes(size))
        entry = await kv.get(key)
        assert entry is not None
        assert len(entry.value) == size
        await kv.put_many([Put(key, b"x"), Put(f"{key}.more", b"y")])
        found = {entry.key for entry in await kv.get_many([f"{name}.>"])}
        assert {key, f"{key}.more"} <= found


async def test_stores_come_and_go_while_the_user_works(
    client: Client, bucket: str
) -> None:
    users = [User(client, f"{bucket}.user.{n}") for n in range(2)]
    working = [asyncio.create_task(user.work()) for user in users]
    stores = [Bucket(client, bucket) for _ in range(3)]
    await asyncio.gather(*(rounds(kv, f"k{n}", 20) for n, kv in enumerate(stores)))
    # The middle one, the one that was first to be set, and the last.
    for place, left in ((1, (0, 2)), (0, (2,)), (2, ())):
        await asyncio.gather(
            stores[place].close(), *(rounds(stores[n], f"l{n}", 5) for n in left)
        )
    assert not isinstance(socket_of(client).get_protocol(), Tap)
    for user, work in zip(users, working, strict=True):
        await user.end(work)
    assert min(user.sent for user in users) > 100
    await client.jetstream().delete_stream(f"KV_{bucket}")


async def test_a_store_closed_in_mid_traffic(client: Client, bucket: str) -> None:
    user = User(client, f"{bucket}.user")
    working = asyncio.create_task(user.work())
    for turn in range(10):
        kv, other = Bucket(client, bucket), Bucket(client, bucket)
        await asyncio.gather(kv.put("a", b"x"), other.put("b", b"y"))
        calls = [
            asyncio.create_task(call)
            for n in range(40)
            for call in (kv.put(f"c.{n}", bytes(50_000)), kv.get("a"))
        ]
        for _ in range(turn):
            await asyncio.sleep(0)
        await kv.close()
        for result in await asyncio.gather(*calls, return_exceptions=True):
            if isinstance(result, BaseException):
                assert isinstance(result, StoreClosedError | UnknownOutcomeError)
        assert await other.get("b") is not None
        await other.close()
    await user.end(working)
    await client.jetstream().delete_stream(f"KV_{bucket}")


async def test_a_closed_store_leaves_nothing_behind(
    client: Client, bucket: str
) -> None:
    kv = Bucket(client, bucket)
    await kv.put("a", b"x")
    requests: weakref.ref[Any] = weakref.ref(kv._requests)
    await kv.close()
    del kv
    gc.collect()
    assert requests() is None
    await client.jetstream().delete_stream(f"KV_{bucket}")


@pytest.mark.parametrize("how", ["close", "drain", "force_reconnect"])
async def test_what_its_user_does_with_the_client(
    own_server: LocalServer, given: Client, bucket: str, how: str
) -> None:
    kv = Bucket(given, bucket, SLOW)
    await kv.put("a", b"x")
    calls = [
        asyncio.create_task(call)
        for n in range(100)
        for call in (kv.put(f"c.{n}", bytes(10_000)), kv.get("a"))
    ]
    for _ in range(3):
        await asyncio.sleep(0)
    with at_once():
        await getattr(given, how)()
        results = await asyncio.gather(*calls, return_exceptions=True)
    for result in results:
        assert not isinstance(result, BaseException) or isinstance(result, JskvError)
    if how == "force_reconnect":
        assert await is_tapped(kv)
    await kv.close()


async def test_fields_that_a_writer_made_up_do_not_count(
    client: Client, bucket: str
) -> None:
    kv = Bucket(client, bucket)
    await kv.put("a", b"x")
    made_up = {"Nats-Sequence": "999", "Nats-Subject": "$KV.x.y", "Status": "404"}
    ack = await client.jetstream().publish(f"$KV.{bucket}.b", b"y", headers=made_up)
    for entry in (await kv.get("b"), (await kv.get_many(["a", "b"]))[1]):
        assert entry == ("b", b"y", ack.seq, False)
    await kv.close()
    await client.jetstream().delete_stream(f"KV_{bucket}")
