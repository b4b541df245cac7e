"""Which tasks would run if a thread went on from a checkpoint; without its graph.

LangGraph decides that from what is stored: a node runs when a channel that triggers it
has a newer version than the node has seen. The names of the channels of a `StateGraph`
say whom they trigger (`branch:to:NODE`, `join:A+B:NODE`), and what a node has seen says
it of any graph's node that has run before. Nothing is constructed on the way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from langgraph.checkpoint.serde.types import ERROR, INTERRUPT, RESUME, TASKS

from jskv_saver.checkpoint.contents import Loaded
from jskv_saver.checkpoint.inspect.preview import Opaque, decoded, preview, questions
from jskv_saver.checkpoint.inspect.threads import ThreadRef
from jskv_saver.checkpoint.layout import RECORDS, THREADS, Scope
from jskv_saver.checkpoint.partition import Partition
from jskv_saver.checkpoint.parts import PAGE
from jskv_saver.checkpoint.reader import Reader
from jskv_saver.checkpoint.values import Typed
from jskv_saver.checkpoint.versions import GRAPH_VERSION
from jskv_saver.checkpoint.writes import PendingWrite
from jskv_saver.document.model import path_of
from jskv_saver.document.port import DocumentStore
from jskv_saver.errors import (
    CorruptDocumentError,
    DocumentNotFoundError,
    EncryptionError,
    InvalidRequestError,
)

FOLLOWED: Final = 20
"""Steps that are told of what came after the checkpoint."""
_LOOKED_AT: Final = 1024
"""Checkpoints that are read to find them."""
_SHOWN: Final = 120
_PULL: Final = "~__pregel_pull, "
_PUSH: Final = "~__pregel_push, "
_BRANCH: Final = "branch:to:"
_JOIN: Final = "join:"
_START: Final = "__start__"
_INTERNAL: Final = ("__interrupt__", "__input__")
_NOBODY: Final = "00000000-0000-0000-0000-000000000000"
"""LangGraph's task id of what no task wrote: an input, a command."""

_HANDLED: Final = "__error_source_node__"
_CONTROL: Final = frozenset((ERROR, _HANDLED, INTERRUPT, RESUME))
"""Channels that say what became of a task, not what it produced."""

TaskState = Literal["new", "done", "failed", "handled", "asks"]


@dataclass(frozen=True, slots=True)
class PlannedTask:
    """A task of the step that comes next.

    Attributes:
        node: Its node.
        state: `new`: nothing of it is stored; `done`: its results are; `failed`,
            `asks`: it ended with an error, or waits for an answer; `handled`: it
            failed, and its error handler runs in its place.
        triggers: The channels that make it run; `__pregel_tasks` for one that was
            sent. Empty where only its stored writes tell of it.
        task: Its id, where it has written something.
        detail: The error or the question, as text; None.
        subgraphs: Checkpoint namespaces that it has below this one.
    """

    node: str
    state: TaskState
    triggers: tuple[str, ...] = ()
    task: str | None = None
    detail: str | None = None
    subgraphs: tuple[str, ...] = ()

    @property
    def on_resume(self) -> bool:
        """Whether it runs when the thread goes on without a checkpoint id."""
        return self.state not in ("done", "handled")


@dataclass(frozen=True, slots=True)
class FollowedStep:
    """A step that came after the checkpoint, as it was stored.

    Attributes:
        id: The checkpoint before the step.
        nodes: The nodes that wrote something in it, sorted; one per task.
    """

    id: str
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """What would run from a checkpoint.

    Attributes:
        ref: Its thread.
        ns: Its checkpoint namespace.
        id: Its id.
        latest: Whether a resume, which names no checkpoint, goes on from it.
        graph_version: Of the graph that wrote it, or None.
        tasks: The tasks of the next step. A resume runs those that are not done; a
            replay, with this checkpoint's id, runs all of them.
        followed: The steps that came after that one, as they were stored, oldest first:
            a replay makes their calls again, if it takes the same way.
        more: Whether there were more of them.
    """

    ref: ThreadRef
    ns: str
    id: str
    latest: bool
    graph_version: str | None
    tasks: tuple[PlannedTask, ...]
    followed: tuple[FollowedStep, ...]
    more: bool


