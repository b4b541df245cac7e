"""The new bytes of a checkpoint, put together in parts. Pure."""

from __future__ import annotations

from collections.abc import Callable
from zlib import crc32

from jskv_saver.checkpoint.increments import Run
from jskv_saver.checkpoint.values import Entry, Typed
from jskv_saver.document.model import Limits
from jskv_saver.errors import DocumentTooLargeError

PART_SIZE = 524_288
"""Greatest size of a part in bytes, where the store allows documents that large."""
_DOCUMENT_OVERHEAD = 4096
_LEAST_PART = 2048
LARGE = 1024 * 1024
"""Bytes from which on new ones are not named by a digest of all, which takes as long as
sending them: by whose they are, their place, and a checksum."""


def part_size_in(limits: Limits) -> int:
    """The greatest size of a part, in bytes, in a store with these limits.

    Raises:
        DocumentTooLargeError: Its documents are too small for checkpoints.
    """
    size = min(PART_SIZE, limits.data - _DOCUMENT_OVERHEAD)
    if size < _LEAST_PART:
        raise DocumentTooLargeError(
            "the store takes documents that are too small for checkpoints: raise "
            f"the server's max_payload by {_LEAST_PART - size} bytes at least",
            size=_LEAST_PART + _DOCUMENT_OVERHEAD,
            limit=limits.data,
        )
    return size


class Packer:
    """Gathers new bytes: small ones together in one part, large ones in their own.

    Args:
        id: The id of the checkpoint that they are of.
        part_size: The greatest size of a part, in bytes.
        naming: Gives a part its name, by its content.

    Attributes:
        parts: The parts that are to be stored apart, by name.
        inline: What the record keeps in itself.
        own: The part that the record brings itself.
    """

    def __init__(
        self, id: str, part_size: int, naming: Callable[[bytes], bytes]
    ) -> None:
        self.parts: dict[bytes, bytes] = {}
        self.inline = bytearray()
        self.own = b""
        self._id = id
        self._part_size = part_size
        self._naming = naming
        self._small = bytearray()
        self._waiting: list[tuple[list[Run], int, int, int]] = []

    def keep(self, value: Typed) -> Entry:
        """Put a value into the record itself."""
        kind, content = value
        at = len(self.inline)
        self.inline += content
        return Entry(kind, (Run(b"", at, len(content)),))

    def add(self, runs: list[Run], content: bytes) -> None:
        """Append to `runs` where `content` will be."""
        if len(content) >= self._part_size // 8:
            for at in range(0, len(content), self._part_size):
                piece = content[at : at + self._part_size]
                mine = len(content) >= LARGE
                name = self._naming(self._place_of(piece) if mine else piece)
                self.parts[name] = piece
                runs.append(Run(name, 0, len(piece)))
            return
        if len(self._small) + len(content) > self._part_size:
            self.close()
        # The part's name is known when it is full.
        self._waiting.append((runs, len(runs), len(self._small), len(content)))
        runs.append(Run(b"", 0, 0))
        self._small += content

    def _place_of(self, piece: bytes) -> bytes:
        """What names a piece of large new bytes: the same if it is put again."""
        place = f"{self._id} {len(self.parts)} {len(piece)} {crc32(piece)}"
        return place.encode(errors="surrogatepass")

    def close(self) -> None:
        """Name the part that is being gathered."""
        if not self._small:
            return
        content = bytes(self._small)
        name = self._naming(content)
        self.parts[name] = content
        for runs, at, offset, length in self._waiting:
            runs[at] = Run(name, offset, length)
        self._small.clear()
        self._waiting.clear()

    def take_own(self, most: int) -> bytes:
        """Leave the new bytes to the record itself if they are few: their digest.

        Args:
            most: How many bytes are few.

        Returns:
            The name of the part; empty if there is none, or more.
        """
        if len(self.parts) == 1:
            ((name, content),) = self.parts.items()
            if len(content) <= most:
                self.parts, self.own = {}, content
                return name
        return b""
