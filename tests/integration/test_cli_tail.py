"""`jskv tail` and `jskv diff`."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from typing import Any

import nats
import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from tests.integration.commands import Fill, Run
from tests.patience import wait_until

HOSTILE = "\x1b[31mred\n[bold]x[/bold]"
ESCAPED = r"\x1b[31mred\n[bold]x[/bold]"


async def consumers(url: str, bucket: str) -> int:
    client = await nats.connect(url)
    info = await client.jetstream().stream_info(f"KV_{bucket}")
    await client.close()
    return info.state.consumer_count


def lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


def test_what_is_stored_is_told(run: Run, fill: Fill) -> None:
    fill("t")
    found = lines(run("tail", "--after", "0", "--limit", "6", "--json").out)
    kinds = [event["kind"] for event in found]
    assert kinds.count("checkpoint") == 3
    assert kinds.count("interrupt") == 1
    assert [e["step"] for e in found if e["kind"] == "checkpoint"] == [-1, 0, 1]
    assert {e["thread"] for e in found} == {"t"}
    asks = next(e for e in found if e["kind"] == "interrupt")
    assert asks["interrupts"] == ['"really?"']
    revisions = [event["revision"] for event in found]
    assert revisions == sorted(revisions)

    rest = lines(
        run("tail", "--after", str(revisions[3]), "--limit", "2", "--json").out
    )
    assert rest == found[4:]
    text = run("tail", "--after", "0", "--limit", "6")
    assert (text.code, text.err, text.out.count("\n")) == (0, "", 6)
    assert "input step -1" in text.out
    assert '__interrupt__  asks "really?"\n' in text.out


def test_threads_and_owners_are_told_apart(run: Run, fill: Fill) -> None:
    for thread, owner in (("t", "one"), ("u", "one"), ("t", "two")):
        fill(thread, values={"x": 1}, namespace=owner, agent_id=f"a-{owner}")

    def told(*options: str) -> set[tuple[str, str]]:
        found = run("tail", "--after", "0", "--json", *options).out
        return {(e["namespace"], e["thread"]) for e in lines(found)}

    assert told("--limit", "3") == {("one", "t"), ("one", "u"), ("two", "t")}
    assert told("t", "--limit", "2") == {("one", "t"), ("two", "t")}
    assert told("--namespace", "one", "--limit", "2") == {("one", "t"), ("one", "u")}
    assert told("--agent", "a-two", "--limit", "1") == {("two", "t")}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_tail_goes_on_until_it_is_told_to_end(
    fill: Fill, nats_url: str, bucket: str, number: int
) -> None:
    fill("before", values={"x": 1})
    command = [sys.executable, "-m", "jskv_saver", "tail", "--json", "--bucket", bucket]
    with subprocess.Popen(
        command,
        env={**os.environ, "NATS_URL": nats_url},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as tail:
        assert tail.stdout is not None
        assert tail.stderr is not None

        wait_until(lambda: asyncio.run(consumers(nats_url, bucket)) == 1)
        fill("t", values={"x": 1})
        event = json.loads(tail.stdout.readline())
        assert (event["kind"], event["thread"]) == ("checkpoint", "t")
        tail.send_signal(number)
        assert tail.wait() == 0
        assert (tail.stdout.read(), tail.stderr.read()) == ("", "")
    assert asyncio.run(consumers(nats_url, bucket)) == 0


def test_hostile_and_encrypted_values_stay_text(run: Run, fill: Fill) -> None:
    serde = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")
    fill(HOSTILE, values={HOSTILE: HOSTILE}, ns=HOSTILE, namespace=HOSTILE)
    fill("secret", values={"x": "the word"}, serde=serde)
    result = run("tail", "--after", "0", "--limit", "2")
    assert ESCAPED in result.out
    assert result.out.replace("\n", "").isprintable()
    assert "the word" not in result.out
    assert run("tail", "--after", "0", "--limit", "2", "--json").out.isascii()


def test_a_step_is_compared_with_the_one_before(run: Run, fill: Fill) -> None:
    fill("t")
    result = run("diff", "t")
    assert (result.code, result.err) == (0, "")
    assert '    + [1] "begun xxx' in result.out
    assert "~ log" in result.out

    found = run("diff", "t", "--json", "--preview", "20").json
    log = next(c for c in found["channels"] if c["name"] == "log")
    assert log["how"] == "changed"
    (step,) = log["steps"]
    assert (step["how"], step["path"], step["before"]) == ("added", "[1]", None)
    assert step["after"].startswith('"begun xxx')
    assert len(step["after"]) < 25
    assert [write["how"] for write in found["writes"]].count("added") >= 1
    # The other way round.
    back = run("diff", "t", found["after"], found["before"], "--json").json
    (step,) = next(c for c in back["channels"] if c["name"] == "log")["steps"]
    assert (step["how"], step["path"], step["after"]) == ("removed", "[1]", None)
    alone = run("diff", "t", found["after"], "--json").json
    assert alone["before"] == found["before"]
    nothing = run("diff", "t", found["after"], found["after"])
    assert "0 channels changed" in nothing.out


def test_what_cannot_be_compared_is_said(run: Run, fill: Fill) -> None:
    fill("t", values={"x": 1})
    (only,) = run("history", "t", "--json").json["checkpoints"]
    assert "has no parent to compare it with" in run("diff", "t").err
    assert "no checkpoint 'nope'" in run("diff", "t", "nope", only["id"]).err
    assert "no checkpoint 'nope'" in run("diff", "t", "nope").err
    assert "two checkpoints at most" in run("diff", "t", "a", "b", "c").err
    assert run("diff", "nobody").code == 1
