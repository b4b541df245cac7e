"""`jskv export` and `jskv import`: all of a bucket's threads, there and back."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT
from tests.checkpoint.saving import at, listed, numbered, put
from tests.integration.commands import Fill, Run

from jskv_saver import (
    DocumentCheckpointSaver,
    JetStreamDocumentStore,
    JetStreamSaver,
    MemoryDocumentStore,
)
from jskv_saver.checkpoint.inspect import list_threads
from jskv_saver.checkpoint.transfer import export_threads, import_threads
from jskv_saver.errors import DivergentCheckpointError

LARGE = "large " * 150_000


async def fill_all(saver: DocumentCheckpointSaver) -> None:
    log: list[str] = []
    parent = None
    for id in numbered(8):
        log = [*log, id * 200]
        state = {"log": log, "keep": LARGE, "n": id}
        await put(saver, id, state, parent=parent, run_id="r", by={"a": [1]})
        await saver.aput_writes(at(id), [("log", id), (ERROR, "e")], "task", "~path")
        parent = id
    await put(saver, "000003x", {"fork": 1}, parent="000003")
    await put(saver, "1", {"x": None}, ns="node:1|inner")
    await put(saver, "2", {"x": b"\0"}, parent="1", ns="node:1|inner")
    await saver.aput_writes(at("2", ns="node:1|inner"), [("x", LARGE)], "large")
    await saver.aput_writes(at("early"), [(INTERRUPT, "?")], "before its checkpoint")
    await put(saver, "1", {"日": "本"}, thread="user:1/session 7\n*>")


async def everything(saver: DocumentCheckpointSaver) -> list[Any]:
    found = await listed(saver)
    early = await saver._reader.read_writes([("default", "t", "", "early", "before")])
    return [found, early]


async def all_of(store: Any, namespace: str = "default") -> list[Any]:
    return await everything(DocumentCheckpointSaver(store, namespace=namespace))


def exported(store: Any) -> Any:
    async def run() -> bytes:
        stream = io.BytesIO()
        refs = [info.ref for info in await list_threads(store, ["default"])]
        await export_threads(store, refs, stream)
        return stream.getvalue()

    return run()


async def test_what_is_exported_and_imported_is_the_same(
    store: JetStreamDocumentStore,
) -> None:
    await fill_all(JetStreamSaver(store))
    archive = await exported(store)
    assert len(archive) < 60_000
    for target in (MemoryDocumentStore(), store):
        for namespace in ("default", "other", "default"):
            for check in (False, True):
                totals = await import_threads(
                    target, io.BytesIO(archive), namespace=namespace, check=check
                )
            assert (totals.threads, totals.checkpoints, totals.writes) == (2, 12, 18)
            assert await all_of(target, namespace) == await all_of(store)
    # A second export of what was imported holds the same.
    again = MemoryDocumentStore()
    await import_threads(again, io.BytesIO(archive))
    assert await exported(again) == archive


async def test_an_import_continues_where_it_broke_off_and_overwrites_nothing(
    store: JetStreamDocumentStore,
) -> None:
    source = MemoryDocumentStore()
    await fill_all(DocumentCheckpointSaver(source))
    archive = await exported(source)
    target = JetStreamSaver(store)
    count = 0

    class Broken(Exception):
        pass

    def stop(_: object) -> None:
        nonlocal count
        count += 1
        if count == 5:
            raise Broken

    with pytest.raises(Broken):
        await import_threads(store, io.BytesIO(archive), progress=stop)
    assert len(await listed(target)) == 5
    await import_threads(store, io.BytesIO(archive))
    await import_threads(store, io.BytesIO(archive), check=True)
    # The thread goes on, and another import takes nothing of that away.
    await put(target, "000009", {"n": "new"}, parent="000007")
    await import_threads(store, io.BytesIO(archive))
    found = await target.aget_tuple(at())
    assert found is not None
    assert found.checkpoint["channel_values"] == {"n": "new"}

    other = MemoryDocumentStore()
    await put(DocumentCheckpointSaver(other), "000002", {"other": 1})
    with pytest.raises(DivergentCheckpointError, match="000002"):
        await import_threads(other, io.BytesIO(archive))


def test_a_bucket_goes_to_a_file_and_into_another_bucket(
    run: Run, fill: Fill, tmp_path: Path, bucket: str
) -> None:
    fill("t", resume=True)
    fill("u", namespace="my app", agent_id="a")
    fill("v", values={"x": 1}, ns="inner:1")
    file = tmp_path / "threads.jskv"

    result = run("export", str(file))

    assert (result.code, result.out) == (0, "")
    assert result.err.startswith("exported 3 threads, 8 checkpoints, ")
    assert os.listdir(tmp_path) == ["threads.jskv"]
    assert "is there already: --force" in run("export", str(file)).err
    assert run("export", str(file), "--force").code == 0

    checked = run("import", str(file), "--check")
    assert checked.out.startswith("whole, with 3 threads, 8 checkpoints, ")
    imported = run("import", str(file), "--json", bucket=f"{bucket}-2")
    assert imported.json["checkpoints"] == 8
    assert run("import", str(file), bucket=f"{bucket}-2").out.startswith(
        "imported and compared 3 threads"
    )
    for command in (["threads"], ["history", "t"], ["show", "t"], ["show", "u"]):
        here = run(*command, "--json").json
        there = run(*command, "--json", bucket=f"{bucket}-2").json
        assert _without_times(there) == _without_times(here)

    only = tmp_path / "one"
    assert run("export", str(only), "u").err.startswith("exported 1 thread, 3 check")
    run("import", str(only), "--namespace", "moved", "--agent", "b")
    found = run("threads", "--namespace", "moved", "--json").json["threads"]
    assert [(t["thread"], t["agent"]) for t in found] == [("u", "b")]


def _without_times(found: Any) -> Any:
    left_out = {"bucket", "newest_at", "stored_at", "version", "new_bytes"}
    left_out |= {"shared_bytes", "parts"}
    if isinstance(found, dict):
        return {k: _without_times(v) for k, v in found.items() if k not in left_out}
    if isinstance(found, list):
        return [_without_times(item) for item in found]
    return found


def test_an_archive_goes_through_a_pipe(
    fill: Fill, nats_url: str, bucket: str, run: Run
) -> None:
    fill("t")
    jskv = f"{sys.executable} -m jskv_saver"
    subprocess.run(
        f"{jskv} export - --bucket {bucket} | {jskv} import - --bucket {bucket}-2",
        shell=True,
        check=True,
        env={**os.environ, "NATS_URL": nats_url},
        capture_output=True,
    )
    assert run("threads", "--json", bucket=f"{bucket}-2").json["total"] == 1


def test_what_is_no_archive_changes_nothing(
    run: Run, fill: Fill, tmp_path: Path, bucket: str
) -> None:
    fill("t")
    file = tmp_path / "archive"
    run("export", str(file))
    whole = file.read_bytes()
    file.write_bytes(whole[:-40])
    result = run("import", str(file), bucket=f"{bucket}-2")
    assert result.code == 1
    assert "it ends too early" in result.err
    assert "jskv verify" not in result.err
    assert "Then export once more" in result.err
    assert run("threads", bucket=f"{bucket}-2").code == 1
    missing = run("import", str(tmp_path / "none"))
    assert (missing.code, "No such file" in missing.err) == (1, True)
    nowhere = run("export", str(tmp_path / "no folder" / "x"))
    assert (nowhere.code, "cannot be written" in nowhere.err) == (1, True)
    # A thread that is not there leaves no file.
    assert run("export", str(tmp_path / "y"), "nobody").code == 1
    assert sorted(os.listdir(tmp_path)) == ["archive"]


def test_an_archive_never_imports_the_users_types(
    run: Run, fill: Fill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bucket: str
) -> None:
    marker = tmp_path / "imported"
    (tmp_path / "their_types.py").write_text(
        f"import pathlib\npathlib.Path({str(marker)!r}).touch()\n"
        "import dataclasses\n@dataclasses.dataclass\nclass Theirs:\n    x: int\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    theirs = __import__("their_types").Theirs(1)
    fill("t", values={"x": theirs})
    marker.unlink()
    monkeypatch.delitem(sys.modules, "their_types")
    file = tmp_path / "archive"
    assert run("export", str(file)).code == 0
    for _ in range(2):
        assert run("import", str(file), bucket=f"{bucket}-2").code == 0
    assert run("diff", "t", bucket=f"{bucket}-2").code == 1
    assert not marker.exists()
