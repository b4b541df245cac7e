"""The saver's removals and repairs, asynchronous and blocking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from jskv_saver.checkpoint.ages import Age, parse_count, parse_moment
from jskv_saver.checkpoint.arguments import parse_call, parse_flag
from jskv_saver.checkpoint.choosing import Choose, all_but_latest, all_but_newest
from jskv_saver.checkpoint.config import parse_ids, parse_text, parse_thread_id
from jskv_saver.checkpoint.core import SaverCore
from jskv_saver.checkpoint.mending import Mender
from jskv_saver.checkpoint.reports import PrunedNamespace, PruneReport
from jskv_saver.checkpoint.retention import Progress, Retention
from jskv_saver.checkpoint.verifying import Verifier, VerifyReport
from jskv_saver.document.findings import SETTLE, check_settle
from jskv_saver.errors import (
    CorruptDocumentError,
    InvalidRequestError,
    JskvError,
    UnsupportedFormatError,
)

_STRATEGIES = ("keep_latest", "delete", "delete_all")


class Upkeep(SaverCore):
    """What keeps threads small and whole; beside running graphs."""

    # LangGraph declares that a prune gives nothing: a more precise type than `Any`
    # would contradict it.
    async def aprune(
        self,
        thread_ids: Sequence[str],
        *,
        strategy: str = "keep_latest",
        keep_last: int | None = None,
        older_than: Age | datetime | None = None,
        checkpoint_ns: str | None = None,
        dry_run: bool = False,
    ) -> Any:
        """Prune threads, beside running graphs.

        With several conditions a checkpoint goes only if all of them hold. The latest
        one of a namespace stays in any case, and so does what the delta channels of
        those that stay need of their ancestors. Pins are not looked at.

        Args:
            thread_ids: The threads; unknown ones are left out.
            strategy: "keep_latest" keeps the latest checkpoints of each namespace;
                "delete" or "delete_all" erases all, and takes no condition.
            keep_last: How many of the latest stay in each namespace; 1 if None.
            older_than: Only what was stored before this moment goes: a datetime, or
                how long ago, in seconds or as a timedelta. What counts is when a
                checkpoint was stored, by the clock of who stored it.
            checkpoint_ns: Only this namespace of each thread; "" is the root.
            dry_run: Remove nothing, only tell what would go.

        Returns:
            A `PruneReport`.

        Raises:
            InvalidRequestError: A strategy or a condition is none, or `thread_ids` is
                a single one.
        """
        return await self._portal.arun(
            self._prune,
            thread_ids,
            strategy,
            keep_last,
            older_than,
            checkpoint_ns,
            dry_run,
        )

    def prune(
        self,
        thread_ids: Sequence[str],
        *,
        strategy: str = "keep_latest",
        keep_last: int | None = None,
        older_than: Age | datetime | None = None,
        checkpoint_ns: str | None = None,
        dry_run: bool = False,
    ) -> Any:
        """As `aprune`, blocking."""
        return self._portal.run(
            self._prune,
            thread_ids,
            strategy,
            keep_last,
            older_than,
            checkpoint_ns,
            dry_run,
        )

    async def arepair(
        self,
        thread_ids: Sequence[str] | None = None,
        *,
        on_progress: Progress | None = None,
    ) -> None:
        """Mend indexes and remove what died half-way, beside running graphs.

        Calls that died leave bytes that nothing refers to, and removals that are not
        finished. No checkpoint is removed but those whose removal had begun; writes
        that came before their checkpoint stay. Where nothing is left, only reads. One
        thread that is damaged does not keep the others from being repaired.

        Args:
            thread_ids: The threads; unknown ones are left out. None: all of this saver.
            on_progress: Is called with how many threads are done, and of how many; on
                the saver's event loop.

        Raises:
            InvalidRequestError: `thread_ids` is a single one.
            CorruptDocumentError: A thread is damaged; it was left as it is.
        """
        await self._portal.arun(self._repair, thread_ids, on_progress)

    def repair(
        self,
        thread_ids: Sequence[str] | None = None,
        *,
        on_progress: Progress | None = None,
    ) -> None:
        """As `arepair`, blocking."""
        self._portal.run(self._repair, thread_ids, on_progress)

    async def averify(
        self,
        thread_ids: Sequence[str] | None = None,
        *,
        settle: float = SETTLE,
        on_progress: Progress | None = None,
    ) -> VerifyReport:
        """Look at all that is stored of threads, beside running graphs.

        Every checkpoint is whole, every index entry right, every stored byte is
        reachable, and has its checksum: or it is in the report. Nothing is written, and
        no value is deserialised. All parts are read.

        Args:
            thread_ids: The threads. None: all of this saver.
            settle: Seconds for which something must be wrong to be found: what a
                writer is about to put right is no finding.
            on_progress: As for `arepair`.

        Raises:
            InvalidRequestError: `thread_ids` is a single one, or `settle` is none.
        """
        return await self._portal.arun(self._verify, thread_ids, settle, on_progress)

    def verify(
        self,
        thread_ids: Sequence[str] | None = None,
        *,
        settle: float = SETTLE,
        on_progress: Progress | None = None,
    ) -> VerifyReport:
        """As `averify`, blocking."""
        return self._portal.run(self._verify, thread_ids, settle, on_progress)

    async def aenforce_retention(
        self,
        retention: Retention,
        *,
        dry_run: bool = False,
        on_progress: Progress | None = None,
    ) -> PruneReport:
        """Remove what a retention does not keep, of all threads of this saver.

        Nothing is removed but where this is called. Pinned threads are left alone. A
        thread goes as a whole, and not if anybody uses it meanwhile: then it is not in
        the report, and the next call looks at it again. One on which somebody has a
        lease does not go. One that is damaged does not keep the others from going.

        Args:
            retention: What to keep.
            dry_run: Remove nothing, only tell what would go.
            on_progress: Is called with how many threads are done, and of how many; on
                the saver's event loop.

        Raises:
            InvalidRequestError: `retention` is none.
            CorruptDocumentError: A thread is damaged; the others are done. With
                `dry_run` the report names it.
        """
        return await self._portal.arun(self._enforce, retention, dry_run, on_progress)

    def enforce_retention(
        self,
        retention: Retention,
        *,
        dry_run: bool = False,
        on_progress: Progress | None = None,
    ) -> PruneReport:
        """As `aenforce_retention`, blocking."""
        return self._portal.run(self._enforce, retention, dry_run, on_progress)

    async def apin(self, thread_id: str, name: str = "pin") -> None:
        """Pin a thread: no retention touches it. Idempotent.

        `prune`, `delete_thread` and `delete_for_runs` do what they are told all the
        same; the pins of a thread go with it.

        Args:
            thread_id: The thread.
            name: Who or what pins it: several may, each with a name of its own.

        Raises:
            DocumentNotFoundError: The thread has no checkpoint.
            UnknownOutcomeError: An answer was lost; the call may be repeated.
            InvalidRequestError: The name is empty, or cannot be stored.
        """
        await self._portal.arun(
            self._keeper.pins.pin, parse_thread_id(thread_id), _parse_name(name)
        )

    def pin(self, thread_id: str, name: str = "pin") -> None:
        """As `apin`, blocking."""
        self._portal.run(
            self._keeper.pins.pin, parse_thread_id(thread_id), _parse_name(name)
        )

    async def aunpin(self, thread_id: str, name: str | None = None) -> None:
        """Remove a pin of a thread, or all of them. Idempotent."""
        await self._portal.arun(self._unpin, thread_id, name)

    def unpin(self, thread_id: str, name: str | None = None) -> None:
        """As `aunpin`, blocking."""
        self._portal.run(self._unpin, thread_id, name)

    async def apinned(self) -> Mapping[str, Sequence[str]]:
        """The pinned threads of this saver, each with the names of its pins."""
        return await self._portal.arun(self._keeper.pins.of)

    def pinned(self) -> Mapping[str, Sequence[str]]:
        """As `apinned`, blocking."""
        return self._portal.run(self._keeper.pins.of)

    async def _unpin(self, thread_id: str, name: str | None) -> None:
        await self._keeper.pins.unpin(
            parse_thread_id(thread_id), None if name is None else _parse_name(name)
        )

    async def _enforce(
        self, retention: Retention, dry_run: bool, on_progress: Progress | None
    ) -> PruneReport:
        if not isinstance(retention, Retention):
            raise InvalidRequestError(
                "enforce_retention needs a Retention, such as Retention(keep_last=10), "
                f"not {retention!r:.80}"
            )
        return await self._keeper.enforce(
            retention,
            datetime.now(UTC),
            look=parse_flag("dry_run", dry_run),
            on_progress=parse_call("on_progress", on_progress),
        )

    async def _prune(
        self,
        thread_ids: Sequence[str],
        strategy: str,
        keep_last: int | None,
        older_than: Age | datetime | None,
        ns: str | None,
        dry_run: bool,
    ) -> PruneReport:
        threads = parse_ids("thread_ids", thread_ids)
        if strategy not in _STRATEGIES:
            raise InvalidRequestError(
                f"strategy must be one of {_STRATEGIES}, not {strategy!r}"
            )
        parse_flag("dry_run", dry_run)
        choose = _chooser(keep_last, older_than)
        ns = None if ns is None else parse_text("checkpoint_ns", ns)
        if strategy != "keep_latest":
            if (keep_last, older_than, ns) != (None, None, None):
                raise InvalidRequestError(
                    f"strategy {strategy!r} erases whole threads; keep_last, "
                    "older_than and checkpoint_ns go with 'keep_latest'"
                )
            if not dry_run:
                for thread in threads:
                    await self._pruner.delete_thread(thread)
            return PruneReport(dry_run, erased=tuple(threads))
        pruned: list[PrunedNamespace] = []
        for thread in threads:
            pruned += await self._pruner.prune(thread, choose, ns, look=dry_run)
        return PruneReport(dry_run, tuple(pruned))

    async def _repair(
        self, thread_ids: Sequence[str] | None, on_progress: Progress | None
    ) -> None:
        parse_call("on_progress", on_progress)
        verifier, mender = Verifier(self._partition, 0), Mender(self._partition)
        if thread_ids is None:
            threads = await verifier.threads()
        else:
            threads = parse_ids("thread_ids", thread_ids)
        damaged: list[JskvError] = []
        for done, thread in enumerate(threads, 1):
            try:
                await mender.repair(thread)
            except (CorruptDocumentError, UnsupportedFormatError) as exc:
                damaged.append(exc)
            if on_progress is not None:
                on_progress(done, len(threads))
        if damaged:
            raise damaged[0]

    async def _verify(
        self,
        thread_ids: Sequence[str] | None,
        settle: float,
        on_progress: Progress | None,
    ) -> VerifyReport:
        parse_call("on_progress", on_progress)
        verifier = Verifier(self._partition, check_settle(settle))
        if thread_ids is None:
            threads = await verifier.threads()
        else:
            threads = parse_ids("thread_ids", thread_ids)
        return await verifier.verify(threads, on_progress)


def _parse_name(name: str) -> str:
    if name == "":
        raise InvalidRequestError("the name of a pin must not be empty")
    return parse_text("name", name)


def _chooser(keep_last: int | None, older_than: Age | datetime | None) -> Choose:
    if keep_last is None and older_than is None:
        return all_but_latest
    before = None
    if older_than is not None:
        before = parse_moment("older_than", older_than, datetime.now(UTC))
    count = 1 if keep_last is None else parse_count("keep_last", keep_last)
    return all_but_newest(count, before)
