"""The history of delta channels: what the ancestors on the path contributed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.base import BaseCheckpointSaver, DeltaChannelHistory
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from tests.checkpoint.saving import AnySaver, at, ids, numbered, put

from jskv_saver import DocumentCheckpointSaver, MemoryDocumentStore
from jskv_saver.document.model import Document, DocumentId, ReadKey, Reads
from jskv_saver.errors import CorruptDocumentError

History = Mapping[str, DeltaChannelHistory]


async def history(
    saver: AnySaver, id: str | None = None, *channels: str, thread: str = "t"
) -> History:
    return await saver.aget_delta_channel_history(
        config=at(id, thread=thread), channels=channels or ("x",)
    )


async def default_walk(
    saver: DocumentCheckpointSaver, id: str | None, channels: Sequence[str]
) -> History:
    """LangGraph's own walk over the same saver."""
    return await BaseCheckpointSaver.aget_delta_channel_history(
        saver, config=at(id), channels=channels
    )


async def _step(
    saver: AnySaver,
    id: str,
    parent: str | None,
    seeds: Mapping[str, Any],
    writes: Sequence[tuple[str, Any]] = (),
) -> None:
    """A checkpoint whose delta channels have a value only in `seeds`."""
    counters = {} if seeds else {"x": (1, 1)}
    await put(
        saver,
        id,
        seeds,
        parent=parent,
        versions={"x": id, "y": id},
        new={"x": id, "y": id},
        counters_since_delta_snapshot=counters,
    )
    if writes:
        await saver.aput_writes(at(id), list(writes), f"task of {id}")


def _written(id: str, *values: Any, channel: str = "x") -> list[tuple[str, str, Any]]:
    return [(f"task of {id}", channel, value) for value in values]


async def test_writes_come_oldest_first_from_the_snapshot_on(
    saver: DocumentCheckpointSaver,
) -> None:
    await _step(saver, "1", None, {}, [("x", "before the seed")])
    await _step(saver, "2", "1", {"x": _DeltaSnapshot(["s"])}, [("x", 2), ("x", 3)])
    await _step(saver, "3", "2", {}, [("x", 4), ("y", "other")])
    await _step(saver, "4", "3", {}, [("x", "pending at the target")])

    found = await history(saver)

    assert found == {
        "x": {
            "seed": _DeltaSnapshot(["s"]),
            "writes": [*_written("2", 2, 3), *_written("3", 4)],
        }
    }
    assert await history(saver, "4") == found
    assert await history(saver, "3") == {
        "x": {"seed": _DeltaSnapshot(["s"]), "writes": _written("2", 2, 3)}
    }


@pytest.mark.parametrize("seed", [["plain"], None, [], "", {"a": 1}], ids=repr)
async def test_a_plain_value_is_a_seed_too(
    saver: DocumentCheckpointSaver, seed: object
) -> None:
    await _step(saver, "1", None, {"x": seed}, [("x", 1)])
    await _step(saver, "2", "1", {}, [("x", 2)])
    await _step(saver, "3", "2", {})

    assert await history(saver) == {
        "x": {"seed": seed, "writes": [*_written("1", 1), *_written("2", 2)]}
    }


async def test_without_a_seed_the_walk_ends_at_the_root(
    saver: DocumentCheckpointSaver,
) -> None:
    await _step(saver, "1", None, {}, [("x", 1)])
    await _step(saver, "2", "1", {}, [("x", 2)])
    await _step(saver, "3", "2", {})

    assert await history(saver) == {
        "x": {"writes": [*_written("1", 1), *_written("2", 2)]}
    }
    assert await history(saver, "1") == {"x": {"writes": []}}


