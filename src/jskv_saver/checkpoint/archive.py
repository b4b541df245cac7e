"""The archive of threads: one stream of frames, each with its checksum. Pure.

    JSKV ARCHIVE 1 LF
    frames:  length of the payload   8 bytes, big-endian
             CRC-32 of the payload   4 bytes
             payload                 zlib
    the BLAKE2b-256 of all before it, 32 bytes, after the frame of the end

A payload is, inflated, the length of a layout in 4 bytes, the layout (MessagePack, or
JSON that begins with `[`), and bytes that it cuts up. The layout's first item says what
it is: `thread`, `checkpoint`, `writes` or `end`. A checkpoint's values stand in runs:
of the frame's own bytes, or of the same channel's value in the checkpoint before it in
the archive, if that is of the same thread and namespace. Nothing here is deserialised.

What is newer than this release knows, by the first line or by a frame's kind, is
`UnsupportedFormatError`; what else is not as it was written, `CorruptDocumentError`.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from struct import Struct, error
from typing import Any, BinaryIO, Final
from zlib import crc32

from jskv_saver.checkpoint.archived import (
    ArchivedCheckpoint,
    ArchivedThread,
    ArchivedWrites,
    Item,
    Totals,
)
from jskv_saver.checkpoint.increments import Fresh, Run, plan
from jskv_saver.checkpoint.values import Typed, pack, unpack
from jskv_saver.checkpoint.writes import PendingWrite
from jskv_saver.errors import CorruptDocumentError, UnsupportedFormatError

FORMAT: Final = 1
ARCHIVE: Final = "archive"
"""What errors name as the key, where it is an archive that is damaged."""
_MAGIC: Final = b"JSKV ARCHIVE "
_FIRST_LINE: Final = _MAGIC + b"%d\n" % FORMAT
_HEAD: Final = Struct(">QI")
_LENGTH: Final = Struct(">I")
_DIGEST: Final = 32
_OWN: Final = 0
_BEFORE: Final = 1
_PART: Final = b"before"
_LEVEL: Final = 6
_PIECE: Final = 1 << 20


@dataclass(slots=True)
class _Before:
    """The values of the checkpoint before, of the same thread and namespace."""

    ns: str | None = None
    values: Mapping[str, Typed] = field(default_factory=dict)

    def of(self, ns: str) -> Mapping[str, Typed]:
        return self.values if ns == self.ns else {}

    def set(self, ns: str | None, values: Mapping[str, Typed]) -> None:
        self.ns, self.values = ns, values


class ArchiveWriter:
    """Writes an archive. Holds one checkpoint at a time.

    Args:
        stream: Where to; it is neither read nor moved.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._hash = blake2b(digest_size=_DIGEST)
        self._before = _Before()
        self.totals = Totals()
        self._out(_FIRST_LINE)

    def thread(self, thread: ArchivedThread) -> None:
        """What follows is of this thread."""
        self._before.set(None, {})
        self.totals.threads += 1
        self._frame(("thread", thread.namespace, thread.agent, thread.thread), [])

    def checkpoint(self, item: ArchivedCheckpoint) -> None:
        """One checkpoint with its writes."""
        before = self._before.of(item.ns)
        own = _Own()

        channels: dict[str, list[Any]] = {}
        for name, (kind, content) in item.values.items():
            old = before[name].content if name in before else b""
            flat: list[Any] = [kind]
            for piece in plan(old, [Run(_PART, 0, len(old))] if old else [], content):
                if isinstance(piece, Fresh):
                    flat += own.add(content[piece.start : piece.end])
                else:
                    flat += (_BEFORE, piece.offset, piece.length)
            channels[name] = flat
        skeleton = [item.skeleton.kind, *own.add(item.skeleton.content)]
        metadata = [item.metadata.kind, *own.add(item.metadata.content)]
        rows = _rows(item.writes, own)
        layout = (
            "checkpoint",
            item.ns,
            item.id,
            item.parent,
            item.run,
            item.format,
            dict(item.deltas),
            dict(item.versions),
            skeleton,
            metadata,
            channels,
            rows,
        )
        self._frame(layout, own.pieces)
        self._before.set(item.ns, item.values)
        self.totals.checkpoints += 1
        self.totals.writes += len(rows)

    def writes(self, item: ArchivedWrites) -> None:
        """Writes without a checkpoint."""
        own = _Own()
        self._frame(("writes", item.ns, item.id, _rows(item.writes, own)), own.pieces)
        self.totals.writes += len(item.writes)

    def end(self) -> Totals:
        """The end: without it an archive is not whole."""
        totals = self.totals
        self._frame(("end", totals.threads, totals.checkpoints, totals.writes), [])
        self._stream.write(self._hash.digest())
        return totals

    def _frame(self, layout: object, own: Sequence[bytes]) -> None:
        packed = pack(layout)
        packer = zlib.compressobj(_LEVEL)
        pieces = [packer.compress(_LENGTH.pack(len(packed))), packer.compress(packed)]
        pieces += [packer.compress(piece) for piece in own]
        payload = b"".join([*pieces, packer.flush()])
        self._out(_HEAD.pack(len(payload), crc32(payload)))
        self._out(payload)

    def _out(self, piece: bytes) -> None:
        self._hash.update(piece)
        self._stream.write(piece)


