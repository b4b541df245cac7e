from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import nats
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from tests.integration.commands import Fill, Run

from jskv_saver import JetStreamDocumentStore

HOSTILE = "\x1b[31mred\n[bold]x[/bold] :smile:\u202e\x07"
ESCAPED = r"\x1b[31mred\n[bold]x[/bold] :smile:\u202e\x07"


def test_threads_of_all_namespaces_and_agents(run: Run, fill: Fill) -> None:
    fill("first")
    fill("second", namespace="my_app", agent_id="reviewer")
    fill("third", namespace="Bücher 1/2*")

    result = run("threads")

    assert (result.code, result.err) == (0, "")
    lines = result.out.splitlines()
    assert [line.split()[0] for line in lines] == ["thread", "third", "second", "first"]
    assert "Bücher 1/2*" in lines[1]
    assert lines[2].split()[1:4] == ["my_app", "reviewer", "3"]

    found = run("threads", "--json").json
    assert found["total"] == 3
    assert [t["thread"] for t in found["threads"]] == ["third", "second", "first"]
    assert found["threads"][2] | {"newest_id": "", "newest_at": ""} == {
        "namespace": "default",
        "agent": "default",
        "thread": "first",
        "checkpoints": 3,
        "namespaces": [""],
        "newest_id": "",
        "newest_at": "",
        "encrypted": False,
        "newest_ns": "",
    }


def test_threads_can_be_narrowed(run: Run, fill: Fill) -> None:
    for name in "ab":
        fill(name, namespace="one", agent_id=name)
    fill("c", namespace="two", agent_id="a")

    def names(*options: str) -> list[str]:
        found = run("threads", "--json", *options).json
        return [thread["thread"] for thread in found["threads"]]

    assert names("--namespace", "one") == ["b", "a"]
    assert names("--agent", "a") == ["c", "a"]
    assert names("--limit", "1") == ["c"]
    assert names("--limit", "0") == ["c", "b", "a"]
    assert names("--namespace", "three") == []
    assert "1 more" not in run("threads").out
    assert "2 more: use --limit" in run("threads", "--limit", "1").out


def test_an_empty_bucket_says_so(run: Run, nats_url: str, bucket: str) -> None:
    async def make() -> None:
        async with JetStreamDocumentStore.from_conn_string(nats_url, bucket=bucket):
            pass

    asyncio.run(make())
    assert run("threads").out == f"no threads in bucket {bucket}\n"
    nobody = run("threads", "--namespace", "nope", "--agent", "a").out
    assert nobody == f"no threads in bucket {bucket} of namespace nope of agent a\n"


def test_keys_of_other_programs_are_left_out(
    run: Run, fill: Fill, nats_url: str, bucket: str
) -> None:
    fill("t")
    # Its name is a digest in the keys: found by name only.
    fill("u", namespace="日" * 128)

    async def put() -> None:
        client = await nats.connect(nats_url)
        kv = await client.jetstream().key_value(bucket)
        for key in ("th.x", "th.x.y", "th.-.-.-.-", "th.=Z.a.b.c", "other", "cp.x.y"):
            await kv.put(key, b"?")
        await client.close()

    asyncio.run(put())
    found = run("threads", "--json").json["threads"]
    assert [thread["thread"] for thread in found if thread["checkpoints"]] == ["t"]
    found = run("threads", "--namespace", "日" * 128, "--json").json["threads"]
    assert [thread["thread"] for thread in found] == ["u"]


def test_history(run: Run, fill: Fill) -> None:
    fill("t", resume=True)

    found = run("history", "t", "--json").json

    rows = found["checkpoints"]
    assert (found["thread"], found["namespace"], found["total"]) == ("t", "default", 4)
    assert [row["step"] for row in rows] == [2, 1, 0, -1]
    assert rows[0]["parent"] == rows[1]["id"]
    assert rows[0]["shared_bytes"] > 800
    assert rows[1]["writes"] >= 2

    result = run("history", "t", "--limit", "2")
    assert result.code == 0
    assert rows[0]["id"] in result.out
    assert rows[2]["id"] not in result.out.replace(f"parent     {rows[2]['id']}", "")
    assert "shared with the parent" in result.out
    assert "4 checkpoints, 2 more: use --limit" in result.out


def test_show(run: Run, fill: Fill) -> None:
    fill("t")

    result = run("show", "t")

    assert (result.code, result.err) == (0, "")
    assert "loop step 1" in result.out
    assert '["input", "begun' in result.out
    assert "__interrupt__" in result.out
    assert "langgraph.types.Interrupt" in result.out

    found = run("show", "t", "--json", "--preview", "10").json
    assert found["channels"]["log"]["preview"] == '["input", …'
    again = run("show", "t", found["id"], "--json", "--preview", "10").json
    assert again == found
    parent = run("show", "t", found["parent"], "--json").json
    assert parent["step"] == 0


