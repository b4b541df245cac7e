"""`langgraph dev`, really run, with its checkpoints in a bucket."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph_sdk import get_client
from tests.agent_server.conftest import Place, Serve, Served
from tests.patience import PATIENCE

from jskv_saver import JetStreamSaver

DETECTED = "Blocking call"


@pytest.mark.timeout(10 * PATIENCE)  # two starts of a large program
async def test_a_thread_lives_on_when_the_server_is_started_again(
    place: Place, serve: Serve
) -> None:
    with serve() as server:
        async with opened(server) as client:
            thread = (await client.threads.create())["thread_id"]
            await client.runs.wait(thread, "approval", input={"said": ["go"]})
            state = await client.threads.get_state(thread)
            (task,) = state["tasks"]
            assert [each["value"] for each in task["interrupts"]] == ["publish it?"]
            assert state["values"] == {"said": ["go", "a draft"]}
            assert DETECTED not in server.log.read_text()

            # A call that blocks would have been noticed.
            other = (await client.threads.create())["thread_id"]
            answer = await client.runs.wait(
                other, "rude", input={"said": []}, raise_error=False
            )
            assert answer["__error__"]["error"] == "BlockingError"
            assert DETECTED in server.log.read_text()

    # The second one runs graphs on loops of their own.
    with serve(BG_JOB_ISOLATED_LOOPS="true") as server:
        async with opened(server) as client:
            state = await client.threads.get_state(thread)
            assert state["next"] == ["approve"]
            assert state["values"] == {"said": ["go", "a draft"]}
            await client.runs.wait(thread, "approval", command={"resume": "yes"})
            done = ["go", "a draft", "approved: yes", "published"]
            history = await client.threads.get_history(thread)
            nodes = [["publish"], ["approve"], ["draft"], ["__start__"]]
            assert [state["next"] for state in history] == [[], *nodes]
            said = [len(state["values"].get("said", ())) for state in history]
            assert said == [4, 3, 2, 1, 0]

            # A copy goes another way from the middle of its history.
            copy = (await client.threads.copy(thread))["thread_id"]
            asking = (await client.threads.get_history(copy))[2]["checkpoint"]
            await client.threads.update_state(
                copy, {"said": ["refused"]}, as_node="publish", checkpoint=asking
            )
            forked = (await client.threads.get_state(copy))["values"]
            assert forked == {"said": ["go", "a draft", "refused"]}

            await client.threads.delete(copy)
            assert (await client.threads.get_state(thread))["values"] == {"said": done}
            assert DETECTED not in server.log.read_text()

    assert await stored(place, thread) == 5
    assert await stored(place, copy) == 0


def test_protobuf_is_what_the_agent_server_bears() -> None:
    assert version("protobuf").startswith("6.33.")


async def stored(place: Place, thread: str) -> int:
    """The checkpoints of a thread, as another program sees them."""
    async with JetStreamSaver.from_conn_string(
        place.url,
        bucket="served",
        namespace="my_app",
        agent_id="approval-v1",
        user_credentials=place.credentials,
    ) as saver:
        config: RunnableConfig = {"configurable": {"thread_id": thread}}
        return len([found async for found in saver.alist(config)])


def opened(server: Served) -> Any:
    """A client, whose types know less than it gives."""
    return get_client(url=server.url)
