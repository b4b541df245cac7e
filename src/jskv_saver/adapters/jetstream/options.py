"""How a bucket is made and reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

DEFAULT_BUCKET: Final = "jskv"
DEFAULT_TIMEOUT: Final = 5.0


@dataclass(frozen=True, slots=True)
class Republish:
    """Publish each stored message again (ADR-8, ADR-28).

    Attributes:
        source: Subject filter of the messages to publish again.
        destination: Where to; may refer to the source's tokens.
        headers_only: Leave the values out.
    """

    source: str
    destination: str
    headers_only: bool = False


@dataclass(frozen=True, slots=True)
class BucketOptions:
    """What a bucket that has to be made is made with; an existing one stays as it is.

    Attributes:
        description: Free text, shown by `nats kv info`.
        storage: Where the server keeps it.
        replicas: 1 to 5 copies in a cluster.
        placement_cluster: Name of the cluster to place it in.
        placement_tags: Server tags to place it by.
        max_value_size: Bytes of one stored value, headers included; -1: no limit.
        max_bytes: Bytes of the whole bucket; -1: no limit.
        compression: Of the file store.
        metadata: The bucket's own metadata.
        republish: Publish stored messages again.
        domain: The JetStream domain that the bucket is in.
        api_prefix: A prefix in the place of `$JS.API`, where an account imports the
            API under another name. Excludes `domain`. Writes go to `$KV.<bucket>`.
        timeout: Seconds that one call may take.
        create: Make the bucket if there is none; False: that is an error.
    """

    description: str = ""
    storage: Literal["file", "memory"] = "file"
    replicas: int = 1
    placement_cluster: str | None = None
    placement_tags: tuple[str, ...] = ()
    max_value_size: int = -1
    max_bytes: int = -1
    compression: Literal["s2", "none"] = "s2"
    metadata: Mapping[str, str] = field(default_factory=dict)
    republish: Republish | None = None
    domain: str | None = None
    api_prefix: str | None = None
    timeout: float = DEFAULT_TIMEOUT
    create: bool = True
