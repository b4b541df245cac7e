"""Random and mutated bytes on every subject: a service outlives all of them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import nats
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nats.aio.client import Client
from nats.aio.msg import Msg
from tests.patience import PATIENCE
from tests.soak import SOAK

from jskv_saver import CollectionSpec, DocumentService, MemoryDocumentStore
from jskv_saver._nats.tokens import encode_token
from jskv_saver._proto.jskv.v1 import document_pb2 as pb
from jskv_saver.adapters.wire.endpoints import ENDPOINTS
from jskv_saver.adapters.wire.faults import BY_CODE, UNDESCRIBED
from jskv_saver.document.values import check_data
from jskv_saver.errors import RemoteFaultError

CASES = 100_000 if SOAK else 1_500
OWNER = "owner"


def _seeds() -> dict[str, list[bytes]]:
    """Legal requests, to be mutated."""
    where = [pb.Predicate(field="f", operator="eq", value=pb.Value(int_value=1))]
    within = pb.Within(prefixes=[pb.Pattern(segments=["", "a"], any=[0])])
    data = pb.Object(
        keys=["a", "b", "c"],
        values=[
            pb.Value(datetime_value=1),
            pb.Value(
                list_value=pb.List(values=[pb.Value(null_value=pb.NULL_UNSPECIFIED)])
            ),
            pb.Value(bytes_value=b"\xff"),
        ],
    )
    write: dict[str, Any] = {"collection": "notes", "id": ["a"], "data": data}
    fence = pb.Fence(prefix=pb.Path(segments=["t"]), version=0)
    made: dict[str, list[dict[str, Any]]] = {
        "limits": [{}],
        "collections": [{}],
        "ensure_collection": [
            {
                "spec": pb.CollectionSpec(
                    name="notes",
                    fields=[pb.FieldSpec(name="u", type="json", indexed=True)],
                    unique_together=[pb.UniqueGroup(fields=["u", "v"])],
                )
            }
        ],
        "drop_collection": [{"name": "tags"}],
        "put": [write, {**write, "if_version": 0}, {**write, "if_latest": fence}],
        "put_expiring": [
            {**write, "collection": "ls", "ttl_ms": 1000},
            {**write, "collection": "ls", "ttl_ms": 1500, "if_version": 0},
        ],
        "put_many": [{"writes": [pb.Write(**write)] * 2, "exact": True}],
        "get": [{"collection": "notes", "id": ["a"]}],
        "get_many": [
            {
                "reads": [
                    pb.Read(collection="notes", id=pb.Pattern(segments=[""], any=[0]))
                ]
            }
        ],
        "delete": [
            {"collections": ["notes"], "id": pb.Pattern(segments=["a"])},
            {
                "collections": ["notes", "cp"],
                "id": pb.Pattern(segments=["", "b"], any=[0]),
                "subtree": True,
                "below": 3,
            },
        ],
        "delete_many": [{"collection": "notes", "where": where, "within": within}],
        "find": [
            {
                "collection": "notes",
                "where": where,
                "order_by": pb.Order(field="@version", direction="desc"),
                "limit": 3,
                "cursor": "AAAA",
                "within": within,
            }
        ],
        "count": [{"collection": "notes", "where": where}],
        "ids": [{"collection": "notes", "after": pb.Path(segments=["a"])}],
    }
    assert made.keys() == ENDPOINTS.keys()
    return {
        primitive: [
            ENDPOINTS[primitive].request(namespace=OWNER, **fields).SerializeToString()
            for fields in requests
        ]
        for primitive, requests in made.items()
    }


SEEDS = _seeds()


@st.composite
def mutated(draw: st.DrawFn, seeds: list[bytes]) -> bytes:
    body = bytearray(draw(st.sampled_from(seeds)))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(body)))
        match draw(st.integers(0, 4)):
            case 0:
                body[at : at + 1] = draw(st.binary(min_size=1, max_size=1))
            case 1:
                body[at:at] = draw(st.binary(max_size=8))
            case 2:
                del body[at : at + draw(st.integers(1, 8))]
            case 3:
                other = draw(st.sampled_from(seeds))
                body[at:at] = other[: draw(st.integers(0, len(other)))]
            case _:
                del body[at:]
    return bytes(body)


@st.composite
def requests(draw: st.DrawFn) -> tuple[str, str, bytes]:
    """The token of a namespace, a primitive, and a body."""
    primitive = draw(st.sampled_from(sorted(ENDPOINTS)))
    body = draw(st.one_of(mutated(SEEDS[primitive]), mutated(SEEDS[primitive]), _ANY))
    token = draw(st.sampled_from([OWNER] * 7 + ["other", "-", "=="]))
    return token, draw(st.sampled_from([primitive] * 9 + ["nope"])), body


_ALL = [body for seeds in SEEDS.values() for body in seeds]
_ANY = st.one_of(st.binary(max_size=64), mutated(_ALL))


class Watched(MemoryDocumentStore):
    """Notes what it is asked to write, and by which request."""

    def __init__(self) -> None:
        super().__init__()
        self.put_data: list[dict[str, Any]] = []

    async def put(self, *args: Any, **options: Any) -> Any:
        document = await super().put(*args, **options)
        self.put_data.append(dict(args[3]))
        return document


@contextmanager
def _faults() -> Iterator[list[logging.LogRecord]]:
    """What the service reports as its own failure."""
    found: list[logging.LogRecord] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.levelno >= logging.WARNING:
                found.append(record)

    logger, handler = logging.getLogger("jskv_saver.adapters.wire"), Handler()
    logger.addHandler(handler)
    yield found
    logger.removeHandler(handler)


@pytest.mark.timeout(3600 if SOAK else 60)
def test_no_bytes_harm_it(nats_url: str) -> None:
    with asyncio.Runner() as runner, _faults() as faults:
        store = Watched()
        service = DocumentService(store, nats_url)
        runner.run(service.start())
        client: Client = runner.run(nats.connect(nats_url))
        runner.run(store.ensure_collection(OWNER, CollectionSpec("notes")))

        async def exchange(token: str, primitive: str, body: bytes) -> Msg:
            return await client.request(
                f"jskv.v1.{token}.{primitive}", body, timeout=PATIENCE
            )

        @settings(max_examples=CASES, database=None)
        @given(requests())
        def run(case: tuple[str, str, bytes]) -> None:
            token, primitive, body = case
            before = store._version
            store.put_data.clear()
            msg = runner.run(exchange(token, primitive, body))
            if (code := (msg.headers or {}).get("Nats-Service-Error-Code")) is not None:
                told = pb.Fault.FromString(msg.data)
                assert int(code) == told.code
                assert told.code in BY_CODE
                assert told.code != RemoteFaultError.code, told
                assert told.message != UNDESCRIBED
                assert faults == []
                if primitive != "put_many":
                    assert store._version == before
                return
            # It was a legal request, of this namespace.
            request = ENDPOINTS[primitive].request.FromString(body)
            assert encode_token(request.namespace) == token
            assert store._version == before or ENDPOINTS[primitive].write
            for data in store.put_data:
                assert check_data(data) == data

        run()
        assert (runner.run(exchange(OWNER, "limits", SEEDS["limits"][0]))).data
        runner.run(client.close())
        runner.run(service.stop())
