"""What happens in the demo: three processes, two of them killed."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from jskv_saver import JetStreamDocumentStore, LocalServer
from jskv_saver.checkpoint.inspect import (
    CheckpointDetail,
    ThreadRef,
    checkpoint_detail,
)
from jskv_saver.cli.demo_process import DemoFailedError, Worker, worker

THREAD: Final = ThreadRef("demo", "refund-agent-v1", "refund-4711")
# Of `demo_graph`, which is not imported here: LangGraph is for the processes.
_NODES: Final = (
    "read",
    "check_order",
    "check_policy",
    "propose",
    "ask_person",
    "pay",
    "answer",
)
_ANSWER: Final = "approved by Ada"
_LOOK_SECONDS: Final = 0.02
_PATIENCE: Final = 15.0


class Story:
    """Runs the agent, kills it, resumes it, and checks what is shown.

    Args:
        out: Where it prints.
        server: The server, running.
        command: The program of the processes that run the graph.

    Attributes:
        checks: How many checks have held.
        before: The state when the second process was killed.
        after: The state at the end.
    """

    def __init__(
        self, out: Console, server: LocalServer, command: Sequence[str]
    ) -> None:
        # Beside the temporary store: gone with the server, however this process dies.
        home = server.store_dir.parent / "demo"
        home.mkdir()
        self.server = server
        self.checks = 0
        self.before: Mapping[str, Any] = {}
        self.after: Mapping[str, Any] = {}
        self.tally = home / "tally"
        self.left_by_workers = home / "workers"
        self.left_by_workers.mkdir()
        self._log = home / "log"
        self._out = out
        self._command = command

    async def tell(self) -> None:
        """All of it."""
        self._out.print(
            f"A NATS server of its own runs at 127.0.0.1:{self.server.port} "
            f"(process {self.server.pid}): one process, no database."
        )
        unfinished = await self._die_in_a_node()
        await self._die_while_waiting(unfinished)
        await self._finish()
        self._count_runs()

    async def _die_in_a_node(self) -> CheckpointDetail:
        self._title("1  An agent works, and its process dies in the middle of a node")
        async with self._worker("start", hang_in="check_policy") as first:
            await self._follow(
                first, {("finished", "check_order"), ("started", "check_policy")}
            )
            stored = await self._stored_result()
            self._say("check_order is done, check_policy is still at work")
            await self._kill(first)
        found = await self._look()
        self.check(found == stored, "NATS still has the result of check_order")
        return stored

    async def _die_while_waiting(self, stored: CheckpointDetail) -> None:
        self._title("2  A second process goes on, asks a person, and dies waiting")
        async with self._worker("continue") as second:
            found = await self._event(second, "found")
            self.check(
                found["checkpoint"] == stored.id and found["next"] == ["check_policy"],
                "it finds the thread, and only check_policy left to do",
            )
            self.before = await self._event(second, "waiting")
            self.check(
                self.before["next"] == ["ask_person"] and len(self.before["asks"]) == 1,
                f'it asks: "{self.before["asks"][0]}"',
            )
            await self._kill(second)

    async def _finish(self) -> None:
        self._title("3  A third process has the answer")
        async with self._worker("answer", answer=_ANSWER) as third:
            found = await self._event(third, "found")
            self.check(
                _state_of(found) == _state_of(self.before),
                "it finds exactly the state that the second one had",
            )
            self._say(f'the answer: "{_ANSWER}"')
            self.after = await self._event(third, "ended")
            code = await third.ended()
            self.check(
                code == 0 and self.after["next"] == [], "the agent comes to its end"
            )

    def _count_runs(self) -> None:
        self._title("What ran, and how often")
        runs = [line.split() for line in self.tally.read_text().splitlines()]
        for node in _NODES:
            started = sum(run[1:] == [node, "started"] for run in runs)
            finished = sum(run[1:] == [node, "finished"] for run in runs)
            # A node that asks begins again when the answer is there: so it is in
            # LangGraph, with any saver.
            expected = {"check_policy": 2, "ask_person": 2}.get(node, 1)
            why = {
                "check_policy": ": the first time it was killed",
                "ask_person": ": it asked, and then had the answer",
            }.get(node, "")
            self.check(
                (started, finished) == (expected, 1),
                f"{node}: started {_times(expected)}, finished once{why}",
            )
        self.check(
            len({run[0] for run in runs}) == 3
            and {run[1] for run in runs} == {*_NODES},
            "three processes took part, and nothing else ran",
        )
        left = [path.name for path in self.left_by_workers.rglob("*")]
        self.check(not left, "they left no file behind: all state is in NATS")

    def check(self, holds: bool, what: str) -> None:
        """Print what holds.

        Raises:
            DemoFailedError: It does not.
        """
        if not holds:
            raise DemoFailedError(f"this should hold, and does not: {what}")
        self.checks += 1
        self._out.print(Text.assemble(("   ok  ", "bold green"), what))

    def _title(self, text: str) -> None:
        self._out.print()
        self._out.print(text, style="bold")

    def _say(self, text: str) -> None:
        self._out.print(f"       {text}")

    def _worker(self, action: str, **more: str) -> Any:
        order = {
            "url": self.server.url,
            "thread": THREAD.thread,
            "tally": str(self.tally),
            "action": action,
            **more,
        }
        return worker(order, self.left_by_workers, self._log, self._command)

    async def _follow(
        self, process: Worker, wanted: Collection[tuple[str, str]]
    ) -> None:
        """Wait until it has reported some steps."""
        left = set(wanted)
        async for event in process.events():
            self._show(process, event)
            left.discard((event["event"], event.get("node", "")))
            if not left:
                return
        raise process.died("in the middle of its work")

    async def _event(self, process: Worker, wanted: str) -> Mapping[str, Any]:
        """Wait for a report."""
        async for event in process.events():
            self._show(process, event)
            if event["event"] == wanted:
                return event
        raise process.died(wanted)

    def _show(self, process: Worker, event: Mapping[str, Any]) -> None:
        if "node" in event:
            mark = {"started": "->", "finished": "<-"}[event["event"]]
            self._out.print(
                Text.assemble(
                    (f"       [{process.pid}] ", "dim"),
                    f"{mark} ",
                    (event["node"], "cyan"),
                )
            )

    async def _kill(self, process: Worker) -> None:
        code = await process.kill()
        self.check(code == -9, f"kill -9 {process.pid}")

    async def _stored_result(self) -> CheckpointDetail:
        """The checkpoint, once the finished node's result is stored beside it."""
        deadline = asyncio.get_running_loop().time() + _PATIENCE
        while True:
            found = await self._look()
            if any(write.channel == "findings" for write in found.writes):
                return found
            if asyncio.get_running_loop().time() > deadline:
                raise DemoFailedError("the result of check_order did not come to NATS")
            await asyncio.sleep(_LOOK_SECONDS)

    async def _look(self) -> CheckpointDetail:
        async with JetStreamDocumentStore.from_conn_string(
            self.server.url, create=False
        ) as store:
            return await checkpoint_detail(store, THREAD)


def _state_of(event: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in event.items() if name != "event"}


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
