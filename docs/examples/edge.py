"""An agent on an edge node that works without its hub, and is mirrored there.

    python docs/examples/edge.py

Two NATS servers on this machine: the edge is a leaf node of the hub, each with a
JetStream domain of its own. The agent talks to the edge alone, so that it works when
the line is cut. Once there is a line, the hub follows by a mirror of the edge's
bucket, and a program at the hub may also work in the edge's bucket itself, by its
domain: here a person at the hub answers what the agent has asked.

It prints:

    no hub: the agent asks 'Open the valve?'
    hub: the mirror has what the edge has
    hub: the thread waits with 'Open the valve?'
    hub: the valve is open
    edge: the valve is open
    no edge: the mirror shows that the valve is open
    no edge: its own bucket is out of reach, StoreUnavailableError
"""

from __future__ import annotations

import asyncio
import socket
import tempfile
from pathlib import Path
from typing import TypedDict

import nats
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt
from nats.js.api import ExternalStream, StreamConfig, StreamSource

from jskv_saver import JetStreamSaver, LocalServer
from jskv_saver.errors import JskvError

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    LINE = f"127.0.0.1:{free.getsockname()[1]}"
LOGIN = "edge", "secret"


class Valve(TypedDict, total=False):
    """Of a pipe."""

    valve: str


def operate(state: Valve) -> Valve:
    return {"valve": "open" if interrupt("Open the valve?") == "yes" else "closed"}


builder = StateGraph(Valve)
builder.add_node("operate", operate)
builder.add_edge(START, "operate")
builder.add_edge("operate", END)
config: RunnableConfig = {"configurable": {"thread_id": "valve-3"}}


def jetstream(store: Path, domain: str) -> str:
    """A server's part of the configuration: a domain keeps the two apart."""
    return (
        f'jetstream {{ store_dir: "{store / domain}", domain: {domain}, '
        "sync_interval: always }\n"
    )


def edge(store: Path) -> LocalServer:
    user, password = LOGIN
    remote = f'{{ url: "nats-leaf://{user}:{password}@{LINE}" }}'
    line = f"leafnodes {{ reconnect: 1, remotes: [{remote}] }}"
    return LocalServer(config=jetstream(store, "edge") + line)


def hub(store: Path) -> LocalServer:
    user, password = LOGIN
    line = (
        f'leafnodes {{ listen: "{LINE}", '
        f'authorization {{ user: "{user}", password: "{password}" }} }}'
    )
    return LocalServer(config=jetstream(store, "hub") + line)


async def newest(url: str, domain: str) -> int:
    """The newest revision of the bucket, or its mirror, in a domain; -1: no answer."""
    client = await nats.connect(url)
    try:
        stream = await client.jetstream(domain=domain).stream_info("KV_jskv")
        return stream.state.last_seq
    except nats.errors.Error:
        return -1
    finally:
        await client.close()


async def mirror(url: str) -> None:
    """The hub follows the bucket of the edge; as `nats kv add --mirror` does."""
    client = await nats.connect(url)
    await client.jetstream().add_stream(
        StreamConfig(
            name="KV_jskv",
            mirror=StreamSource("KV_jskv", external=ExternalStream("$JS.edge.API")),
            max_msgs_per_subject=1,
            allow_direct=True,
        )
    )
    await client.close()


async def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        store = Path(directory)
        with edge(store) as near:
            async with JetStreamSaver.from_conn_string(near.url) as checkpointer:
                graph = builder.compile(checkpointer=checkpointer)
                state = await graph.ainvoke({}, config)
                print(f"no hub: the agent asks {state['__interrupt__'][0].value!r}")

            far = hub(store)
            with far:
                await until_reached(far.url)
                await mirror(far.url)
                await followed(near.url, far.url)
                print("hub: the mirror has what the edge has")

                # The edge's own bucket, by its domain: what is written goes there.
                async with JetStreamSaver.from_conn_string(
                    far.url, domain="edge", create=False
                ) as checkpointer:
                    graph = builder.compile(checkpointer=checkpointer)
                    waits = await graph.aget_state(config)
                    print(f"hub: the thread waits with {waits.interrupts[0].value!r}")
                    state = await graph.ainvoke(Command(resume="yes"), config)
                    print(f"hub: the valve is {state['valve']}")

                async with JetStreamSaver.from_conn_string(near.url) as checkpointer:
                    found = await builder.compile(checkpointer=checkpointer).aget_state(
                        config
                    )
                    print(f"edge: the valve is {found.values['valve']}")

                await followed(near.url, far.url)
                near.stop()
                # The hub's own copy: it can be read, and not be written to.
                async with JetStreamSaver.from_conn_string(
                    far.url, read_only=True
                ) as checkpointer:
                    found = await builder.compile(checkpointer=checkpointer).aget_state(
                        config
                    )
                    valve = found.values["valve"]
                    print(f"no edge: the mirror shows that the valve is {valve}")
                try:
                    async with JetStreamSaver.from_conn_string(
                        far.url, domain="edge", create=False
                    ):
                        pass
                except JskvError as error:
                    print(
                        "no edge: its own bucket is out of reach,", type(error).__name__
                    )


async def until_reached(url: str) -> None:
    """Wait until the hub sees the edge's JetStream: the leaf tries each second."""
    async with asyncio.timeout(30):
        while await newest(url, "edge") < 0:
            await asyncio.sleep(0.05)


async def followed(near: str, far: str) -> None:
    """Wait until the mirror has what the edge has."""
    async with asyncio.timeout(30):
        while await newest(near, "edge") != await newest(far, "hub"):
            await asyncio.sleep(0.05)


if __name__ == "__main__":
    asyncio.run(main())
