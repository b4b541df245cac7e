"""The saver's methods that accept requests, async and blocking."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from langchain_core.runnables import RunnableConfig

from jskv_saver.checkpoint.admissions import Admission, Stored
from jskv_saver.checkpoint.arguments import parse_flag
from jskv_saver.checkpoint.config import parse_id, parse_ref, parse_thread_id
from jskv_saver.checkpoint.core import SaverCore
from jskv_saver.checkpoint.values import Typed
from jskv_saver.errors import InvalidRequestError


class AdmittingMethods(SaverCore):
    """Tells "never accepted" from "accepted, and lost before the first checkpoint"."""

    async def aadmit(
        self, config: RunnableConfig, request: Any, *, request_id: str | None = None
    ) -> Admission:
        """Accept a request before its graph runs. The same id twice: accepted once.

        When this has returned, the request is stored, and `aadmitted` lists it until
        its thread has a younger checkpoint. It goes with its thread.

        Args:
            config: Names the thread.
            request: What was asked, of any type that the serialiser takes; at most
                `store.limits.data` bytes serialised.
            request_id: Names the request; None: a new id, so that it is new.

        Returns:
            The admission; `new` says whether this call accepted it.

        Raises:
            InvalidRequestError: There is no thread id, or the request id is no text.
            VersionConflictError: This id was accepted with another request.
            DocumentTooLargeError: The request is too large; nothing was sent.
            UnknownOutcomeError: The answer was lost, and it is not there (yet): call
                again with the same id.
        """
        stored = await self._portal.arun(
            self._admissions.admit,
            *self._request(config, request, request_id),
            self.serde,
        )
        return stored.given(self.serde)

    def admit(
        self, config: RunnableConfig, request: Any, *, request_id: str | None = None
    ) -> Admission:
        """As `aadmit`, blocking."""
        stored = self._portal.run(
            self._admissions.admit,
            *self._request(config, request, request_id),
            self.serde,
        )
        return stored.given(self.serde)

    async def aadmitted(
        self, thread_id: str | None = None, *, begun: bool = False
    ) -> Sequence[Admission]:
        """The requests that were accepted and have not begun, oldest first.

        One has begun when its thread has a checkpoint in the root namespace that is
        younger than it: with `durability="exit"` that is only when its run has ended.
        Requests that wait for one thread begin together.

        Args:
            thread_id: Of this thread only; None: of all threads of this namespace and
                agent.
            begun: Those too that have begun; each says whether it has.
        """
        return self._admitted(
            await self._portal.arun(self._list_admitted, thread_id, begun)
        )

    def admitted(
        self, thread_id: str | None = None, *, begun: bool = False
    ) -> Sequence[Admission]:
        """As `aadmitted`, blocking."""
        return self._admitted(self._portal.run(self._list_admitted, thread_id, begun))

    def _request(
        self, config: RunnableConfig, request: Any, request_id: str | None
    ) -> tuple[str, str, Typed]:
        """Thread, id and serialised request, before anything yields."""
        id = uuid4().hex if request_id is None else parse_id("request_id", request_id)
        if not id:
            raise InvalidRequestError("request_id must be a non-empty str, or None")
        return parse_ref(config).thread, id, Typed(*self.serde.dumps_typed(request))

    async def _list_admitted(self, thread_id: str | None, begun: bool) -> list[Stored]:
        thread = None if thread_id is None else parse_thread_id(thread_id)
        return await self._admissions.admitted(thread, begun=parse_flag("begun", begun))

    def _admitted(self, found: Sequence[Stored]) -> Sequence[Admission]:
        return [each.given(self.serde) for each in found]
