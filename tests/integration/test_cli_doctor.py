"""`jskv doctor`: what is wrong is told, with what mends it, and by the exit code."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import nats
import pytest
from nats.aio.client import Client
from nats.js.api import StreamConfig
from tests.integration.commands import Fill, Result, Run
from tests.patience import PATIENCE

from jskv_saver import LocalServer
from jskv_saver.cli.checkup import Checkup, _clock
from jskv_saver.cli.findings import Finding, Level
from jskv_saver.cli.packages import check_package, check_packages


def found(result: Result) -> dict[str, list[Any]]:
    topics: dict[str, list[Any]] = {}
    for finding in result.json["findings"]:
        topics.setdefault(finding["topic"], []).append(finding)
    return topics


def levels(result: Result, topic: str) -> list[str]:
    return [finding["level"] for finding in found(result)[topic]]


def test_a_healthy_bucket_is_one(
    run: Run, fill: Fill, nats_url: str, bucket: str
) -> None:
    async def last() -> int:
        client = await nats.connect(nats_url)
        info = await client.jetstream().stream_info(f"KV_{bucket}")
        await client.close()
        return info.state.last_seq

    fill("t")
    before = asyncio.run(last())
    result = run("doctor", "--json")
    assert asyncio.run(last()) == before
    assert result.code == 0
    assert result.json["worst"] == "note"
    topics = found(result)
    for topic in ("server", "max_payload", "jetstream", "bucket", "clock", "replicas"):
        assert levels(result, topic)[0] == "ok", topics[topic]
    assert levels(result, "permissions") == ["ok"]
    assert f"revision {before}" in topics["bucket"][0]["text"]
    versions = " ".join(finding["text"] for finding in topics["versions"])
    for package in ("langgraph", "protobuf", "nats-py"):
        assert f"{package} " in versions

    text = run("doctor")
    assert (text.code, text.err) == (0, "")
    assert text.out.startswith("ok       server ")
    assert "→ jetstream { sync_interval: always }" in text.out


def test_no_server_and_no_jetstream_are_errors(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    hasty = partial(Checkup, timeout=0.5)
    monkeypatch.setattr("jskv_saver.cli.doctor.Checkup", hasty)
    result = run("doctor", "--json", "--server", "nats://127.0.0.1:1")
    assert result.code == 4
    (server,) = found(result)["server"]
    assert (server["level"], server["fix"][:16]) == ("error", 'eval "$(jskv up)')


def test_a_login_that_is_refused_is_mended_by_another(run: Run) -> None:
    with LocalServer(token="right") as server:
        address = server.url.partition("@")[2]
        for login in ("wrong@", ""):
            result = run("doctor", "--json", "--server", f"nats://{login}{address}")
            assert result.code == 4
            (refused,) = found(result)["server"]
            assert "NATS_TOKEN" in refused["fix"]
            assert "jskv up" not in refused["fix"]


async def test_a_bucket_that_lacks_something_is_mended_if_asked_to(
    client: Client, nats_url: str, bucket: str
) -> None:
    jetstream = client.jetstream()
    await jetstream.add_stream(
        StreamConfig(
            name=f"KV_{bucket}", subjects=[f"$KV.{bucket}.>"], max_msgs_per_subject=5
        )
    )
    missing = ["allow_direct", "allow_msg_ttl", "allow_atomic", "allow_batched"]
    assert await problems(nats_url, bucket) == [
        *[("bucket", f"{name} is off") for name in missing],
        ("bucket", "it keeps 5 revisions of a key"),
    ]
    checkup = Checkup(nats_url, bucket)
    assert await checkup.mend() == missing
    assert await checkup.mend() == []
    await checkup.close()
    assert await problems(nats_url, bucket) == [
        ("bucket", "it keeps 5 revisions of a key")
    ]
    config = (await jetstream.stream_info(f"KV_{bucket}")).config
    assert (config.allow_direct, config.max_msgs_per_subject) == (True, 5)
    nowhere = Checkup(nats_url, f"{bucket}-none")
    with pytest.raises(Exception, match="gone"):
        await nowhere.mend()
    await nowhere.close()


async def examined(url: str, bucket: str) -> list[Finding]:
    checkup = Checkup(url, bucket)
    try:
        return [finding async for finding in checkup.findings()]
    finally:
        await checkup.close()


async def problems(url: str, bucket: str) -> list[tuple[str, str]]:
    """What is worse than a note: the topic, and the text up to a colon."""
    return [
        (finding.topic, finding.text.split(":")[0])
        for finding in await examined(url, bucket)
        if finding.level > Level.NOTE
    ]


async def test_a_bucket_that_cannot_be_used_is_an_error(
    client: Client, nats_url: str, bucket: str
) -> None:
    await client.jetstream().add_stream(
        StreamConfig(
            name=f"KV_{bucket}", subjects=[f"$KV.{bucket}.>"], max_age=60, no_ack=True
        )
    )
    assert [p for p in await problems(nats_url, bucket) if p[0] == "bucket"] == [
        ("bucket", f"bucket '{bucket}' has no_ack = True")
    ]


async def test_settings_of_servers_that_are_too_small_or_off() -> None:
    config = "max_payload: 65536\njetstream { max_file_store: 100KB }"
    with LocalServer(sync_interval="2m", config=config) as server:
        client = await nats.connect(server.url)
        await client.jetstream().create_key_value(
            bucket="small", history=1, direct=True, max_bytes=50_000, storage="memory"
        )
        kv = await client.jetstream().key_value("small")
        for n in range(15):
            await kv.put(f"{n}", bytes(3000))
        found = await problems(server.url, "small")
        await client.close()
    assert ("max_payload", "messages up to 65.5 kB") in found
    assert ("fsync", "the bucket is in memory") in found
    assert any("of 50.0 kB are used" in text for topic, text in found), found
    off = "jetstream: disabled"
    with LocalServer(sync_interval="2m", config=off) as server:
        (what,) = [f for f in await examined(server.url, "b") if f.topic == "jetstream"]
        assert (what.level, what.fix) == (Level.ERROR, "nats-server -js")


async def test_each_subject_that_is_refused_is_named() -> None:
    refused = [
        "$JS.API.STREAM.PURGE.>",
        "$KV.jskv.>",
        "$JS.API.DIRECT.GET.*",
        "$JS.API.CONSUMER.CREATE.>",
    ]
    users = f"""authorization {{ users = [
      {{user: admin, password: pw}}
      {{user: limited, password: pw, permissions: {{publish: {{deny: {refused}}}}}}}
    ] }}""".replace("'", '"')
    with LocalServer(
        user="admin", password="pw", sync_interval="2m", config=users
    ) as server:
        client = await nats.connect(server.url)
        await client.jetstream().create_key_value(bucket="jskv", history=1, direct=True)
        before = await client.jetstream().stream_info("KV_jskv")
        url = f"nats://limited:pw@127.0.0.1:{server.port}"
        found = [f for f in await examined(url, "jskv") if f.topic == "permissions"]
        after = await client.jetstream().stream_info("KV_jskv")
        await client.close()
    assert [(f.level, f.text.split(": ")[0]) for f in found] == [
        (Level.ERROR, "to read"),
        (Level.ERROR, "to remove"),
        (Level.ERROR, "to write"),
        (Level.WARNING, "to watch"),
    ]
    assert "$JS.API.STREAM.PURGE.KV_jskv is refused" in found[1].text
    assert after.state == before.state


async def replicas(url: str, bucket: str) -> Finding:
    (found,) = [f for f in await examined(url, bucket) if f.topic == "replicas"]
    return found


async def test_replicas(cluster: list[LocalServer], bucket: str) -> None:
    client = await nats.connect(cluster[0].url)
    kinds = {1: Level.WARNING, 3: Level.OK}
    for count, level in kinds.items():
        name = f"{bucket}-{count}"
        await client.jetstream().create_key_value(
            bucket=name, history=1, direct=True, replicas=count
        )
        async with asyncio.timeout(PATIENCE):
            # A replica that was just made has to catch up.
            while True:
                found = await replicas(cluster[0].url, name)
                if found.level is level:
                    break
                assert found.text.endswith("is not up to date"), found
                await asyncio.sleep(0.05)
        await client.jetstream().delete_stream(f"KV_{name}")
    await client.close()


@pytest.mark.parametrize(
    ("seconds", "level"),
    [(0, Level.OK), (5, Level.WARNING), (-5, Level.WARNING), (-90, Level.ERROR)],
)
def test_clocks_that_differ(seconds: int, level: Level) -> None:
    now = datetime.now(UTC)
    stamp = (now + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S.%f123Z")
    assert _clock(stamp, now, now + timedelta(milliseconds=200)).level is level
    assert _clock(None, now, now).level is Level.NOTE


def test_versions_of_packages() -> None:
    assert check_package("nats-py", ">=2.16,<3").level is Level.OK
    old = check_package("nats-py", ">=99.1")
    assert (old.level, old.fix) == (Level.ERROR, 'pip install -U "nats-py>=99.1"')
    assert check_package("nats-py", "<1").level is Level.ERROR
    assert check_package("no-such-package", ">=1").level is Level.ERROR
    assert all(finding.level < Level.WARNING for finding in check_packages())