async def replay_plan(
    store: DocumentStore, ref: ThreadRef, id: str | None = None, *, ns: str = ""
) -> ReplayPlan:
    """Which tasks would run from a checkpoint, and what its successors did.

    Args:
        store: Where it is.
        ref: The thread.
        id: Its id; None: the latest of its namespace.
        ns: Its checkpoint namespace.

    Raises:
        DocumentNotFoundError: It does not exist.
        InvalidRequestError: It is encrypted by the serialiser, so that only the
            program with the key can say.
    """
    partition = Partition(store, ref.namespace, ref.agent)
    scope, reader = Scope(ref.agent, ref.thread, ns), Reader(partition)
    head = await partition.read_head(scope)
    latest = head.known[0] if head.known else None
    loaded = await (reader.by_id(scope, id) if id else reader.latest(scope))
    if loaded is None:
        what = "no checkpoint" if id is None else f"no checkpoint {id!r}"
        raise DocumentNotFoundError(
            f"thread {ref.thread!r} has {what} in checkpoint namespace {ns!r}",
            collection=RECORDS,
            id=id,
        )
    followed = await _followed(partition, scope, loaded.record.id)
    namespaces = [
        path_of(each)[2]
        for each in await store.ids(ref.namespace, THREADS, within=ref.prefix)
    ]
    tasks = _tasks(loaded)
    version = _metadata(loaded.metadata).get(GRAPH_VERSION)
    return ReplayPlan(
        ref=ref,
        ns=ns,
        id=loaded.record.id,
        latest=loaded.record.id == latest,
        graph_version=version if isinstance(version, str) else None,
        tasks=tuple(_with_subgraphs(task, ns, namespaces) for task in tasks),
        followed=tuple(followed[:FOLLOWED]),
        more=len(followed) > FOLLOWED,
    )


async def next_tasks(
    store: DocumentStore, ref: ThreadRef, id: str, *, ns: str = ""
) -> tuple[PlannedTask, ...] | None:
    """The tasks of the step that comes after a checkpoint.

    Returns:
        None where it cannot be told: the checkpoint is encrypted, damaged, or gone.
    """
    reader = Reader(Partition(store, ref.namespace, ref.agent))
    try:
        loaded = await reader.by_id(Scope(ref.agent, ref.thread, ns), id)
        return None if loaded is None else tuple(_tasks(loaded))
    except (CorruptDocumentError, EncryptionError, InvalidRequestError):
        return None


def _tasks(loaded: Loaded) -> list[PlannedTask]:
    """The tasks that the checkpoint's channels trigger, with what they wrote."""
    by_task: dict[str, list[PendingWrite]] = {}
    for write in loaded.writes:
        if write.task != _NOBODY:
            by_task.setdefault(write.task, []).append(write)
    by_path = {_short(writes[0].path): task for task, writes in by_task.items()}
    sends = _sent(loaded)
    planned = [(f"{_PULL}{node}", node, why) for node, why in _triggered(loaded)]
    planned += [
        (f"{_PUSH}{number:010}", node, (TASKS,)) for number, node in enumerate(sends)
    ]
    tasks: list[PlannedTask] = []
    # What takes the input of an `entrypoint` is the function itself.
    pulled = [path for path in by_path if path.startswith(_PULL)]
    for path, node, triggers in planned:
        if triggers == (_START,) and path not in by_path and len(pulled) == 1:
            path, node = pulled[0], _node_of(pulled[0])
        task = by_path.pop(path, None)
        tasks.append(_task(node, triggers, task, by_task.get(task or "", ())))
    # Of a graph that is no `StateGraph` a node's first task, and calls inside a task.
    for path, task in by_path.items():
        tasks.append(_task(_node_of(path), (), task, by_task[task]))
    return tasks


def _task(
    node: str,
    triggers: tuple[str, ...],
    task: str | None,
    writes: Sequence[PendingWrite],
) -> PlannedTask:
    special = {w.channel: w.value for w in writes if w.channel in _CONTROL}
    state: TaskState = "new"
    detail: str | None = None
    # LangGraph takes back whatever a task wrote besides these.
    if len(special) < len({w.channel for w in writes}):
        state = "done"
    elif ERROR in special:
        state = "handled" if _HANDLED in special else "failed"
        detail = _text(special[ERROR])
    elif INTERRUPT in special:
        asked = special[INTERRUPT]
        detail = "; ".join(questions(asked.kind, asked.content, _SHOWN))
        state = "asks"
    return PlannedTask(node, state, triggers, task, detail)


