"""The workloads by name, each with the rounds it is run in unless told otherwise."""

from __future__ import annotations

from scripts.bench.run import Workload
from scripts.bench.workloads.big import big
from scripts.bench.workloads.chat import chat, window
from scripts.bench.workloads.concurrent import concurrent
from scripts.bench.workloads.delta import delta
from scripts.bench.workloads.floor import floor
from scripts.bench.workloads.graph import graph
from scripts.bench.workloads.history import history
from scripts.bench.workloads.threads import threads
from scripts.bench.workloads.wide import wide

WORKLOADS: dict[str, tuple[Workload, int]] = {
    "chat": (chat, 2),
    "window": (window, 2),
    "wide": (wide, 2),
    "history": (history, 1),
    "threads": (threads, 1),
    "big": (big, 1),
    "concurrent": (concurrent, 1),
    "graph": (graph, 1),
    "delta": (delta, 1),
    "floor": (floor, 1),
}
