"""The stream behind a bucket: its configuration as ADR-8 has it, and what must fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from jskv_saver.adapters.jetstream.options import BucketOptions
from jskv_saver.errors import UnsuitableBucketError, UnsupportedServerError

NEEDED_SERVER: Final = "2.11"

# API levels (ADR-44): what a server of at least this level has.
LEVEL_TTL: Final = 1
LEVEL_ATOMIC: Final = 2
LEVEL_FAST: Final = 4

_LEVEL_KEY: Final = "_nats.level"
_VERSION_KEY: Final = "_nats.ver"
_DUPLICATE_WINDOW: Final = 120_000_000_000
_LEVELS_BY_VERSION: Final = (
    ((2, 14), LEVEL_FAST),
    ((2, 12), LEVEL_ATOMIC),
    ((2, 11), LEVEL_TTL),
)


@dataclass(frozen=True, slots=True)
class Features:
    """What a bound bucket can do, from the configuration that the server echoed.

    Attributes:
        direct: Any replica may answer reads, and several in one request.
        replicated: It has more than one replica.
        history: How many revisions of a key it keeps.
        ttl: Entries may expire.
        fast: Several entries may be written in order in one round trip.
        max_value_size: Bytes of a value, headers included; -1: no limit.
        file: It is stored in files.
        origin: The bucket that it mirrors; None: it is no mirror.
    """

    direct: bool
    replicated: bool
    history: int
    ttl: bool
    fast: bool
    max_value_size: int
    file: bool
    origin: str | None = None


def stream_name(bucket: str) -> str:
    """The name of the bucket's stream."""
    return f"KV_{bucket}"


def level_of_version(major: int, minor: int) -> int:
    """The API level that a release has at least; 0: too old."""
    for version, level in _LEVELS_BY_VERSION:
        if (major, minor) >= version:
            return level
    return 0


def stream_config(bucket: str, options: BucketOptions, level: int) -> dict[str, Any]:
    """The configuration to make a bucket with, for a server of an API level.

    Rollup headers stay allowed, as in every KV bucket: `nats kv purge` needs them.

    Source:
        NATS ADR-8 (KV), "Storage backend"; ADR-43 (TTL); ADR-50 (batches).
    """
    config: dict[str, Any] = {
        "name": stream_name(bucket),
        "description": options.description,
        "subjects": [f"$KV.{bucket}.>"],
        "retention": "limits",
        "storage": options.storage,
        "num_replicas": options.replicas,
        "max_msgs_per_subject": 1,
        "max_consumers": -1,
        "max_msgs": -1,
        "max_bytes": options.max_bytes,
        "max_age": 0,
        "max_msg_size": options.max_value_size,
        "discard": "new",
        "duplicate_window": _DUPLICATE_WINDOW,
        "compression": options.compression,
        "deny_delete": True,
        "deny_purge": False,
        "allow_rollup_hdrs": True,
        "allow_direct": True,
        "allow_msg_ttl": True,
        "metadata": dict(options.metadata),
    }
    if level >= LEVEL_ATOMIC:
        config["allow_atomic"] = True
    if level >= LEVEL_FAST:
        config["allow_batched"] = True
    if options.placement_cluster or options.placement_tags:
        config["placement"] = {
            "cluster": options.placement_cluster or "",
            "tags": list(options.placement_tags),
        }
    if options.republish is not None:
        config["republish"] = {
            "src": options.republish.source,
            "dest": options.republish.destination,
            "headers_only": options.republish.headers_only,
        }
    return config


def _limited(config: Mapping[str, Any]) -> bool:
    return any(config.get(limit, -1) > 0 for limit in ("max_bytes", "max_msgs"))


