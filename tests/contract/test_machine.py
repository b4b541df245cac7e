"""The same random calls to the memory store and to JetStream: the same answers.

Versions agree in order only, and are translated. Two handles share the bucket.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias, cast

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from tests.contract.drawn import (
    COLLECTIONS,
    FEW_IDS,
    FIELDS,
    NOBODY,
    VALUES,
    collections,
    data,
    declarable,
    few_ids,
    fields,
    handles,
    ids,
    leaves,
    orders,
    prefixes,
    seldom,
    specs,
    versions,
    wheres,
    withins,
)
from tests.soak import SOAK

from jskv_saver import (
    CollectionSpec,
    Document,
    FieldSpec,
    JetStreamDocumentStore,
    MemoryDocumentStore,
)
from jskv_saver.document.port import DocumentStore
from jskv_saver.errors import JskvError, UniqueViolationError, VersionConflictError

Call: TypeAlias = Callable[[DocumentStore, Callable[[int], int]], Awaitable[Any]]


class StoresAgree(RuleBasedStateMachine):
    """Runs one call on both sides and compares what comes of it."""

    url = ""
    bucket = ""

    @initialize(
        first=st.lists(fields, min_size=1, max_size=3, unique_by=lambda f: f.name),
        second=st.lists(fields, max_size=3, unique_by=lambda f: f.name),
    )
    def open(self, first: list[FieldSpec], second: list[FieldSpec]) -> None:
        self.runner = asyncio.Runner()
        self.memory = MemoryDocumentStore()
        self.handles = self.stores()
        self.owner = f"owner-{secrets.token_hex(6)}"
        self.versions = {0: 0, NOBODY: NOBODY}
        self.births: dict[datetime, datetime] = {}
        for handle in self.handles:
            self.runner.run(cast(Any, handle).__aenter__())
        for name, declared in zip(COLLECTIONS, (first, second), strict=False):
            self.ensure_collection(0, CollectionSpec(name, tuple(declared)))

    def stores(self) -> list[DocumentStore]:
        return [
            JetStreamDocumentStore.from_conn_string(self.url, bucket=self.bucket)
            for _ in range(2)
        ]

    def teardown(self) -> None:
        for handle in self.handles:
            self.runner.run(handle.close())
        self.runner.close()

    def both(self, handle: int, call: Call) -> Any:
        """Call both; raise if they disagree; return the memory store's answer."""
        there = self.runner.run(_outcome(call(self.handles[handle], self._there)))
        here = self.runner.run(_outcome(call(self.memory, lambda version: version)))
        self.compare(here, there)
        return here

    def _there(self, version: int) -> int:
        """JetStream's number for a version of the memory store's."""
        return self.versions.get(version, NOBODY)

    def compare(self, here: Any, there: Any) -> None:
        assert type(here) is type(there), f"{here!r} is not {there!r}"
        if isinstance(here, Document):
            assert (here.id, here.data) == (there.id, there.data)
            assert [*map(type, leaves(here.data))] == [*map(type, leaves(there.data))]
            assert self.versions.setdefault(here.version, there.version) == (
                there.version
            )
            assert self.births.setdefault(here.created_at, there.created_at) == (
                there.created_at
            )
        elif isinstance(here, dict):
            assert here.keys() == there.keys()
            for key, value in here.items():
                self.compare(value, there[key])
        elif isinstance(here, list):
            assert len(here) == len(there), f"{here!r} is not {there!r}"
            for mine, other in zip(here, there, strict=True):
                self.compare(mine, other)
        elif isinstance(here, UniqueViolationError):
            assert (here.fields, here.document) == (there.fields, there.document)
        elif isinstance(here, VersionConflictError):
            assert here.expected is not None
            assert here.actual is not None
            assert (self._there(here.expected), self._there(here.actual)) == (
                there.expected,
                there.actual,
            )
        elif not isinstance(here, JskvError):
            assert here == there

    @rule(handle=handles, spec=specs)
    def ensure_collection(self, handle: int, spec: CollectionSpec) -> None:
        self.both(handle, lambda s, v: s.ensure_collection(self.owner, spec))

    @rule(handle=handles, name=declarable, really=seldom)
    def drop_collection(self, handle: int, name: str, really: bool) -> None:
        if really:
            self.both(handle, lambda s, v: s.drop_collection(self.owner, name))

    @rule(handle=handles)
    def list_collections(self, handle: int) -> None:
        self.both(handle, lambda s, v: _listed(s.collections(self.owner)))

    @rule(handle=handles, name=collections, id=st.one_of(few_ids, ids), data=data)
    def put(self, handle: int, name: str, id: Any, data: Any) -> None:
        self.both(handle, lambda s, v: s.put(self.owner, name, id, data))

    @rule(handle=handles, name=collections, id=few_ids, data=data, version=versions)
    def put_version(
        self, handle: int, name: str, id: Any, data: Any, version: int
    ) -> None:
        self.both(
            handle,
            lambda s, v: s.put(self.owner, name, id, data, if_version=v(version)),
        )

    @rule(handle=handles, name=collections, id=few_ids, data=data)
    def put_present_version(self, handle: int, name: str, id: Any, data: Any) -> None:
        present = self.both(handle, lambda s, v: s.get(self.owner, name, id))
        if isinstance(present, Document):
            version = present.version
            self.both(
                handle,
                lambda s, v: s.put(self.owner, name, id, data, if_version=v(version)),
            )

    @rule(
        handle=handles,
        name=collections,
        id=few_ids,
        data=data,
        prefix=st.sampled_from([("a",), ("é",), ("b",)]),
        version=st.one_of(st.none(), versions),
    )
    def put_latest(
        self,
        handle: int,
        name: str,
        id: Any,
        data: Any,
        prefix: Any,
        version: int | None,
    ) -> None:
        if version is None:
            newest = self.both(
                handle,
                lambda s, v: _items(
                    s,
                    self.owner,
                    name,
                    order_by=("@version", "desc"),
                    within=prefix,
                    limit=1,
                    most=1,
                ),
            )
            version = newest[0].version if newest and type(newest) is list else 0
        fence = version
        self.both(
            handle,
            lambda s, v: s.put(
                self.owner, name, id, data, if_latest=(prefix, v(fence))
            ),
        )

    @rule(
        handle=handles,
        writes=st.lists(
            st.tuples(
                collections,
                few_ids,
                data,
                st.sampled_from([None, None, 0, (("a",), 0)]),
            ),
            max_size=4,
        ),
    )
    def put_many(self, handle: int, writes: list[Any]) -> None:
        done = self.both(
            handle,
            lambda s, v: _conflict_blurred(_listed(s.put_many(self.owner, writes))),
        )
        if isinstance(done, JskvError):
            # What is stored of it is learned before anything compares it.
            for name, id, _, _ in writes:
                self.get(handle, name, id)

    @rule(
        handle=handles, name=declarable, filling=st.lists(data, min_size=5, max_size=5)
    )
    def fill(self, handle: int, name: str, filling: list[Any]) -> None:
        for id, each in zip(FEW_IDS, filling, strict=True):
            self.put(handle, name, id, each)

    @rule(handle=handles, name=collections, id=st.one_of(few_ids, ids))
    def get(self, handle: int, name: str, id: Any) -> None:
        self.both(handle, lambda s, v: s.get(self.owner, name, id))

    @rule(
        handle=handles,
        reads=st.lists(
            st.tuples(collections, st.one_of(few_ids, prefixes)), max_size=4
        ),
    )
    def get_many(self, handle: int, reads: list[Any]) -> None:
        self.both(handle, lambda s, v: s.get_many(self.owner, reads))

    @rule(handle=handles, name=collections, id=few_ids)
    def delete(self, handle: int, name: str, id: Any) -> None:
        self.both(handle, lambda s, v: s.delete(self.owner, name, id))

    @rule(handle=handles, name=collections, id=few_ids, version=versions)
    def delete_version(self, handle: int, name: str, id: Any, version: int) -> None:
        self.both(
            handle,
            lambda s, v: s.delete(self.owner, name, id, if_version=v(version)),
        )

    @rule(handle=handles, name=collections, id=few_ids, version=versions)
    def delete_below(self, handle: int, name: str, id: Any, version: int) -> None:
        version = max((known for known in self.versions if known <= version), default=0)
        self.both(handle, lambda s, v: s.delete(self.owner, name, id, below=v(version)))

    @rule(
        handle=handles,
        names=st.lists(collections, min_size=1, max_size=4),
        prefix=st.one_of(st.just(("é",)), prefixes),
        version=st.one_of(st.none(), versions),
    )
    def delete_subtree(
        self, handle: int, names: list[str], prefix: Any, version: int | None
    ) -> None:
        if version is not None:
            version = max(known for known in self.versions if known <= version)
        limit = version
        self.both(
            handle,
            lambda s, v: s.delete(
                self.owner,
                names,
                prefix,
                subtree=True,
                below=None if limit is None else v(limit),
            ),
        )

    @rule(handle=handles, name=collections, id=few_ids)
    def delete_present_version(self, handle: int, name: str, id: Any) -> None:
        present = self.both(handle, lambda s, v: s.get(self.owner, name, id))
        if isinstance(present, Document):
            version = present.version
            self.both(
                handle,
                lambda s, v: s.delete(self.owner, name, id, if_version=v(version)),
            )

    @rule(handle=handles, name=collections, where=wheres, within=withins, really=seldom)
    def delete_many(
        self, handle: int, name: str, where: Any, within: Any, really: bool
    ) -> None:
        if where or really:
            self.both(
                handle,
                lambda s, v: s.delete_many(self.owner, name, where, within=within),
            )

    @rule(
        handle=handles,
        name=collections,
        where=wheres,
        order_by=orders,
        limit=st.integers(1, 4),
        within=withins,
    )
    def find(
        self, handle: int, name: str, where: Any, order_by: Any, limit: int, within: Any
    ) -> None:
        self.both(
            handle,
            lambda s, v: _items(
                s,
                self.owner,
                name,
                where,
                order_by=order_by,
                limit=limit,
                within=within,
            ),
        )

    @rule(handle=handles, name=collections, where=wheres, within=withins)
    def count(self, handle: int, name: str, where: Any, within: Any) -> None:
        self.both(handle, lambda s, v: s.count(self.owner, name, where, within=within))

    @rule(handle=handles, name=collections, within=withins)
    def list_ids(self, handle: int, name: str, within: Any) -> None:
        self.both(handle, lambda s, v: _listed(s.ids(self.owner, name, within=within)))

    @rule(handle=handles, name=declarable)
    @precondition(lambda self: len(self.births) > 2)
    def all_by_each_field(self, handle: int, name: str) -> None:
        for field in FIELDS:
            for value in VALUES:
                where = [(field, "eq", value)]
                self.both(handle, partial(_equal, self.owner, name, where))


