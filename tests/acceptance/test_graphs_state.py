"""Kinds of state: messages, Pydantic models, dataclasses, delta channels."""

from __future__ import annotations

import dataclasses
import operator
from asyncio import to_thread
from typing import Annotated, Any, cast

import pytest
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    HumanMessage,
    RemoveMessage,
    ToolMessage,
)
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages
from langgraph.types import Command, Overwrite, interrupt
from pydantic import BaseModel
from tests.acceptance.conftest import Builder, Driver, comparable, driving, thread
from tests.acceptance.graphs import Deltas, deltas

from jskv_saver import JetStreamSaver


def _chat() -> Builder:
    """Answers, forgets all but the last six messages, edits the newest."""

    def answer(state: MessagesState) -> dict[str, Any]:
        number = len(state["messages"])
        return {
            "messages": [
                AIMessage("", id=f"call {number}", tool_calls=[_call(number)]),
                ToolMessage("x" * 3000, tool_call_id=str(number), id=f"tool {number}"),
                AIMessage(f"answer {number}", id=f"answer {number} {len(state)}"),
            ]
        }

    def forget(state: MessagesState) -> dict[str, Any]:
        old = state["messages"][:-6]
        return {"messages": [RemoveMessage(id=str(message.id)) for message in old]}

    def edit(state: MessagesState) -> dict[str, Any]:
        newest = state["messages"][-1]
        return {"messages": [AIMessage(f"{newest.content} edited", id=newest.id)]}

    graph = StateGraph(MessagesState)
    for name, run in (("answer", answer), ("forget", forget), ("edit", edit)):
        graph.add_node(name, run)
    graph.add_edge(START, "answer")
    graph.add_edge("answer", "forget")
    graph.add_edge("forget", "edit")
    graph.add_edge("edit", END)
    return graph


def _call(number: int) -> Any:
    return {"name": "tool", "args": {"n": number}, "id": str(number)}


async def test_messages_are_added_removed_and_edited(
    drive: Driver, memory: Driver
) -> None:
    histories = []
    for each in (drive, memory):
        graph = each.compile(_chat())
        for turn in range(6):
            given = {"messages": [HumanMessage(f"hello {turn}", id=f"turn {turn}")]}
            result = await each.invoke(graph, given, thread())
            assert len(result["messages"]) <= 6
            assert (await each.state(graph, thread())).values == result
        remove = {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES)]}
        await each.update(graph, thread(), remove, as_node="answer")
        histories.append(comparable(await each.history(graph, thread())))

    assert histories[0] == histories[1]
    assert histories[0][0][0] == {"messages": []}
    assert any("edited" in str(row[0]) for row in histories[0])


class Address(BaseModel):
    street: str
    number: int = 1


class Person(BaseModel):
    name: str
    address: Address | None = None
    friends: Annotated[list[Address], operator.add] = []


@dataclasses.dataclass
class Account:
    owner: str
    tags: set[str] = dataclasses.field(default_factory=set)
    log: Annotated[list[str], operator.add] = dataclasses.field(default_factory=list)


ALLOWED = [(kind.__module__, kind.__name__) for kind in (Address, Person, Account)]


def _people() -> Builder:
    def move(state: Person) -> dict[str, Any]:
        assert isinstance(state, Person)
        number = state.address.number + 1 if state.address else 1
        return {"address": Address(street="new", number=number)}

    def meet(state: Person) -> dict[str, Any]:
        assert isinstance(state.address, Address)
        answer = interrupt(state.address)
        return {"friends": [Address(street=answer, number=len(state.friends))]}

    graph = StateGraph(Person)
    graph.add_node("move", move)
    graph.add_node("meet", meet)
    graph.add_edge(START, "move")
    graph.add_edge("move", "meet")
    graph.add_edge("meet", END)
    return graph


async def test_a_pydantic_state_keeps_its_models(
    drive: Driver, nats_url: str, bucket: str
) -> None:
    serde = JsonPlusSerializer(allowed_msgpack_modules=ALLOWED)
    for _ in range(2):
        saver = JetStreamSaver.from_conn_string(nats_url, bucket=bucket, serde=serde)
        async with driving(drive.way, saver) as each:
            graph = each.compile(_people())
            stopped = await each.invoke(graph, {"name": "Ada"}, thread())
            question = stopped["__interrupt__"][0].value
            assert isinstance(question, Address)
            (asked,) = (await each.state(graph, thread())).interrupts
            assert asked.value == question
            ended = await each.invoke(graph, Command(resume="x"), thread())
            assert isinstance(ended["address"], Address)
            assert (await each.state(graph, thread())).values == ended
    assert ended == {
        "name": "Ada",
        "address": Address(street="new", number=2),
        "friends": [Address(street="x", number=0), Address(street="x", number=1)],
    }


async def test_a_graph_says_which_types_its_clone_of_the_saver_may_make(
    nats_url: str, bucket: str
) -> None:
    """LangGraph compiles a clone of a strict saver, with the state's own types."""
    strict = JsonPlusSerializer(allowed_msgpack_modules=None)
    saver = JetStreamSaver.from_conn_string(nats_url, bucket=bucket, serde=strict)
    async with saver:
        graph = _people().compile(
            checkpointer=saver.with_allowlist([tuple(pair) for pair in ALLOWED])
        )
        await graph.ainvoke({"name": "Ada"}, thread())
        ended = await graph.ainvoke(Command(resume="x"), thread())
        state = await graph.aget_state(thread())

        assert state.values == ended
        assert isinstance(state.values["address"], Address)
        found = await saver.aget(thread())
        assert found is not None
        assert not isinstance(found["channel_values"]["address"], Address)


