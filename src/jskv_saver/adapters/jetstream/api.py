"""The JetStream API of one stream: subjects, JSON, errors."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

from jskv_saver._nats.faults import ApiError, error_of
from jskv_saver._nats.requests import Requests
from jskv_saver._nats.waiting import Message, NobodyListensError
from jskv_saver.adapters.jetstream.stream import stream_name
from jskv_saver.errors import (
    BucketNotFoundError,
    JskvError,
    PermissionDeniedError,
    StoreUnavailableError,
)

_DEFAULT_PREFIX: Final = "$JS.API"
_PAUSE: Final = 0.05
_T = TypeVar("_T")


class Api:
    """Calls for one bucket.

    Args:
        requests: Sends them.
        bucket: Name of the bucket.
        domain: JetStream domain.
        api_prefix: In the place of `$JS.API`.
    """

    def __init__(
        self,
        requests: Requests,
        bucket: str,
        *,
        domain: str | None = None,
        api_prefix: str | None = None,
    ) -> None:
        self._requests: Final = requests
        self.bucket: Final = bucket
        self.stream: Final = stream_name(bucket)
        prefix = api_prefix or (f"$JS.{domain}.API" if domain else _DEFAULT_PREFIX)
        self._prefix: Final = prefix
        self.keys = f"$KV.{bucket}."
        """Before a key, in filters and in stored subjects."""
        # A put on the plain subject would go to the near bucket of the same name.
        self.puts: Final = f"{prefix}.{self.keys}" if domain else self.keys
        """Before a key, to write it."""
        self.direct: Final = f"{prefix}.DIRECT.GET.{self.stream}"

    @property
    def direct_key(self) -> str:
        """Before a key, to read it."""
        return f"{self.direct}.{self.keys}"

    def mirrors(self, origin: str) -> None:
        """The stream mirrors another bucket: what it has are that one's subjects."""
        self.keys = f"$KV.{origin}."

    def subject(self, name: str) -> str:
        """The subject of a call."""
        return f"{self._prefix}.{name}"

    async def ask(
        self,
        name: str,
        request: Mapping[str, Any] | None = None,
        *,
        write: bool = False,
    ) -> dict[str, Any]:
        """Call and return the answer, which may hold an `error`.

        Raises:
            StoreUnavailableError: JetStream is not there.
        """
        payload = b"" if request is None else json.dumps(request).encode()
        subject = self.subject(name)
        try:
            msg = await self._requests.request(Message(subject, payload), write=write)
        except NobodyListensError as exc:
            raise StoreUnavailableError(
                f"no JetStream at {self._requests.connection.where}: start that server "
                "with -js; if it has JetStream, then its cluster has no leader now, or "
                f"the domain is another one (nothing answers on {subject!r})"
            ) from exc
        answer: dict[str, Any] = json.loads(msg.data)
        return answer

    async def call(
        self,
        name: str,
        request: Mapping[str, Any] | None = None,
        *,
        write: bool = False,
    ) -> dict[str, Any]:
        """Call on the bucket's stream and return the answer; raise what it refuses."""
        answer = await self.ask(f"{name}.{self.stream}", request, write=write)
        if "error" in answer:
            raise error_of(answer["error"], bucket=self.bucket)
        return answer

    async def config(self) -> Mapping[str, Any] | None:
        """The stream's configuration, None when there is no stream."""
        answer = await self.ask(f"STREAM.INFO.{self.stream}")
        error = answer.get("error")
        if error is None:
            config: Mapping[str, Any] = answer["config"]
            return config
        if error.get("err_code") == ApiError.STREAM_NOT_FOUND:
            return None
        raise error_of(error, bucket=self.bucket)

    async def create(self, config: Mapping[str, Any]) -> Mapping[str, Any]:
        """Make the stream, or return its configuration if another made it meanwhile."""
        # Idempotent, so that a lost answer is no doubt: open again.
        answer = await self.ask(f"STREAM.CREATE.{self.stream}", config)
        if "error" not in answer:
            created: Mapping[str, Any] = answer["config"]
            return created
        present = await self.config()
        if present is None:
            raise error_of(answer["error"], bucket=self.bucket)
        return present

    async def level(self) -> int | None:
        """The API level of the server; None where the user may not ask; 0: none."""
        try:
            answer = await self.ask("INFO")
        except PermissionDeniedError:
            return None
        if "error" in answer:
            raise error_of(answer["error"], bucket=self.bucket)
        return int(answer.get("api", {}).get("level", 0))

    async def again(self, send: Callable[[], Awaitable[_T]]) -> _T:
        """Send what reached nobody, until somebody listens.

        In a cluster nobody does for a moment after a bucket was made, and while its
        leader is elected. It was no attempt: nothing is sent twice.

        Raises:
            BucketNotFoundError: There is no such bucket any more.
            StoreUnavailableError: Nobody listened in time.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._requests.timeout
        while True:
            error = await self.unanswered()
            if isinstance(error, BucketNotFoundError) or loop.time() >= deadline:
                raise error
            try:
                return await send()
            except NobodyListensError:
                await asyncio.sleep(_PAUSE)

    async def unanswered(self) -> JskvError:
        """Why nobody listens on a subject of the bucket."""
        if await self.config() is None:
            return BucketNotFoundError(
                f"bucket {self.bucket!r} is gone", bucket=self.bucket
            )
        return StoreUnavailableError(f"nobody answers for bucket {self.bucket!r}")
