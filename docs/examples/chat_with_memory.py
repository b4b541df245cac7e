"""A chat that remembers: what was said is in the bucket, not in the process.

    python docs/examples/chat_with_memory.py

Each turn opens a saver of its own, as a web worker or a new process would; the
thread id is all that the turns share. The model is a function that answers from the
messages before it: put yours in its place. Without `NATS_URL` it starts a server.

It prints:

    Ada> I am Ada.
    bot> Nice to meet you, Ada.
    Ada> What is my name?
    bot> You are Ada.
    Bob> What is my name?
    bot> You have not told me.
    Ada's thread has 4 messages in 6 checkpoints
"""

from __future__ import annotations

import asyncio
import os
import re
from contextlib import AsyncExitStack

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, MessagesState, StateGraph

from jskv_saver import JetStreamSaver, LocalServer


def model(messages: list[AnyMessage]) -> AIMessage:
    """A model that needs no network: it looks for a name in what was said."""
    said = "\n".join(str(each.content) for each in messages if each.type == "human")
    name = re.search(r"I am (\w+)", said)
    if "What is my name?" in str(messages[-1].content):
        return AIMessage(f"You are {name[1]}." if name else "You have not told me.")
    return AIMessage(f"Nice to meet you, {name[1]}." if name else "Hello.")


def answer(state: MessagesState) -> dict[str, list[AIMessage]]:
    return {"messages": [model(state["messages"])]}


builder = StateGraph(MessagesState)
builder.add_node("answer", answer)
builder.add_edge(START, "answer")
builder.add_edge("answer", END)


def thread(user: str) -> RunnableConfig:
    return {"configurable": {"thread_id": f"user:{user}/chat"}}


def saver(url: str) -> JetStreamSaver:
    return JetStreamSaver.from_conn_string(url, namespace="examples", agent_id="chat")


async def turn(url: str, user: str, text: str) -> None:
    """One turn of one user, as a process of its own would do it."""
    async with saver(url) as checkpointer:
        graph = builder.compile(checkpointer=checkpointer)
        said: MessagesState = {"messages": [HumanMessage(text)]}
        state = await graph.ainvoke(said, thread(user))
    print(f"{user}> {text}")
    print(f"bot> {state['messages'][-1].content}")


async def main() -> None:
    async with AsyncExitStack() as stack:
        url = os.environ.get("NATS_URL")
        if url is None:
            url = (await stack.enter_async_context(LocalServer())).url
        await turn(url, "Ada", "I am Ada.")
        await turn(url, "Ada", "What is my name?")
        await turn(url, "Bob", "What is my name?")
        async with saver(url) as checkpointer:
            found = [each async for each in checkpointer.alist(thread("Ada"))]
            said = found[0].checkpoint["channel_values"]["messages"]
            print(f"Ada's thread has {len(said)} messages in {len(found)} checkpoints")


if __name__ == "__main__":
    asyncio.run(main())
