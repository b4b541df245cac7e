"""The document port in dicts."""

from jskv_saver.adapters.memory.store import MemoryDocumentStore

__all__ = ["MemoryDocumentStore"]
