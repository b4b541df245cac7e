"""A fan-out of which one branch fails: on the next try only that one runs again.

    python docs/examples/fan_out.py

Three branches fetch prices at the same time, and one shop is down. What the two others
have found was stored as soon as they had it (pending writes), so that another
process, which resumes the thread, asks the third shop alone. Without `NATS_URL` it
starts a server.

It prints:

    the first try: the shop in Rome does not answer
    asked so far: Oslo 1, Paris 1, Rome 1
    the second try: Oslo 10, Paris 20, Rome 30
    asked so far: Oslo 1, Paris 1, Rome 2
"""

from __future__ import annotations

import asyncio
import operator
import os
from collections import Counter
from contextlib import AsyncExitStack
from typing import Annotated, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.types import Send

from jskv_saver import JetStreamSaver, LocalServer

PRICES = {"Oslo": 10, "Paris": 20, "Rome": 30}
asked: Counter[str] = Counter()
down = {"Rome"}


class Search(TypedDict, total=False):
    """The shops that are asked, and what they answered."""

    shops: list[str]
    prices: Annotated[dict[str, int], operator.or_]


class Shop(TypedDict):
    """What one branch is given."""

    shop: str


def branches(state: Search) -> list[Send]:
    return [Send("fetch", {"shop": shop}) for shop in state["shops"]]


async def fetch(state: Shop) -> Search:
    shop = state["shop"]
    asked[shop] += 1
    if shop in down:
        # Late enough for the others to have finished.
        while sum(asked.values()) < len(PRICES):
            await asyncio.sleep(0)
        raise ConnectionError(f"the shop in {shop} does not answer")
    return {"prices": {shop: PRICES[shop]}}


builder = StateGraph(Search)
builder.add_node("fetch", fetch)
builder.add_conditional_edges(START, branches, ["fetch"])
builder.add_edge("fetch", END)

config: RunnableConfig = {"configurable": {"thread_id": "search-1"}}


def saver(url: str) -> JetStreamSaver:
    return JetStreamSaver.from_conn_string(url, namespace="examples", agent_id="search")


def told(numbers: dict[str, int]) -> str:
    return ", ".join(f"{name} {numbers[name]}" for name in sorted(numbers))


async def main() -> None:
    async with AsyncExitStack() as stack:
        url = os.environ.get("NATS_URL")
        if url is None:
            url = (await stack.enter_async_context(LocalServer())).url

        async with saver(url) as checkpointer:
            graph = builder.compile(checkpointer=checkpointer)
            try:
                await graph.ainvoke({"shops": list(PRICES)}, config, durability="sync")
            except ConnectionError as error:
                print("the first try:", error)
        print("asked so far:", told(asked))

        down.clear()
        async with saver(url) as checkpointer:  # as another process would
            graph = builder.compile(checkpointer=checkpointer)
            state = await graph.ainvoke(None, config)
        print("the second try:", told(state["prices"]))
        print("asked so far:", told(asked))


if __name__ == "__main__":
    asyncio.run(main())
