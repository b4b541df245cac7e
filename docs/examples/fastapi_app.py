r"""A FastAPI application: one saver for its whole life, and a clean end.

    pip install fastapi uvicorn
    uvicorn --app-dir docs/examples fastapi_app:app

The saver is opened when the application starts and closed when it ends, on the event
loop of the server, which is its fast path. Requests share it; a thread of a user is
found again by any worker and after every restart. Two messages to one chat, also at two
workers, take turns. Without `NATS_URL` the application starts a server of its own, with
its store in `./data`: then with one worker.

    curl -X POST localhost:8000/chats/7 -H 'content-type: application/json' \
        -d '{"text": "I am Ada."}'
    curl localhost:8000/chats/7
    curl -X DELETE localhost:8000/chats/7
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, MessagesState, StateGraph
from pydantic import BaseModel

from jskv_saver import JetStreamSaver, LocalServer
from jskv_saver.errors import JskvError


def answer(state: MessagesState) -> dict[str, list[AIMessage]]:
    """Stands for a model."""
    count = sum(message.type == "human" for message in state["messages"])
    return {"messages": [AIMessage(f"You have said {count}.")]}


builder = StateGraph(MessagesState)
builder.add_node("answer", answer)
builder.add_edge(START, "answer")
builder.add_edge("answer", END)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        url = os.environ.get("NATS_URL")
        if url is None:
            url = (await stack.enter_async_context(LocalServer("./data"))).url
        app.state.saver = await stack.enter_async_context(
            JetStreamSaver.from_conn_string(url, namespace="examples", agent_id="web")
        )
        app.state.graph = builder.compile(checkpointer=app.state.saver)
        yield


app = FastAPI(lifespan=lifespan)


class Said(BaseModel):
    """What a user says."""

    text: str


def thread_id(name: str) -> str:
    return f"chat:{name}"


def thread(name: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id(name)}}


@app.exception_handler(JskvError)
async def failed(request: Request, error: JskvError) -> JSONResponse:
    """503 is what can be tried again: no server, a chat that was busy for too long."""
    status = 503 if error.retryable else 500
    return JSONResponse({"error": type(error).__name__}, status_code=status)


@app.post("/chats/{name}")
async def say(name: str, said: Said) -> dict[str, str]:
    message = {"role": "user", "content": said.text}
    async with app.state.saver.lease(thread_id(name), wait=30):
        state = await app.state.graph.ainvoke({"messages": [message]}, thread(name))
    return {"answer": state["messages"][-1].content}


@app.get("/chats/{name}")
async def read(name: str) -> list[dict[str, Any]]:
    found = await app.state.saver.aget_tuple(thread(name))
    if found is None:
        raise HTTPException(404, "no such chat")
    messages = found.checkpoint["channel_values"]["messages"]
    return [{"type": each.type, "text": each.content} for each in messages]


@app.delete("/chats/{name}", status_code=204)
async def delete(name: str) -> None:
    await app.state.saver.adelete_thread(thread_id(name))