def test_show_tells_what_comes_next(run: Run, fill: Fill) -> None:
    fill("t")
    assert 'next       ask, which asks "really?"\n' in run("show", "t").out
    found = run("show", "t", "--json").json
    (task,) = found["next"]
    assert (task["node"], task["state"], task["detail"]) == ("ask", "asks", '"really?"')
    before = run("show", "t", found["parent"]).out
    assert "next       begin, which is done\n" in before
    fill("t", resume=True)
    assert "next       nothing: it has come to its end\n" in run("show", "t").out
    assert run("show", "t", "--json").json["next"] == []
    serde = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")
    fill("u", values={"x": 1}, serde=serde)
    assert "next       only the program that wrote it" in run("show", "u").out
    assert run("show", "u", "--json").json["next"] is None


def test_checkpoint_namespaces(run: Run, fill: Fill) -> None:
    fill("t", values={"a": 1})
    fill("t", values={"b": 2}, ns="node:1|inner")
    assert "2 in 2 namespaces" in run("threads").out
    assert list(run("show", "t", "--json").json["channels"]) == ["a"]
    shown = run("show", "t", "--ns", "node:1|inner", "--json").json
    assert list(shown["channels"]) == ["b"]
    assert "namespace  node:1|inner" in run("history", "t").out
    assert run("history", "t", "--ns", "", "--json").json["total"] == 1


def test_hostile_text_is_escaped(run: Run, fill: Fill) -> None:
    fill(
        HOSTILE,
        values={HOSTILE: HOSTILE},
        ns=HOSTILE,
        namespace=HOSTILE,
        agent_id=HOSTILE,
    )
    for command in (["threads"], ["history", HOSTILE], ["show", HOSTILE]):
        result = run(*command)
        assert (result.code, result.err) == (0, "")
        assert ESCAPED in result.out
        assert result.out.replace("\n", "").isprintable()
        raw = run(*command, "--json")
        assert raw.out.isascii()
        assert raw.out.replace("\n", "").isprintable()
    assert run("show", HOSTILE, "--json").json["thread"] == HOSTILE
    missing = run("show", "\x1b[2J")
    assert missing.err.startswith("jskv: there is no thread '\\x1b[2J' here (hint: ")


def test_encrypted_values_are_said_to_be(run: Run, fill: Fill) -> None:
    serde = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")
    fill("t", values={"secret": "the word"}, serde=serde)
    result = run("show", "t")
    assert "<encrypted with aes" in result.out
    assert "the word" not in result.out
    assert "step unknown" in run("history", "t").out


def test_reading_writes_nothing(
    run: Run, fill: Fill, nats_url: str, bucket: str
) -> None:
    async def last() -> int:
        client = await nats.connect(nats_url)
        info = await client.jetstream().stream_info(f"KV_{bucket}")
        await client.close()
        return info.state.last_seq

    fill("t")
    before = asyncio.run(last())
    for command in (["threads"], ["history", "t"], ["show", "t"]):
        assert run(*command).code == 0
    assert asyncio.run(last()) == before


def test_types_of_the_user_are_never_imported(
    nats_url: str, bucket: str, tmp_path: Path
) -> None:
    """The program that shows a thread has the module, and does not import it."""
    marker = tmp_path / "imported"
    (tmp_path / "user_types.py").write_text(
        "import dataclasses, pathlib\n"
        f"pathlib.Path({str(marker)!r}).touch()\n"
        "@dataclasses.dataclass\n"
        "class Secret:\n"
        "    word: str\n"
    )
    environment = {
        **os.environ,
        "NATS_URL": nats_url,
        "PYTHONPATH": os.pathsep.join([str(tmp_path), *filter(None, sys.path)]),
    }
    writer = f"""
import asyncio
from user_types import Secret
from langgraph.checkpoint.base import empty_checkpoint
from jskv_saver import JetStreamSaver

async def main():
    async with JetStreamSaver.from_conn_string(bucket={bucket!r}) as saver:
        checkpoint = empty_checkpoint()
        checkpoint["channel_values"] = {{"it": Secret("hidden")}}
        checkpoint["channel_versions"] = {{"it": 1}}
        config = {{"configurable": {{"thread_id": "t", "checkpoint_ns": ""}}}}
        metadata = {{"source": "loop", "step": 0, "by": Secret("me")}}
        config = await saver.aput(config, checkpoint, metadata, {{"it": 1}})
        await saver.aput_writes(config, [("it", Secret("later"))], "task")
asyncio.run(main())
"""

    def python(*arguments: str) -> str:
        return subprocess.run(
            [sys.executable, *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    python("-c", writer)
    assert marker.exists()
    marker.unlink()
    command = ("-m", "jskv_saver")
    python(*command, "threads", "--bucket", bucket)
    python(*command, "history", "t", "--bucket", bucket)
    shown = python(*command, "show", "t", "--bucket", bucket)
    assert shown.count("user_types.Secret") == 3
    assert not marker.exists()