# Setting → when it does not fit, and what would happen.
_UNFIT: Final[Mapping[str, tuple[Callable[[Mapping[str, Any]], bool], str]]] = {
    "mirror": (lambda c: bool(c.get("mirror")), "a mirror takes no writes"),
    "sealed": (lambda c: bool(c.get("sealed")), "it takes no writes"),
    "no_ack": (lambda c: bool(c.get("no_ack")), "no write would be confirmed"),
    "deny_purge": (lambda c: bool(c.get("deny_purge")), "nothing could be deleted"),
    "retention": (
        lambda c: c.get("retention", "limits") != "limits",
        "entries would vanish once they were read",
    ),
    "max_age": (
        lambda c: c.get("max_age", 0) > 0,
        "parts of a document would expire before the document",
    ),
    "discard": (
        lambda c: c.get("discard") != "new" and _limited(c),
        "a full bucket would drop the oldest entries in silence",
    ),
    "discard_new_per_subject": (
        lambda c: bool(c.get("discard_new_per_subject")),
        "no entry could be replaced",
    ),
    "subject_transform": (
        lambda c: bool(c.get("subject_transform")),
        "keys would be renamed",
    ),
    "allow_msg_counter": (
        lambda c: bool(c.get("allow_msg_counter")),
        "values would have to be counters",
    ),
    "persist_mode": (
        lambda c: c.get("persist_mode", "default") not in ("", "default"),
        "confirmed writes would be lost when the server dies",
    ),
}


# To a reader only these matter.
_UNREADABLE: Final = ("subject_transform",)


def check(
    bucket: str, config: Mapping[str, Any], version: str, *, read_only: bool = False
) -> Features:
    """What the bucket can do, if it can be used.

    Args:
        bucket: Its name.
        config: Its configuration as the server echoed it.
        version: Of the connected server, for the text if the echo has none.
        read_only: Nothing is to be written: what only a writer needs may be missing.

    Raises:
        UnsupportedServerError: The server that has it is older than 2.11.
        UnsuitableBucketError: A setting does not fit.
    """
    metadata = config.get("metadata") or {}
    if int(metadata.get(_LEVEL_KEY, 0)) < LEVEL_TTL:
        raise too_old(str(metadata.get(_VERSION_KEY, version)))
    for setting, (unfit, consequence) in _UNFIT.items():
        if unfit(config) and (not read_only or setting in _UNREADABLE):
            raise _unsuitable(bucket, setting, config.get(setting), consequence)
    origin = _origin(bucket, config.get("mirror") or {})
    if origin is None and f"$KV.{bucket}.>" not in (config.get("subjects") or ()):
        raise _unsuitable(
            bucket, "subjects", config.get("subjects"), "keys would not be stored"
        )
    return Features(
        direct=bool(config.get("allow_direct")),
        replicated=int(config.get("num_replicas", 1)) > 1,
        history=int(config.get("max_msgs_per_subject", -1)),
        ttl=bool(config.get("allow_msg_ttl")),
        fast=bool(config.get("allow_batched")),
        max_value_size=int(config.get("max_msg_size", -1)),
        file=config.get("storage", "file") == "file",
        origin=origin,
    )


def _origin(bucket: str, mirror: Mapping[str, Any]) -> str | None:
    """The bucket that is mirrored, or None.

    Raises:
        UnsuitableBucketError: It mirrors no bucket, or only a part of one.
    """
    if not mirror:
        return None
    name, prefix = str(mirror.get("name", "")), stream_name("")
    parts = ("filter_subject", "subject_transforms", "opt_start_seq", "opt_start_time")
    if not name.startswith(prefix) or any(mirror.get(part) for part in parts):
        raise _unsuitable(
            bucket, "mirror", dict(mirror), "it is not the whole of another bucket"
        )
    return name.removeprefix(prefix)


def too_old(version: str) -> UnsupportedServerError:
    """The error of a server that lacks what this package needs."""
    return UnsupportedServerError(
        f"nats-server {version} is too old: upgrade it to {NEEDED_SERVER} or newer",
        version=version,
        needed=NEEDED_SERVER,
    )


def _unsuitable(
    bucket: str, setting: str, value: Any, consequence: str
) -> UnsuitableBucketError:
    return UnsuitableBucketError(
        f"bucket {bucket!r} has {setting} = {value!r}: {consequence}; it was left as "
        f"it is, change the setting or name another bucket",
        bucket=bucket,
        setting=setting,
    )
