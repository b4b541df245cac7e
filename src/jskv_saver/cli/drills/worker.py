"""A process that runs the drills' graph, and the one that forks it.

    in   the worker's order: one JSON object a line
    out  {"pid": n, "born": true}, {"pid": n, "event": …, …}, {"pid": n, "code": n}

The end of its input is the parent's death: then all end.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import select
import signal
import sys
import traceback
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, NoReturn

from langgraph.types import Command

from jskv_saver import JetStreamSaver
from jskv_saver.cli.drills.graph import REQUEST, DrillError, Tally, build

NAMESPACE: Final = "drills"
_LOOK: Final = 0.005


@dataclass(frozen=True)
class Order:
    """What a worker is to do.

    Attributes:
        url: The server.
        thread: The thread's id.
        tally: The file in which nodes write what they do.
        action: `run` the request; `admit` it first, under the thread's id, and run it
            then; `resume`: whatever is left of it; `answer` what was asked; `replay` it
            from a checkpoint.
        durability: LangGraph's.
        fails: Nodes that raise.
        asks: Nodes that ask.
        checkpoint: The one to replay from.
        lease: Take the thread's lease first, and look whether anything is left.
        saver: What opens the saver: `module:function` of a URL.
    """

    url: str
    thread: str
    tally: str
    action: Literal["run", "admit", "resume", "answer", "replay"]
    durability: Literal["sync", "async", "exit"] = "sync"
    fails: list[str] = field(default_factory=list)
    asks: list[str] = field(default_factory=list)
    checkpoint: str = ""
    lease: bool = False
    saver: str = "jskv_saver.cli.drills.worker:open_saver"


def open_saver(url: str) -> AbstractAsyncContextManager[JetStreamSaver]:
    """The saver that the drills are about."""
    return JetStreamSaver.from_conn_string(url, namespace=NAMESPACE)


async def work(order: Order) -> None:
    """Do what was ordered, and report it."""
    module, name = order.saver.split(":")
    async with getattr(importlib.import_module(module), name)(order.url) as saver:
        tally = Tally(Path(order.tally))
        graph = build(saver, tally, fails=order.fails, asks=order.asks)
        config: Any = {"configurable": {"thread_id": order.thread}}
        given: Any = REQUEST
        if order.action == "admit":
            admission = await saver.aadmit(config, REQUEST, request_id=order.thread)
            _say(event="accepted", new=admission.new)
        elif order.action == "resume":
            given = await _left(saver, config, order.thread)
        elif order.action == "answer":
            given = Command(resume="yes")
        elif order.action == "replay":
            given = None
            config["configurable"]["checkpoint_id"] = order.checkpoint
        try:
            if order.lease:
                async with saver.lease(order.thread):
                    if (await graph.aget_state(config)).next:
                        await graph.ainvoke(given, config)
                    else:
                        _say(event="found", what="nothing left")
            else:
                await graph.ainvoke(given, config, durability=order.durability)
        except DrillError as exc:
            _say(event="failed", why=str(exc))
            return
        state = await graph.aget_state({"configurable": {"thread_id": order.thread}})
        _say(event="ended", log=state.values["log"], next=list(state.next))


async def _left(saver: Any, config: Any, thread: str) -> Any:
    """What is left to do: go on, or do what was accepted, or begin."""
    if await saver.aget_tuple(config) is not None:
        _say(event="found", what="checkpoint")
        return None
    admit = getattr(saver, "aadmitted", None)
    if admit is not None and (waiting := await admit(thread)):
        _say(event="found", what="admission")
        return waiting[0].request
    _say(event="found", what="nothing")
    return REQUEST


def _child(order: Order) -> NoReturn:
    code = 1
    try:
        asyncio.run(work(order))
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _say(**words: Any) -> None:
    # Short enough to be one piece in the pipe that all of them have.
    os.write(1, json.dumps({"pid": os.getpid(), **words}).encode() + b"\n")


def main() -> None:
    """Fork for each order, and tell who has ended, until there are no more orders."""
    alive: set[int] = set()
    unread = b""
    while True:
        if select.select([0], [], [], _LOOK)[0]:
            read = os.read(0, 65_536)
            if not read:
                break
            *lines, unread = (unread + read).split(b"\n")
            for line in lines:
                order = Order(**json.loads(line))
                pid = os.fork()
                if not pid:
                    _say(born=True)
                    _child(order)
                alive.add(pid)
        for pid in list(alive):
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                alive.remove(pid)
                _say(pid=pid, code=os.waitstatus_to_exitcode(status))
    for pid in alive:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


if __name__ == "__main__":
    main()