async def test_a_dataclass_state_keeps_its_types(drive: Driver, memory: Driver) -> None:
    def tag(state: Account) -> dict[str, Any]:
        assert isinstance(state, Account)
        return {"tags": state.tags | {f"t{len(state.tags)}"}, "log": [state.owner]}

    builder = StateGraph(Account)
    builder.add_node("tag", tag)
    builder.add_edge(START, "tag")
    histories = []
    for each in (drive, memory):
        graph = each.compile(builder)
        for turn in range(3):
            await each.invoke(graph, Account(f"owner {turn}"), thread())
        histories.append(comparable(await each.history(graph, thread())))

    assert histories[0] == histories[1]
    assert histories[0][0][0]["log"] == ["owner 0", "owner 1", "owner 2"]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
async def test_a_delta_graph_reloads_as_it_ran(
    drive: Driver, memory: Driver, durability: str
) -> None:
    """Across snapshots of one channel, without any of the other."""
    results = []
    for each in (drive, memory):
        graph = each.compile(deltas())
        seen = []
        for turn in range(7):
            given: Any = {"items": [f"turn {turn}"]}
            if turn == 4:
                given = {"items": Overwrite(["overwritten"])}
            ran = await each.invoke(graph, given, thread(), durability=durability)
            loaded = (await each.state(graph, thread())).values
            assert loaded == ran
            seen.append(ran)
        past = await each.history(graph, thread())
        seen.extend(state.values for state in past)
        results.append(seen)

    assert results[0] == results[1]
    lengths = [4, 8, 12, 16, 4, 8, 12]
    assert results[0][6]["rest"] == [f"last {length}" for length in lengths]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
async def test_pruning_a_delta_thread_leaves_its_state(
    drive: Driver, durability: str
) -> None:
    graph = drive.compile(deltas(asks=True))
    for turn in range(7):
        config = thread(run_id=f"run {turn}")
        given = {"items": [f"turn {turn}"]}
        await drive.invoke(graph, given, config, durability=durability)
        for step in range(2):
            before = (await drive.state(graph, thread())).values
            await _prune(drive, turn)
            after = await drive.state(graph, thread())
            assert after.values == before
            if step == 0:
                resume: Any = Command(resume="yes")
                await drive.invoke(graph, resume, config, durability=durability)
    assert len(after.values["items"]) == 28
    assert after.values["rest"] == [f"yes {4 * n}" for n in range(1, 8)]


async def _prune(drive: Driver, turn: int) -> None:
    saver = drive.saver
    if drive.way == "async":
        await saver.aprune(["t"])
        await saver.adelete_for_runs([f"run {turn - 1}"])
        if turn == 4:
            await saver.acopy_thread("t", "copy")
    else:
        await to_thread(saver.prune, ["t"])
        await to_thread(saver.delete_for_runs, [f"run {turn - 1}"])
        if turn == 4:
            await to_thread(saver.copy_thread, "t", "copy")
    if turn == 4:
        graph = drive.compile(deltas(asks=True))
        copy = await drive.state(graph, thread("copy"))
        assert copy.values == (await drive.state(graph, thread())).values


async def test_a_list_that_becomes_a_delta_channel_keeps_its_items(
    drive: Driver,
) -> None:
    class Before(MessagesState):
        items: Annotated[list[str], operator.add]

    def last(state: Any) -> dict[str, Any]:
        return {"items": [f"last {len(state['items'])}"]}

    for schema in (Before, Deltas, Deltas, Before):
        builder = StateGraph(schema)
        builder.add_node("last", last)
        builder.add_edge(START, "last")
        graph = drive.compile(builder)
        ran = await drive.invoke(graph, {"items": ["in"]}, thread())
        assert (await drive.state(graph, thread())).values["items"] == ran["items"]
    assert ran["items"] == [
        line for n in range(4) for line in ("in", f"last {2 * n + 1}")
    ]


def _merged(state: list[Any], writes: list[Any]) -> list[Any]:
    for write in writes:
        state = cast(list[Any], add_messages(state, write))
    return state


class Chat(MessagesState):
    chat: Annotated[list[AnyMessage], DeltaChannel(_merged, snapshot_frequency=5)]


async def test_messages_in_a_delta_channel_reload_as_they_ran(
    drive: Driver, memory: Driver
) -> None:
    def answer(state: Chat) -> dict[str, Any]:
        chat = state["chat"]
        messages: list[Any] = [AIMessage(f"answer {len(chat)}", id=f"a {len(chat)}")]
        if len(chat) > 5:
            messages.append(RemoveMessage(id=str(chat[1].id)))
        return {"chat": messages}

    builder = StateGraph(Chat)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    results = []
    for each in (drive, memory):
        graph = each.compile(builder)
        for turn in range(9):
            given = {"chat": [HumanMessage(f"hello {turn}", id=f"h {turn}")]}
            ran = await each.invoke(graph, given, thread())
            assert (await each.state(graph, thread())).values == ran
        results.append([s.values for s in await each.history(graph, thread())])

    assert results[0] == results[1]
