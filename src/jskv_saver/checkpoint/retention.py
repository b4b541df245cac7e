"""Retention: which threads go, and how many checkpoints of the others stay."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from jskv_saver.checkpoint.ages import Age, moment_before, parse_age, parse_count
from jskv_saver.checkpoint.choosing import all_but_latest, all_but_newest
from jskv_saver.checkpoint.expiry import Expirer, Survey
from jskv_saver.checkpoint.layout import EPOCH, RECORDS, THREADS, Scope
from jskv_saver.checkpoint.partition import Partition, scope_of
from jskv_saver.checkpoint.parts import PAGE
from jskv_saver.checkpoint.pins import Pins
from jskv_saver.checkpoint.reports import PruneReport
from jskv_saver.document.model import path_of
from jskv_saver.errors import (
    CorruptDocumentError,
    InvalidRequestError,
    JskvError,
    UnsupportedFormatError,
)

Progress: TypeAlias = Callable[[int, int], None]
"""Is told how many threads are done, and of how many."""
_DAMAGE: Final = (CorruptDocumentError, UnsupportedFormatError)
"""Of one thread: no reason to keep the others for ever."""


@dataclass(frozen=True, slots=True)
class Retention:
    """What is kept of the threads of a saver. At least one must be given.

    Attributes:
        keep_last: How many of the latest checkpoints stay in each checkpoint namespace,
            beside what their delta channels need.
        idle: A thread that was not used for so long goes as a whole: no checkpoint,
            write or admission. In seconds, or a `timedelta`.
        max_age: A thread that began so long ago goes as a whole.

    Raises:
        InvalidRequestError: None is given, or one is none.
    """

    keep_last: int | None = None
    idle: Age | None = None
    max_age: Age | None = None

    def __post_init__(self) -> None:
        """Refuse what is none."""
        if (self.keep_last, self.idle, self.max_age) == (None, None, None):
            raise InvalidRequestError(
                "a Retention needs keep_last, idle or max_age; with none it would keep "
                "everything"
            )
        if self.keep_last is not None:
            parse_count("keep_last", self.keep_last)
        for name, age in (("idle", self.idle), ("max_age", self.max_age)):
            if age is not None and parse_age(name, age) <= timedelta(0):
                raise InvalidRequestError(f"{name} must be more than nothing: {age!r}")


@dataclass(frozen=True, slots=True)
class _Limits:
    """A retention at a moment: a thread goes if it is older than one of them."""

    idle: datetime | None
    begun: datetime | None

    def meets(self, first: datetime | None, last: datetime | None) -> bool:
        """Whether a thread that began and was used last at these moments goes.

        One of which nothing tells is what a removal left that died.
        """
        if first is None and last is None:
            return True
        if self.idle is not None and last is not None and last < self.idle:
            return True
        return self.begun is not None and first is not None and first < self.begun

    def may_meet(self, begun: Sequence[datetime], used: Sequence[datetime]) -> bool:
        """The same by some of the moments; where none is known it may."""
        if self.idle is not None and (not used or max(used) < self.idle):
            return True
        return self.begun is not None and (not begun or min(begun) < self.begun)


class Keeper:
    """Carries out retentions in a partition.

    Attributes:
        pins: The pins there.
    """

    def __init__(self, partition: Partition) -> None:
        self._partition = partition
        self._store = partition.store
        self._namespace = partition.namespace
        self._expirer = Expirer(partition)
        self.pins = Pins(partition)

    async def enforce(
        self,
        retention: Retention,
        now: datetime,
        *,
        look: bool = False,
        on_progress: Progress | None = None,
    ) -> PruneReport:
        """Remove what a retention does not keep, or only look what that is.

        Raises:
            CorruptDocumentError: A thread is damaged; the others were looked at.
            UnsupportedFormatError: One was written by a newer release; likewise.
        """
        limits = _Limits(
            *(
                None if age is None else moment_before(parse_age("age", age), now)
                for age in (retention.idle, retention.max_age)
            )
        )
        threads = await self._threads()
        pinned = (await self.pins.of()).keys() & threads.keys()
        report = PruneReport(look, pinned=tuple(sorted(pinned)))
        names = sorted(threads.keys() - pinned)
        damaged: list[JskvError] = []
        for at in range(0, len(names), PAGE):
            page = {name: threads[name] for name in names[at : at + PAGE]}
            try:
                old = await self._perhaps_old(page, limits)
            except _DAMAGE:
                # The closer look at each says which one it is.
                old = set(page)
            for done, thread in enumerate(page, at + 1):
                try:
                    report = await self._keep(
                        report, thread, page[thread], retention, limits, thread in old
                    )
                except _DAMAGE as exc:
                    damaged.append(exc)
                    report = replace(report, damaged=(*report.damaged, thread))
                if on_progress is not None:
                    on_progress(done, len(names))
        if damaged and not look:
            raise damaged[0]
        return report

    async def _keep(
        self,
        report: PruneReport,
        thread: str,
        scopes: Mapping[Scope, list[str]],
        retention: Retention,
        limits: _Limits,
        perhaps_old: bool,
    ) -> PruneReport:
        """Carry it out for one thread; the report with what that gave."""
        if perhaps_old and (gone := await self._expire(thread, limits, report.dry_run)):
            erased = (thread,) if gone.records else ()
            return replace(report, erased=(*report.erased, *erased))
        count = retention.keep_last
        if count is None or all(len(ids) <= count for ids in scopes.values()):
            return report
        pruned = await self._expirer.prune(
            thread, all_but_newest(count), look=report.dry_run
        )
        return replace(report, pruned=(*report.pruned, *pruned))

    async def _expire(self, thread: str, limits: _Limits, look: bool) -> Survey | None:
        """Remove a thread that is too old; what it was, or None: it stays."""
        expirer = self._expirer
        survey = await expirer.survey(thread)
        for _ in range(2):
            old = bool(survey.scopes) and limits.meets(survey.first, survey.last)
            if survey.is_held or not old:
                return None
            if look:
                return survey
            if not expirer.is_large(survey):
                return survey if await expirer.expire(thread, survey) else None
            # One epoch must name all that is left.
            await expirer.prune(thread, all_but_latest)
            survey = await expirer.survey(thread)
        return None

    async def _threads(self) -> dict[str, dict[Scope, list[str]]]:
        """The ids of all checkpoints, by thread and namespace, ascending."""
        found: dict[str, dict[Scope, list[str]]] = {}
        for id in await self._store.ids(
            self._namespace, RECORDS, within=(self._partition.agent,)
        ):
            scope, last = scope_of(id), path_of(id)[-1]
            ids = found.setdefault(scope.thread, {}).setdefault(scope, [])
            if last != EPOCH:
                ids.append(last)
        return found

    async def _perhaps_old(
        self, threads: Mapping[str, Mapping[Scope, list[str]]], limits: _Limits
    ) -> set[str]:
        """The threads that a closer look may find too old, by few reads for many.

        By the times of the greatest ids: who has used a thread after these shows in
        the closer look.
        """
        reads = [
            key
            for scopes in threads.values()
            for scope, ids in scopes.items()
            for key in _telling(scope, ids, limits)
        ]
        times: dict[str, dict[str, list[datetime]]] = {}
        for at in range(0, len(reads), PAGE):
            page = await self._store.get_many(self._namespace, reads[at : at + PAGE])
            for (collection, id), document in page.items():
                by_kind = times.setdefault(path_of(id)[1], {})
                by_kind.setdefault(collection, []).append(document.updated_at)
        return {
            thread
            for thread in threads
            if limits.may_meet(
                times.get(thread, {}).get(THREADS, ()),
                times.get(thread, {}).get(RECORDS, ()),
            )
        }


def _telling(
    scope: Scope, ids: list[str], limits: _Limits
) -> Iterable[tuple[str, tuple[str, ...]]]:
    """The documents whose times say whether a thread may be too old."""
    if ids and limits.idle is not None:
        yield RECORDS, scope.record(ids[-1])
    if limits.begun is not None:
        yield THREADS, scope.prefix
