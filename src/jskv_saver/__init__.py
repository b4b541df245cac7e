"""LangGraph checkpoints and documents on NATS JetStream KV.

The public names load on first use: a program that only stores documents never
imports LangGraph, and one that only talks to a service never imports more than that.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jskv_saver import errors
    from jskv_saver.adapters.jetstream.store import JetStreamDocumentStore
    from jskv_saver.adapters.memory import MemoryDocumentStore
    from jskv_saver.adapters.wire.service import DocumentService
    from jskv_saver.adapters.wire.store import RemoteDocumentStore
    from jskv_saver.checkpoint.admissions import Admission
    from jskv_saver.checkpoint.encryption import Encryption
    from jskv_saver.checkpoint.reports import PruneReport
    from jskv_saver.checkpoint.retention import Retention
    from jskv_saver.checkpoint.saver import DocumentCheckpointSaver
    from jskv_saver.checkpoint.verifying import VerifyReport
    from jskv_saver.checkpoint.versions import GraphVersion, GraphVersionWarning
    from jskv_saver.checkpoint.watch import ThreadEvent
    from jskv_saver.connect import JetStreamSaver
    from jskv_saver.document.findings import Finding
    from jskv_saver.document.model import (
        ANY,
        CollectionSpec,
        Document,
        FieldSpec,
        Page,
    )
    from jskv_saver.document.port import DocumentStore
    from jskv_saver.server import LocalServer

    __version__: str

__all__ = [
    "ANY",
    "Admission",
    "CollectionSpec",
    "Document",
    "DocumentCheckpointSaver",
    "DocumentService",
    "DocumentStore",
    "Encryption",
    "FieldSpec",
    "Finding",
    "GraphVersion",
    "GraphVersionWarning",
    "JetStreamDocumentStore",
    "JetStreamSaver",
    "LocalServer",
    "MemoryDocumentStore",
    "Page",
    "PruneReport",
    "RemoteDocumentStore",
    "Retention",
    "ThreadEvent",
    "VerifyReport",
    "__version__",
    "errors",
]

_HOMES = {
    "ANY": "jskv_saver.document.model",
    "Admission": "jskv_saver.checkpoint.admissions",
    "CollectionSpec": "jskv_saver.document.model",
    "Document": "jskv_saver.document.model",
    "DocumentCheckpointSaver": "jskv_saver.checkpoint.saver",
    "DocumentService": "jskv_saver.adapters.wire.service",
    "DocumentStore": "jskv_saver.document.port",
    "Encryption": "jskv_saver.checkpoint.encryption",
    "Finding": "jskv_saver.document.findings",
    "FieldSpec": "jskv_saver.document.model",
    "GraphVersion": "jskv_saver.checkpoint.versions",
    "GraphVersionWarning": "jskv_saver.checkpoint.versions",
    "JetStreamDocumentStore": "jskv_saver.adapters.jetstream.store",
    "JetStreamSaver": "jskv_saver.connect",
    "LocalServer": "jskv_saver.server",
    "MemoryDocumentStore": "jskv_saver.adapters.memory",
    "Page": "jskv_saver.document.model",
    "PruneReport": "jskv_saver.checkpoint.reports",
    "RemoteDocumentStore": "jskv_saver.adapters.wire.store",
    "Retention": "jskv_saver.checkpoint.retention",
    "ThreadEvent": "jskv_saver.checkpoint.watch",
    "VerifyReport": "jskv_saver.checkpoint.verifying",
}


def __getattr__(name: str) -> Any:
    value: Any
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    elif name == "errors":
        value = importlib.import_module("jskv_saver.errors")
    elif name == "__version__":
        value = importlib.metadata.version("jskv-saver")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