async def test_each_channel_ends_at_its_own_seed(
    saver: DocumentCheckpointSaver,
) -> None:
    await _step(saver, "1", None, {"y": ["y"]}, [("x", 1), ("y", 1)])
    await _step(saver, "2", "1", {"x": ["x"]}, [("x", 2), ("y", 2)])
    await _step(saver, "3", "2", {}, [("x", 3), ("y", 3)])
    await _step(saver, "4", "3", {})

    assert await history(saver, None, "x", "y", "unknown", "x") == {
        "x": {"seed": ["x"], "writes": [*_written("2", 2), *_written("3", 3)]},
        "y": {
            "seed": ["y"],
            "writes": [
                *_written("1", 1, channel="y"),
                *_written("2", 2, channel="y"),
                *_written("3", 3, channel="y"),
            ],
        },
        "unknown": {"writes": []},
    }


async def test_the_writes_of_another_branch_are_never_replayed(
    saver: DocumentCheckpointSaver,
) -> None:
    await _step(saver, "1", None, {"x": ["s"]}, [("x", "common")])
    await _step(saver, "2", "1", {}, [("x", "abandoned")])
    await _step(saver, "3", "2", {}, [("x", "abandoned too")])
    await _step(saver, "4", "1", {}, [("x", "fork")])
    await _step(saver, "5", "4", {})

    assert await history(saver) == {
        "x": {
            "seed": ["s"],
            "writes": [*_written("1", "common"), *_written("4", "fork")],
        }
    }
    assert (await history(saver, "3"))["x"]["writes"] == [
        *_written("1", "common"),
        *_written("2", "abandoned"),
    ]


async def test_the_writes_of_a_step_are_in_the_order_of_the_run(
    saver: DocumentCheckpointSaver,
) -> None:
    await _step(saver, "1", None, {})
    for task, path, count in (
        ("z", "~__pregel_pull, a", 12),
        ("a", "~__pregel_pull, b", 11),
        ("m", "", 2),
        ("b", "", 1),
    ):
        await saver.aput_writes(
            at("1"), [("x", [task, n]) for n in range(count)], task, path
        )
    await _step(saver, "2", "1", {})

    found = (await history(saver))["x"]["writes"]

    assert [value for _, _, value in found] == [
        *(["b", n] for n in range(1)),
        *(["m", n] for n in range(2)),
        *(["z", n] for n in range(12)),
        *(["a", n] for n in range(11)),
    ]


async def test_what_is_unknown_has_no_history(saver: DocumentCheckpointSaver) -> None:
    assert await history(saver) == {"x": {"writes": []}}
    assert await history(saver, "9") == {"x": {"writes": []}}
    await _step(saver, "1", None, {"x": 1}, [("x", 1)])
    assert await history(saver, "9") == {"x": {"writes": []}}
    assert await saver.aget_delta_channel_history(config=at(), channels=[]) == {}


async def test_an_ancestor_that_is_gone_is_an_error(
    saver: DocumentCheckpointSaver,
) -> None:
    for n in range(1, 6):
        await _step(saver, str(n), str(n - 1) if n > 1 else None, {}, [("x", n)])
    await saver.store.delete("default", "cp", ("default", "t", "", "3"))

    for id in (None, "5", "4"):
        with pytest.raises(CorruptDocumentError) as caught:
            await history(saver, id)
        assert caught.value.key is not None
        assert caught.value.key.endswith("/3")
    assert (await history(saver, "2"))["x"]["writes"] == _written("1", 1)


async def test_an_ancestor_beyond_every_seed_may_be_gone(
    saver: DocumentCheckpointSaver,
) -> None:
    await _step(saver, "2", "1", {"x": ["s"]}, [("x", 2)])
    await _step(saver, "3", "2", {})

    assert await history(saver) == {"x": {"seed": ["s"], "writes": _written("2", 2)}}


class Counting(MemoryDocumentStore):
    """Counts the requests that read."""

    reads = 0

    async def get_many(
        self, namespace: str, reads: Reads
    ) -> Mapping[ReadKey, Document]:
        self.reads += 1
        assert len(reads) < 1024 * 8
        return await super().get_many(namespace, reads)

    async def ids(
        self, namespace: str, collection: str, *, within: Any = None
    ) -> Sequence[DocumentId]:
        self.reads += 1
        return await super().ids(namespace, collection, within=within)


