"""The version of the graph that wrote a checkpoint, and whether another may go on.

It stands in the checkpoint's metadata, where every saver keeps what it is given: it
can be filtered on, goes along when a thread is copied or moved, and costs nothing
where it is not used.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from langgraph.checkpoint.base import CheckpointMetadata

from jskv_saver.errors import GraphVersionError, InvalidRequestError

GRAPH_VERSION: Final = "graph_version"
"""The key in the metadata."""

MismatchPolicy = Literal["raise", "warn"]


class GraphVersionWarning(UserWarning):
    """A thread of another version of the graph goes on."""


@dataclass(frozen=True, slots=True)
class GraphVersion:
    """The version of a graph, and which others it can go on from.

    Attributes:
        version: Stored with each checkpoint.
        accepts: Versions whose threads this one goes on without a word.
        on_mismatch: What the reading of a checkpoint of any other version does:
            "raise" raises `GraphVersionError`, "warn" warns with
            `GraphVersionWarning`. A checkpoint without a version is never one.
    """

    version: str
    accepts: Collection[str] = ()
    on_mismatch: MismatchPolicy = "raise"

    def __post_init__(self) -> None:
        if not isinstance(self.version, str) or not self.version:
            raise InvalidRequestError(
                f"a graph's version must be a non-empty str, not {self.version!r}"
            )
        # A generator would be asked once, and accept nothing afterwards.
        if (
            isinstance(self.accepts, str | Mapping)
            or not isinstance(self.accepts, Collection)
            or not all(isinstance(each, str) for each in self.accepts)
        ):
            raise InvalidRequestError(
                "accepts must be a collection of versions, e.g. ('1',), not "
                f"{self.accepts!r:.80}"
            )
        if self.on_mismatch not in ("raise", "warn"):
            raise InvalidRequestError(
                f"on_mismatch must be 'raise' or 'warn', not {self.on_mismatch!r}"
            )

    def marked(self, metadata: CheckpointMetadata) -> CheckpointMetadata:
        """Metadata with this version in it."""
        return cast(CheckpointMetadata, {**metadata, GRAPH_VERSION: self.version})

    def check(self, metadata: Any, thread: str, id: str) -> None:
        """Report it if a checkpoint is of a version that this one does not accept.

        Raises:
            GraphVersionError: It is, and the policy is "raise".
        """
        stored = metadata.get(GRAPH_VERSION) if isinstance(metadata, dict) else None
        if stored is None or any(stored == v for v in (self.version, *self.accepts)):
            return
        message = (
            f"checkpoint {id!r} of thread {thread!r} was written by version "
            f"{stored!r} of the graph, this is version {self.version!r}"
        )
        if self.on_mismatch == "warn":
            warnings.warn(message, GraphVersionWarning, stacklevel=2)
            return
        raise GraphVersionError(
            f"{message}: nothing was run; go on with that version, or accept it with "
            f"graph_version=GraphVersion({self.version!r}, accepts=[{stored!r}])",
            stored=str(stored),
            current=self.version,
            checkpoint_id=id,
        )


def graph_version_of(given: str | GraphVersion | None) -> GraphVersion | None:
    """What a saver's `graph_version` means.

    Raises:
        InvalidRequestError: It is none of these, or empty.
    """
    if given is None or isinstance(given, GraphVersion):
        return given
    return GraphVersion(given)
