"""`jskv verify` and `jskv repair`."""

from __future__ import annotations

import asyncio

from tests.integration.commands import Result, Run
from tests.removal.commanding import Fill, Look

from jskv_saver import (
    CollectionSpec,
    FieldSpec,
    JetStreamDocumentStore,
    JetStreamSaver,
)


async def _break(store: JetStreamDocumentStore) -> None:
    await store.delete("default", "th", ("default", "t", ""))
    await store.put("default", "bl", ("default", "t", "", "ab" * 16), {"b": b"x"})


def _broken(nats_url: str, bucket: str) -> None:
    async def broken() -> None:
        async with JetStreamDocumentStore.from_conn_string(
            nats_url, bucket=bucket
        ) as store:
            await _break(store)

    asyncio.run(broken())


def test_verify_exits_with_1_on_any_finding_and_repair_mends(
    run: Run, fill: Fill, nats_url: str, bucket: str
) -> None:
    fill("t", "u")
    whole = run("verify")
    assert whole == Result(0, "2 threads, 16 checkpoints: all is whole\n", "")
    _broken(nats_url, bucket)
    found = run("verify", "--settle", "0")
    assert found.code == 1
    assert "error: missing-index  th/default/t/ of namespace default" in found.out
    assert "wrong-part" in found.out
    assert found.out.splitlines()[-1].endswith(": 3 findings")
    assert run("verify", "u").code == 0
    as_json = run("verify", "t", "--settle", "0", "--json")
    assert as_json.code == 1
    kinds = {(each["kind"], each["severity"]) for each in as_json.json["findings"]}
    assert kinds == {
        ("missing-index", "error"),
        ("wrong-part", "error"),
        ("unreachable", "warning"),
    }
    assert as_json.json["checkpoints"] == 8

    refused = run("repair")
    assert refused.code == 1
    assert "Mend 3 findings?" in refused.err
    assert run("repair", "--dry-run").code == 0
    assert run("verify").code == 1
    mended = run("repair", "--yes")
    assert mended.code == 0
    assert mended.out.splitlines()[-1].endswith(": all is whole")
    assert run("verify") == whole
    assert run("repair") == whole


def test_a_thread_without_its_index_is_found_too(
    run: Run, fill: Fill, use: Look
) -> None:
    """Of the whole namespace no thread is indexed."""
    fill("t", namespace="other")

    async def unindexed(saver: JetStreamSaver) -> None:
        prefix = ("default", "t")
        await saver.store.delete("other", ["th"], prefix, subtree=True)

    use(unindexed)
    assert run("verify").out.count("missing-index") == 2
    assert run("repair", "--yes").code == 0
    assert run("threads", "--json").json["total"] == 1


def test_collections_are_verified_and_repaired_as_well(
    run: Run, fill: Fill, nats_url: str, bucket: str
) -> None:
    fill("t")
    spec = CollectionSpec("notes", (FieldSpec("state", "string", indexed=True),))

    async def declare() -> None:
        async with JetStreamDocumentStore.from_conn_string(
            nats_url, bucket=bucket
        ) as store:
            await store.ensure_collection("mine", spec)
            await store.put("mine", "notes", "1", {"state": "open"})
            for hint in await store._bucket.names(["ix./mine.>"]):
                await store._bucket.purge(hint)

    asyncio.run(declare())
    found = run("verify")
    assert found.code == 1
    assert "missing-index  ix./mine.notes.state.3open.1." in found.out
    assert "1 thread, 8 checkpoints, 1 collection: 1 finding" in found.out
    # About threads that are named, or one agent, no collection is looked at.
    assert run("verify", "t").code == 0
    assert run("verify", "--agent", "default").code == 0
    assert run("repair", "--namespace", "mine", "--yes").code == 0
    assert run("verify").code == 0


def test_damage_that_no_repair_mends_stays_an_error(
    run: Run, fill: Fill, use: Look
) -> None:
    fill("t", "u")

    async def damage(saver: JetStreamSaver) -> None:
        path = ("default", "t", "", "2")
        document = await saver.store.get("default", "cp", path)
        await saver.store.put("default", "cp", path, {**document.data, "l": b"\xff"})
        await saver.store.put("default", "rn", ("default", "u", "r9", ""), {})

    use(damage)
    result = run("prune", "--keep-last", "1", "--dry-run")
    assert result.code == 0
    assert "thread u of" in result.out
    assert result.out.splitlines()[-1] == "damaged: t"
    result = run("prune", "--keep-last", "1", "--yes")
    assert result.code == 1
    assert "('default', 't', '', '2') is not readable" in result.err
    # Nothing else is left to do; that one could not be done.
    result = run("prune", "--keep-last", "1", "--yes")
    assert (result.code, result.out.splitlines()) == (
        1,
        ["damaged: t", "nothing to remove"],
    )
    result = run("repair", "--yes")
    assert result.code == 1
    assert result.out.splitlines()[-1].endswith(": 1 finding")
    assert "error: corrupt  cp/default/t//2" in result.out.splitlines()[-2]
    assert run("delete", "t", "--yes").code == 0
    assert run("verify").code == 0
