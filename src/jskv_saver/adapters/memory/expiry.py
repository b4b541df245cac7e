"""Which documents of the memory store expire, and when."""

from __future__ import annotations

import time
from heapq import heappop, heappush

from jskv_saver.document.model import Path

Expiring = tuple[str, str, Path, int]
"""Namespace, collection, path, and the version that expires."""


class Expirations:
    """Documents in the order in which they expire."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, Expiring]] = []

    def add(self, document: Expiring, ttl: float) -> None:
        """One expires in so many seconds, unless it is put again before."""
        heappush(self._heap, (time.monotonic() + ttl, document))

    def due(self) -> list[Expiring]:
        """Those whose time has come, each once."""
        found: list[Expiring] = []
        while self._heap and self._heap[0][0] <= time.monotonic():
            found.append(heappop(self._heap)[1])
        return found
