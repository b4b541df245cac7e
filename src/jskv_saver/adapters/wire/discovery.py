"""`$SRV.PING`, `INFO` and `STATS` (ADR-32), for `nats service ls/info/stats`. Pure.

In the forms of `nats.micro`. Its own service is not used: it answers to any subject
that a request names, calls the handlers of an endpoint one at a time, and tells a
caller the text of any exception.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from nats.micro.service import (
    NAME_REGEX,
    SEMVER_REGEX,
    EndpointInfo,
    EndpointStats,
    ServiceInfo,
    ServicePing,
    ServiceStats,
)

from jskv_saver.adapters.wire.subjects import endpoint_subject
from jskv_saver.errors import InvalidRequestError

CONTROL: Final = "$SRV"


@dataclass(slots=True)
class Counted:
    """What happened at one endpoint.

    Attributes:
        requests: How many came.
        errors: How many were answered with an error.
        nanoseconds: How long they took together.
        last_error: The code and the class of the last error.
    """

    requests: int = 0
    errors: int = 0
    nanoseconds: int = 0
    last_error: str = ""


@dataclass(slots=True)
class Identity:
    """One service as it shows itself.

    Attributes:
        id: Of this one among those of the same name.
        name: Letters, digits, `-` and `_`.
        version: A semantic version.
        description: What it is, for people.
        metadata: Whatever else.
        queue_group: Of its endpoints.
        started: When.
        endpoints: By name.
    """

    id: str
    name: str
    version: str
    description: str
    metadata: Mapping[str, str]
    queue_group: str
    endpoints: Mapping[str, Counted]
    started: datetime = field(default_factory=lambda: datetime.now(UTC))

    def __post_init__(self) -> None:
        """Refuse what `nats service` could not show.

        Raises:
            InvalidRequestError: The name or the version has not its form.
        """
        if not NAME_REGEX.match(self.name):
            raise InvalidRequestError(
                f"the service cannot be called {self.name!r}: letters, digits, - and _"
            )
        if not SEMVER_REGEX.match(self.version):
            raise InvalidRequestError(f"{self.version!r} is no semantic version")

    def subjects(self) -> Iterable[str]:
        """What is asked of this service, of all of its name, and of all services."""
        for verb in ("PING", "INFO", "STATS"):
            yield f"{CONTROL}.{verb}"
            yield f"{CONTROL}.{verb}.{self.name}"
            yield f"{CONTROL}.{verb}.{self.name}.{self.id}"

    def answer(self, subject: str) -> bytes:
        """The answer to a request on one of the subjects."""
        verb = subject.split(".")[1]
        made = {"PING": self._ping, "INFO": self._info, "STATS": self._stats}[verb]()
        return json.dumps(made).encode()

    def _ping(self) -> dict[str, Any]:
        return ServicePing(
            self.id, self.name, self.version, dict(self.metadata)
        ).to_dict()

    def _info(self) -> dict[str, Any]:
        return ServiceInfo(
            name=self.name,
            id=self.id,
            version=self.version,
            description=self.description,
            endpoints=[
                EndpointInfo(name, endpoint_subject(name), self.queue_group)
                for name in self.endpoints
            ],
            metadata=dict(self.metadata),
        ).to_dict()

    def _stats(self) -> dict[str, Any]:
        return ServiceStats(
            id=self.id,
            name=self.name,
            version=self.version,
            started=self.started,
            endpoints=[
                EndpointStats(
                    name=name,
                    subject=endpoint_subject(name),
                    queue_group=self.queue_group,
                    num_requests=each.requests,
                    num_errors=each.errors,
                    processing_time=each.nanoseconds,
                    average_processing_time=each.nanoseconds // (each.requests or 1),
                    last_error=each.last_error,
                )
                for name, each in self.endpoints.items()
            ],
            metadata=dict(self.metadata),
        ).to_dict()
