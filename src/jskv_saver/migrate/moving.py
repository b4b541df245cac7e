"""Moving threads: compare, copy what is missing, read it back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from langgraph.checkpoint.base import WRITES_IDX_MAP, BaseCheckpointSaver

from jskv_saver.errors import (
    InvalidRequestError,
    JskvError,
    StoreClosedError,
    StoreUnavailableError,
    UnknownOutcomeError,
)
from jskv_saver.migrate.comparing import contains, difference, same, same_writes
from jskv_saver.migrate.lineage import Lineage
from jskv_saver.migrate.report import Report, ThreadReport
from jskv_saver.migrate.source import (
    Item,
    Row,
    Write,
    config_of,
    load,
    rows_of,
    threads_of,
)
from jskv_saver.migrate.verbatim import passing

Saver = BaseCheckpointSaver[Any]

# Not about one thread: the others would meet the same.
_ENDS_ALL: Final = (StoreClosedError, StoreUnavailableError, UnknownOutcomeError)
# What serialisers and savers raise for a value that they cannot take.
_OF_A_THREAD: Final = (
    JskvError,
    LookupError,
    NotImplementedError,
    TypeError,
    ValueError,
)


async def migrate(
    source: Saver,
    target: Saver,
    *,
    apply: bool = False,
    thread_ids: Iterable[str] | None = None,
    on_thread: Callable[[ThreadReport, int], None] | None = None,
) -> Report:
    """Copy threads from one saver to another, with all their namespaces and writes.

    Only LangGraph's public methods write. Values pass through as the bytes they are,
    where both savers use LangGraph's serialiser. Nothing is changed or removed
    that a saver has; a thread that the target has otherwise is left alone. What is
    there already is compared, so that a call that was interrupted is simply repeated.
    Nobody should write to either meanwhile.

    Args:
        source: Where from.
        target: Where to. One of this package's should have `on_conflict="fork"`.
        apply: Write. False: compare and tell, nothing is written.
        thread_ids: Only these threads; None: all of them.
        on_thread: Called after each thread with its report and how many are left.

    Returns:
        What was done with each thread.

    Raises:
        InvalidRequestError: Source and target are one.
        StoreUnavailableError: A server of this package's does not answer. What others
            raise for theirs comes through.
    """
    if source is target:
        raise InvalidRequestError("source and target are one and the same saver")
    if isinstance(thread_ids, str):
        raise TypeError("thread_ids must be a sequence of ids, not a single str")
    ours, theirs = passing(source), passing(target)
    # An id may have been given as a number, as LangGraph takes it.
    chosen = None if thread_ids is None else [str(id) for id in thread_ids]
    threads = await threads_of(ours) if chosen is None else chosen
    reports: list[ThreadReport] = []
    for thread in threads:
        reports.append(await _report(ours, theirs, thread, apply))
        if on_thread is not None:
            on_thread(reports[-1], len(threads) - len(reports))
    return Report(apply, reports)


async def _report(
    source: Saver, target: Saver, thread: str, apply: bool
) -> ThreadReport:
    move = _Move(source, target, thread)
    try:
        return await move.run(apply)
    except _ENDS_ALL:
        raise
    except _OF_A_THREAD as exc:
        why = f"{type(exc).__name__}: {exc}"
        return move.report("failed", why)


class _Move:
    """One thread on its way."""

    def __init__(self, source: Saver, target: Saver, thread: str) -> None:
        self._source = source
        self._target = target
        self._thread = thread
        self.rows: list[Row] = []
        self.missing: list[Row] = []
        self._lineage = Lineage(source, target, self._load, ())

    async def run(self, apply: bool) -> ThreadReport:
        self.rows = await rows_of(self._source, self._thread)
        self._known = {(row.ns, row.id): row for row in self.rows}
        self._lineage = Lineage(self._source, self._target, self._load, self.rows)
        if why := await self._compare():
            return self.report("diverged", why)
        if not self.rows:
            return self.report("failed", "the source has no such thread")
        if not self.missing:
            return self.report("same")
        if not apply:
            return self.report("pending")
        for row in self.missing:
            await self._copy(await self._lineage.load(row))
        if why := await self._verify():
            return self.report("failed", why)
        return self.report("copied")

    def report(self, outcome: Any, why: str = "") -> ThreadReport:
        return ThreadReport(
            self._thread,
            outcome,
            len(self.rows),
            len(self.missing),
            len(self._lineage.healed),
            why,
        )

    async def _load(self, row: Row) -> Item:
        return await load(self._source, self._thread, row)

    async def _target_rows(self) -> dict[tuple[str, str], Row]:
        rows = await rows_of(self._target, self._thread)
        return {(row.ns, row.id): row for row in rows}

    async def _compare(self) -> str | None:
        """Find what is missing; what the target has and the source has not, or None."""
        there = await self._target_rows()
        for ns, id in sorted(there.keys() - self._known.keys()):
            return (
                f"checkpoint {id!r}{_of(ns)} is in the target only: the thread went on "
                "there, or is another one"
            )
        for row in self.rows:
            found = there.get((row.ns, row.id))
            if found is None:
                self.missing.append(row)
                continue
            item = await self._lineage.load(row)
            other = await load(self._target, self._thread, found)
            if why := difference(item, other, self._lineage.snapshots):
                return f"checkpoint {row.id!r}{_of(row.ns)} is another one: {why}"
            if not contains(item.writes, other.writes):
                return (
                    f"checkpoint {row.id!r}{_of(row.ns)} has pending writes in the "
                    "target that the source has not: the thread went on there"
                )
            if not same_writes(item, other):
                self.missing.append(row)
        return None

    async def _copy(self, item: Item) -> None:
        """Writes first: a reader never finds the checkpoint without them."""
        row = item.row
        for task, path, writes in _calls(item.writes):
            await self._target.aput_writes(
                config_of(self._thread, row), writes, task, path
            )
        config = config_of(self._thread, Row(row.ns, row.parent or "", None))
        if row.parent is None:
            del config["configurable"]["checkpoint_id"]
        await self._target.aput(
            config, item.checkpoint, item.metadata, self._changed(row)
        )

    def _changed(self, row: Row) -> dict[str, Any]:
        """The channels whose versions are not the parent's."""
        parent = self._known.get((row.ns, row.parent or ""))
        before = self._lineage.channels(parent) if parent else {}
        return {
            name: version
            for name, version in self._lineage.channels(row).items()
            if before.get(name) != version
        }

    async def _verify(self) -> str | None:
        """Read both sides again; the first difference, or None."""
        there = await self._target_rows()
        for row in self.missing:
            found = there.get((row.ns, row.id))
            if found is None:
                return f"checkpoint {row.id!r}{_of(row.ns)} is not there after all"
            item = await self._lineage.load(row)
            other = await load(self._target, self._thread, found)
            why = difference(item, other, self._lineage.snapshots)
            if not why and not same_writes(item, other):
                why = "its pending writes are not the same"
            if why:
                return f"read back, checkpoint {row.id!r}{_of(row.ns)} differs: {why}"
        return await self._verify_histories()

    async def _verify_histories(self) -> str | None:
        """What delta channels are rebuilt from, at the newest of each namespace."""
        newest = {row.ns: row for row in sorted(self.rows, key=lambda row: row.id)}
        for ns, row in newest.items():
            channels = (await self._load(row)).deltas
            histories = [
                await saver.aget_delta_channel_history(
                    config=config_of(self._thread, row), channels=channels
                )
                for saver in (self._source, self._target)
            ]
            if not same(*map(dict, histories)):
                return f"the history of delta channels{_of(ns)} differs"
        return None


def _calls(
    writes: Sequence[Write],
) -> Iterable[tuple[str, str, list[tuple[str, Any]]]]:
    """Tasks with their paths and writes; special ones, which replace, by themselves."""
    calls: dict[tuple[str, bool], list[Write]] = {}
    for write in writes:
        calls.setdefault((write.task, write.channel in WRITES_IDX_MAP), []).append(
            write
        )
    for (task, _), of_task in calls.items():
        yield task, of_task[0].path, [(w.channel, w.value) for w in of_task]


def _of(ns: str) -> str:
    return f" of namespace {ns!r}" if ns else ""
