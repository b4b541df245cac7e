"""As `test_machine`, with a service between the calls and what stores them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test
from tests.contract.test_machine import StoresAgree
from tests.soak import SOAK

from jskv_saver import (
    DocumentService,
    DocumentStore,
    JetStreamDocumentStore,
    MemoryDocumentStore,
    RemoteDocumentStore,
)


class RemoteStoresAgree(StoresAgree):
    """Two remote handles, two services, one storage."""

    storage: Callable[[], DocumentStore]

    def stores(self) -> list[DocumentStore]:
        self.stored = type(self).storage()
        self.services = [DocumentService(self.stored, self.url) for _ in range(2)]
        for service in self.services:
            self.runner.run(service.start())
        return [RemoteDocumentStore.from_conn_string(self.url) for _ in range(2)]

    def teardown(self) -> None:
        for handle in self.handles:
            self.runner.run(handle.close())
        for service in self.services:
            self.runner.run(service.stop())
        self.runner.run(self.stored.close())
        self.runner.close()


@pytest.mark.parametrize("kind", ["memory", "jetstream"])
def test_memory_and_remote_answer_alike(nats_url: str, bucket: str, kind: str) -> None:
    def storage() -> DocumentStore:
        if kind == "memory":
            return MemoryDocumentStore()
        return JetStreamDocumentStore.from_conn_string(nats_url, bucket=bucket)

    class Machine(RemoteStoresAgree):
        pass

    Machine.url, Machine.storage = nats_url, staticmethod(storage)
    # What the stores themselves answer is seen in `test_machine`.
    few = settings.get_profile("ci").max_examples // 3
    run_state_machine_as_test(
        Machine, settings=None if SOAK else settings(max_examples=few)
    )