class _Own:
    """The bytes of a frame itself, one after the other."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []
        self._size = 0

    def add(self, content: bytes) -> tuple[int, int, int]:
        """The run of some bytes more."""
        self.pieces.append(content)
        self._size += len(content)
        return _OWN, self._size - len(content), len(content)


def _rows(writes: Sequence[PendingWrite], own: _Own) -> list[list[Any]]:
    return [
        [w.path, w.task, w.idx, w.channel, w.value.kind, *own.add(w.value.content)]
        for w in writes
    ]


class ArchiveReader:
    """Reads an archive and checks it on the way. Holds one checkpoint at a time.

    Args:
        stream: Where from, at its beginning.

    Raises:
        CorruptDocumentError: It is no archive.
        UnsupportedFormatError: A newer release wrote it.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._hash = blake2b(digest_size=_DIGEST)
        self._before = _Before()
        self._frames = 0
        self.totals = Totals()
        line = self._read(len(_MAGIC))
        if line != _MAGIC:
            raise _corrupt("it does not begin as an archive does")
        version = b""
        while not version.endswith(b"\n") and len(version) < _DIGEST:
            version += self._read(1)
        if version != _FIRST_LINE[len(_MAGIC) :]:
            number = version.strip()
            if number.isdigit() and int(number) > FORMAT:
                raise _newer(int(number))
            raise _corrupt("its first line is damaged")

    def __iter__(self) -> Iterator[Item]:
        """All that is in it, in order; at the end everything has been checked.

        Raises:
            CorruptDocumentError: It is damaged, or its end is missing.
            UnsupportedFormatError: A newer release wrote it.
        """
        while True:
            layout, own = self._frame()
            try:
                item = self._item(layout, own)
            except (LookupError, TypeError, ValueError) as exc:
                raise _corrupt(
                    f"frame {self._frames} is not readable ({exc!r})"
                ) from exc
            if item is None:
                self._check_end(layout)
                return
            yield item

    def _item(self, layout: list[Any], own: memoryview) -> Item | None:
        kind, *fields = layout
        if kind == "thread":
            self._before.set(None, {})
            self.totals.threads += 1
            return ArchivedThread(*map(_text, fields))
        if kind == "checkpoint":
            return self._checkpoint(fields, own)
        if kind == "writes":
            ns, id, rows = fields
            self.totals.writes += len(rows)
            return ArchivedWrites(_text(ns), _text(id), _writes(rows, own))
        if kind == "end":
            return None
        raise _newer(FORMAT + 1)

    def _checkpoint(self, fields: list[Any], own: memoryview) -> ArchivedCheckpoint:
        ns, id, parent, run, format, deltas, versions, *rest = fields
        skeleton, metadata, channels, rows = rest
        before = self._before.of(ns)
        values = {
            name: _typed(flat, own, before[name].content if name in before else b"")
            for name, flat in channels.items()
        }
        self._before.set(ns, values)
        self.totals.checkpoints += 1
        self.totals.writes += len(rows)
        return ArchivedCheckpoint(
            ns=_text(ns),
            id=_text(id),
            parent=parent,
            run=run,
            format=int(format),
            deltas=dict(deltas),
            versions=dict(versions),
            skeleton=_typed(skeleton, own),
            metadata=_typed(metadata, own),
            values=values,
            writes=_writes(rows, own),
        )

    def _frame(self) -> tuple[list[Any], memoryview]:
        self._frames += 1
        size, checksum = _HEAD.unpack(self._read(_HEAD.size))
        payload = self._read(size)
        if crc32(payload) != checksum:
            raise _corrupt(f"the checksum of frame {self._frames} does not fit")
        try:
            content = memoryview(zlib.decompress(payload))
            (length,) = _LENGTH.unpack_from(content)
            begin = _LENGTH.size + length
            layout = unpack(bytes(content[_LENGTH.size : begin]))
        except (zlib.error, error, ValueError) as exc:
            raise _corrupt(f"frame {self._frames} is not readable ({exc!r})") from exc
        if not isinstance(layout, list) or not layout:
            raise _corrupt(f"frame {self._frames} says not what it is")
        return layout, content[begin:]

    def _check_end(self, layout: list[Any]) -> None:
        expected = self._hash.digest()
        if self._read(_DIGEST) != expected:
            raise _corrupt("the digest of the whole does not fit")
        totals = self.totals
        if layout[1:] != [totals.threads, totals.checkpoints, totals.writes]:
            raise _corrupt("it holds not what its end says")
        if self._stream.read(1):
            raise _corrupt("bytes follow its end")

    def _read(self, size: int) -> bytes:
        pieces: list[bytes] = []
        left = size
        while left:
            # By pieces: a damaged length must not be believed.
            piece = self._stream.read(min(left, _PIECE))
            if not piece:
                raise _corrupt("it ends too early: it was not written to its end")
            pieces.append(piece)
            left -= len(piece)
        content = b"".join(pieces)
        self._hash.update(content)
        return content


def _typed(flat: list[Any], own: memoryview, before: bytes = b"") -> Typed:
    kind, *numbers = flat
    pieces: list[bytes] = []
    for source, offset, length in zip(
        numbers[::3], numbers[1::3], numbers[2::3], strict=True
    ):
        content = before if source == _BEFORE else own
        if min(offset, length) < 0 or offset + length > len(content):
            raise ValueError("a value is not where it should be")
        pieces.append(bytes(content[offset : offset + length]))
    return Typed(_text(kind), b"".join(pieces))


def _writes(rows: list[Any], own: memoryview) -> list[PendingWrite]:
    return [
        PendingWrite(path, task, index, channel, _typed(value, own))
        for path, task, index, channel, *value in rows
    ]


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _corrupt(what: str) -> CorruptDocumentError:
    return CorruptDocumentError(
        f"the archive cannot be used: {what}",
        key=ARCHIVE,
    )


def _newer(version: int) -> UnsupportedFormatError:
    return UnsupportedFormatError(
        f"the archive is of format {version}: a newer release of jskv-saver wrote it, "
        "upgrade to read it",
        key=ARCHIVE,
        version=version,
    )
