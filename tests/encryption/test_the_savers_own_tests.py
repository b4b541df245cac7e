"""The saver's own tests, with this package's encryption, and with LangGraph's."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from typing import Any

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from tests.checkpoint import test_repair, test_writers
from tests.checkpoint.saving import OpenSaver
from tests.encryption.keys import NEW
from tests.soak import SOAK

from jskv_saver import (
    DocumentCheckpointSaver,
    Encryption,
    JetStreamSaver,
    MemoryDocumentStore,
)

MODULES = ["delete", "delta_history", "put", "removal_races", "repair"]
if SOAK:
    MODULES += ["copy", "identity", "list", "writers", "writes"]
LONG = ["a_walk_of_eleven_hundred_ancestors_is_whole"]
_SERDE = b"0123456789abcdef"


def signature(test: Any) -> Mapping[str, Any]:
    return inspect.signature(test).parameters


for module in MODULES:
    found = importlib.import_module(f"tests.checkpoint.test_{module}")
    for name, test in vars(found).items():
        what = name.removeprefix("test_")
        if what == name or (what in LONG and not SOAK):
            continue
        if {"saver", "open_saver"} & {*signature(test)}:
            globals()[f"test_{module}__{what}"] = test
dying, strict = test_repair.dying, test_writers.strict


@pytest.fixture(
    params=["ours-memory", "langgraph-memory"]
    + (["ours-jetstream", "langgraph-jetstream"] if SOAK else [])
)
def open_saver(request: pytest.FixtureRequest) -> OpenSaver:
    whose, where = request.param.split("-")
    store: Any = MemoryDocumentStore()

    def open_(**options: Any) -> DocumentCheckpointSaver:
        if whose == "ours":
            options.setdefault("encryption", Encryption(NEW))
        else:
            serde = EncryptedSerializer.from_pycryptodome_aes(key=_SERDE)
            options.setdefault("serde", serde)
        if where == "memory":
            return DocumentCheckpointSaver(store, **options)
        url = request.getfixturevalue("nats_url")
        bucket = request.getfixturevalue("bucket")
        return JetStreamSaver.from_conn_string(url, bucket=bucket, **options)

    return open_


@pytest.fixture
async def saver(open_saver: OpenSaver) -> Any:
    async with open_saver() as opened:
        yield opened


@pytest.fixture
async def other(open_saver: OpenSaver) -> Any:
    async with open_saver() as opened:
        yield opened