async def _outcome(call: Awaitable[Any]) -> Any:
    try:
        return await call
    except JskvError as error:
        return error


async def _listed(call: Awaitable[Any]) -> list[Any]:
    return list(await call)


async def _conflict_blurred(call: Awaitable[Any]) -> Any:
    """A batch does not say which version it met."""
    try:
        return await call
    except VersionConflictError:
        raise JskvError("conflict") from None


async def _items(
    store: DocumentStore, owner: str, name: str, where: Any = (), **options: Any
) -> list[Document]:
    """All pages, or as many documents as `most`."""
    most = options.pop("most", None)
    items: list[Document] = []
    cursor: str | None = None
    while True:
        page = await store.find(owner, name, where, cursor=cursor, **options)
        items += page.items
        if page.cursor is None or (most is not None and len(items) >= most):
            return items
        cursor = page.cursor


async def _equal(
    owner: str, name: str, where: Any, store: DocumentStore, _: Callable[[int], int]
) -> list[Document]:
    return await _items(store, owner, name, where)


def test_memory_and_jetstream_answer_alike(nats_url: str, bucket: str) -> None:
    class Machine(StoresAgree):
        pass

    Machine.url, Machine.bucket = nats_url, bucket
    share = settings() if SOAK else settings(max_examples=25)
    run_state_machine_as_test(Machine, settings=share)