async def test_a_long_walk_takes_few_requests() -> None:
    store = Counting()
    async with DocumentCheckpointSaver(store) as saver:
        await _long_thread(saver)
        store.reads = 0
        found = await history(saver)

        assert store.reads <= 15
        _check_long(found)


async def test_a_walk_of_eleven_hundred_ancestors_is_whole(
    saver: DocumentCheckpointSaver,
) -> None:
    await _long_thread(saver)

    _check_long(await history(saver))
    assert await history(saver, "000004") == {
        "x": {
            "seed": ["s"],
            "writes": [w for id in numbered(3, 1) for w in _written(id, id)],
        }
    }


async def _long_thread(saver: DocumentCheckpointSaver) -> None:
    names = numbered(1101)
    for n, id in enumerate(names):
        seeds = {"x": ["s"]} if n == 1 else {}
        await _step(saver, id, names[n - 1] if n else None, seeds, [("x", id)])


def _check_long(found: History) -> None:
    assert found["x"]["seed"] == ["s"]
    assert found["x"]["writes"] == [
        write for id in numbered(1099, 1) for write in _written(id, id)
    ]


STEPS = st.lists(
    st.tuples(
        st.integers(0, 12),
        st.sampled_from([(), ("x",), ("y",), ("x", "y"), ()]),
        st.lists(
            st.tuples(
                st.sampled_from(["x", "y", "z"]),
                st.sampled_from(["~2", "~1", ""]),
                st.integers(0, 12),
            ),
            max_size=4,
        ),
        st.booleans(),
    ),
    min_size=1,
    max_size=14,
)


@given(steps=STEPS, strategy=st.sampled_from([None, "prune", "runs", "copy"]))
async def test_any_history_is_that_of_langgraph_s_own_walks(
    steps: list[tuple[int, tuple[str, ...], list[tuple[str, str, int]], bool]],
    strategy: str | None,
) -> None:
    reference = InMemorySaver()
    parents: dict[str, str | None] = {}
    async with DocumentCheckpointSaver(MemoryDocumentStore()) as saver:
        for n, (back, seeds, writes, is_first_run) in enumerate(steps):
            id = f"{n:03}"
            parent = f"{n - 1 - back % n:03}" if n and back < 12 else None
            parents[id] = parent
            open_channels = {c: (1, 1) for c in "xyz" if c not in seeds}
            for each in (saver, reference):
                await put(
                    each,
                    id,
                    {channel: [channel, n] for channel in seeds},
                    parent=parent,
                    versions=dict.fromkeys("xyz", id),
                    counters_since_delta_snapshot=open_channels,
                    run_id="first" if is_first_run else "second",
                )
                for channel, path, count in writes:
                    task = f"{channel} of {id}"
                    await each.aput_writes(
                        at(id), [(channel, [task, i]) for i in range(count)], task, path
                    )
        channels = ["x", "y", "z", "unknown"]
        kept, thread = set(parents), "t"
        if strategy == "prune":
            await saver.aprune(["t"])
            kept = {max(parents)}
        elif strategy == "runs":
            await saver.adelete_for_runs(["first"])
            kept = {
                id
                for (_, _, _, first), id in zip(steps, parents, strict=True)
                if not first
            }
        elif strategy == "copy":
            await saver.acopy_thread("t", "copy")
            await saver.adelete_thread("t")
            thread = "copy"

        assert kept <= set(await ids(saver, at(thread=thread)))
        for id in kept:
            wanted = channels
            if strategy in ("prune", "runs"):
                # Of a channel with a value LangGraph never asks for the history.
                wanted = [c for c in "xyz" if c not in steps[int(id)][1]]
            expected = await history(reference, id, *wanted)
            assert await history(saver, id, *wanted, thread=thread) == expected
            if strategy is None:
                assert await default_walk(saver, id, channels) == expected
        if strategy is None:
            assert await history(saver, None, *channels) == await history(
                reference, None, *channels
            )
