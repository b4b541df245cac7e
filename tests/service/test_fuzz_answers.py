"""Random answers from whoever listens: a call ends with a value or a defined error."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import nats
from hypothesis import given, settings
from hypothesis import strategies as st
from nats.aio.client import Client
from nats.aio.msg import Msg
from tests.service.test_fuzz import mutated
from tests.soak import SOAK

from jskv_saver import CollectionSpec, Document, Page, RemoteDocumentStore
from jskv_saver._nats.listener import settle
from jskv_saver._proto.jskv.v1 import document_pb2 as pb
from jskv_saver.errors import InvalidRequestError, JskvError, UnknownOutcomeError

CASES = 20_000 if SOAK else 500
_STAMP = pb.Stamp(version=1, created=1, updated=2)
_DOCUMENT = pb.Document(
    id=["a", "b"],
    data=pb.Object(keys=["k"], values=[pb.Value(bool_value=True)]),
    stamp=_STAMP,
)
ANSWERS: dict[str, list[Any]] = {
    "collections": [pb.CollectionsReply(names=["a", "b"])],
    "put": [pb.PutReply(stamp=_STAMP)],
    "put_expiring": [pb.PutExpiringReply(stamp=_STAMP)],
    "put_many": [pb.PutManyReply(stamps=[_STAMP])],
    "get": [pb.GetReply(document=_DOCUMENT)],
    "get_many": [
        pb.GetManyReply(
            found=[pb.Found(collection="notes", document=_DOCUMENT)],
            left=[pb.Left(collection="notes", id=["a"], size=7)],
        )
    ],
    "find": [pb.FindReply(items=[_DOCUMENT], cursor="x"), pb.FindReply()],
    "count": [pb.CountReply(count=7)],
    "ids": [pb.IdsReply(ids=[pb.Path(segments=["a"])]), pb.IdsReply(more=True)],
    "delete": [pb.DeleteReply()],
    "delete_many": [pb.DeleteManyReply(count=7)],
    "ensure_collection": [pb.EnsureCollectionReply()],
}
READS = {"collections", "get", "get_many", "find", "count", "ids"}
_SERIALIZED = {
    name: [each.SerializeToString() for each in answers]
    for name, answers in ANSWERS.items()
}
_FAULT = pb.Fault(
    code=409, message="x", detail=pb.Object(keys=["actual"], values=[pb.Value()])
).SerializeToString()


def _call(store: RemoteDocumentStore, name: str) -> Any:
    calls: dict[str, Callable[[], Any]] = {
        "collections": lambda: store.collections("owner"),
        "put": lambda: store.put("owner", "notes", "a", {}),
        "put_expiring": lambda: store.put_expiring("owner", "ls", "a", {}, ttl=1),
        "put_many": lambda: store.put_many("owner", [("notes", "a", {}, None)]),
        "get": lambda: store.get("owner", "notes", "a"),
        "get_many": lambda: store.get_many("owner", [("notes", "a")]),
        "find": lambda: store.find("owner", "notes", limit=3),
        "count": lambda: store.count("owner", "notes"),
        "ids": lambda: store.ids("owner", "notes"),
        "delete": lambda: store.delete("owner", "notes", "a"),
        "delete_many": lambda: store.delete_many("owner", "notes"),
        "ensure_collection": lambda: store.ensure_collection(
            "owner", CollectionSpec("notes")
        ),
    }
    return calls[name]()


async def _outcome(call: Any) -> tuple[Any, JskvError | None]:
    try:
        return await call, None
    except JskvError as error:
        return None, error


@st.composite
def cases(draw: st.DrawFn) -> tuple[str, bytes, dict[str, str] | None]:
    """A primitive, the body of an answer, and its headers."""
    name = draw(st.sampled_from(sorted(ANSWERS)))
    body = draw(
        st.one_of(mutated(_SERIALIZED[name]), mutated([_FAULT]), st.binary(max_size=40))
    )
    code = draw(st.sampled_from([None, None, None, "409", "404", "500", "x", ""]))
    if code is None:
        return name, body, None
    return name, body, {"Nats-Service-Error-Code": code}


def test_no_answer_harms_a_caller(nats_url: str) -> None:
    with asyncio.Runner() as runner:
        client: Client = runner.run(nats.connect(nats_url))
        store = RemoteDocumentStore.from_conn_string(nats_url)
        answer: tuple[bytes, dict[str, str] | None] = (b"", None)
        left = 0

        async def respond(msg: Msg) -> None:
            nonlocal left
            if msg.subject.endswith(".limits"):
                body, headers = pb.LimitsReply(data=1000).SerializeToString(), None
            elif left:
                left -= 1
                body, headers = answer
            else:
                # Enough of it: a call that goes on and on is ended by an error.
                body, headers = b"\xff", None
            await client.publish(msg.reply, body, headers=headers)

        async def listen() -> None:
            await client.subscribe("jskv.v1.*.*", cb=respond)
            await settle(client)

        runner.run(listen())
        runner.run(store.setup())

        @settings(max_examples=CASES, database=None)
        @given(cases())
        def run(case: tuple[str, bytes, dict[str, str] | None]) -> None:
            nonlocal answer, left
            name, body, headers = case
            answer, left = (body, headers), 20
            value, error = runner.run(_outcome(_call(store, name)))
            if error is not None:
                # Nothing that the caller did was wrong, unless it is told so.
                if headers is None:
                    assert not isinstance(error, InvalidRequestError)
                    uncertain = isinstance(error, UnknownOutcomeError)
                    assert uncertain is (name not in READS)
                return
            assert headers is None
            if name in ("put", "get"):
                assert isinstance(value, Document)
            elif name == "find":
                assert isinstance(value, Page)

        run()
        runner.run(store.close())
        runner.run(client.close())