def _triggered(loaded: Loaded) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The nodes that a channel triggers, sorted, each with those channels."""
    seen = _versions_seen(loaded.skeleton)
    versions, values = loaded.record.versions, loaded.values
    present = values.keys() | loaded.record.deltas.keys()
    found: dict[str, list[str]] = {}

    def look(node: str, channel: str) -> None:
        if channel in present and _newer(
            versions.get(channel), seen.get(node, {}).get(channel)
        ):
            channels = found.setdefault(node, [])
            if channel not in channels:
                channels.append(channel)

    for channel in values:
        if channel == _START:
            look(_START, channel)
        elif channel.startswith(_BRANCH):
            look(channel.removeprefix(_BRANCH), channel)
        elif channel.startswith(_JOIN) and _is_joined(channel, values[channel]):
            look(channel.split(":")[-1], channel)
    for node, channels in seen.items():
        if node not in _INTERNAL:
            for channel in channels:
                # A join that waits for others has a new version with each of them.
                if not channel.startswith(_JOIN):
                    look(node, channel)
    return ((node, tuple(sorted(found[node]))) for node in sorted(found))


def _is_joined(channel: str, value: Typed) -> bool:
    """Whether all that a join waits for have come."""
    wanted = set(channel.removeprefix(_JOIN).rpartition(":")[0].split("+"))
    return set(_names_in(_opened(value))) == wanted


def _names_in(value: Any) -> Iterator[str]:
    """The names in a stored set; of a deferred join it is the first of a pair."""
    if isinstance(value, Opaque):
        yield from _names_in(value.content)
    elif isinstance(value, list | tuple):
        if len(value) == 2 and isinstance(value[1], bool):
            # Not before the graph's other work is finished.
            yield from _names_in(value[0]) if value[1] else ()
            return
        for each in value:
            yield from _names_in(each)
    elif isinstance(value, str):
        yield value


def _sent(loaded: Loaded) -> list[str]:
    """The nodes of the tasks that were sent, in order."""
    if loaded.sends:
        sends: Iterable[Any] = map(_opened, loaded.sends)
    elif TASKS in loaded.values:
        stored = _opened(loaded.values[TASKS])
        sends = stored if isinstance(stored, list) else ()
    else:
        return []
    return [_node_of_send(each) for each in sends]


def _node_of_send(send: Any) -> str:
    content = send.content if isinstance(send, Opaque) else None
    if isinstance(content, list) and content and isinstance(content[0], str):
        return content[0]
    return "?"


def _short(path: str) -> str:
    """A task's path as far as it names the task among those of its step."""
    if path.startswith(_PUSH) and not path.startswith(f"{_PUSH}~"):
        return ", ".join(path.split(", ")[:2])
    return path


def _node_of(path: str) -> str:
    if path.startswith(_PULL):
        return path.removeprefix(_PULL)
    if path.startswith(f"{_PUSH}~"):
        return f"a call in {_node_of(path.removeprefix(_PUSH).rsplit(', ', 2)[0])}"
    return path or "?"


def _versions_seen(skeleton: Typed) -> Mapping[str, Mapping[str, Any]]:
    try:
        content = decoded(skeleton.kind, skeleton.content)
    except ValueError as exc:
        raise InvalidRequestError(
            f"the checkpoint is stored as {skeleton.kind!r}, which only the program "
            "that wrote it can open: ask that one, with graph.get_state(config).next"
        ) from exc
    seen = content.get("versions_seen") if isinstance(content, dict) else None
    return seen if isinstance(seen, dict) else {}


def _newer(version: Any, seen: Any) -> bool:
    if version is None or seen is None:
        return version is not None
    try:
        return bool(version > seen)
    except TypeError:
        return bool(version != seen)


def _opened(value: Typed) -> Any:
    try:
        return decoded(value.kind, value.content)
    except ValueError:
        return None


def _text(value: Typed) -> str:
    return preview(value.kind, value.content, _SHOWN)


def _metadata(metadata: Typed) -> dict[str, Any]:
    content = _opened(metadata)
    return content if isinstance(content, dict) else {}


def _with_subgraphs(
    task: PlannedTask, ns: str, namespaces: Sequence[str]
) -> PlannedTask:
    begin = f"{ns}|{task.node}:" if ns else f"{task.node}:"
    below = sorted(
        each
        for each in namespaces
        if each.startswith(begin)
        and (task.task is None or each[len(begin) :].startswith(task.task))
    )
    return replace(task, subgraphs=tuple(below))


async def _followed(partition: Partition, scope: Scope, id: str) -> list[FollowedStep]:
    """What came after the step that a checkpoint begins; one more than is told."""
    later = [name for name in await partition.names(scope) if name > id][:_LOOKED_AT]
    children: dict[str, list[str]] = {}
    for at in range(0, len(later), PAGE):
        records, _ = await partition.records(scope, later[at : at + PAGE])
        for record in records.values():
            if record.parent is not None:
                children.setdefault(record.parent, []).append(record.id)
    greatest: dict[str, str] = {}
    for each in reversed([id, *later]):
        below = [greatest.get(child, child) for child in children.get(each, ())]
        greatest[each] = max([each, *below])
    reader, steps = Reader(partition), list[FollowedStep]()
    while children.get(id) and len(steps) <= FOLLOWED:
        id = max(children[id], key=lambda child: greatest.get(child, child))
        loaded = await reader.by_id(scope, id)
        # A fork is its parent once more: what ran there is what was planned here.
        if loaded is None or _metadata(loaded.metadata).get("source") == "fork":
            continue
        nodes = [task.node for task in _tasks(loaded) if task.task]
        if nodes:
            steps.append(FollowedStep(id, tuple(sorted(nodes))))
    return steps
