"""One collection of the memory store: documents, sorted paths, unique keys."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence

from jskv_saver.document.declarations import (
    Constraint,
    check_declared,
    mistyped_field,
    unique_constraints,
    unique_key,
)
from jskv_saver.document.model import CollectionSpec, Document, Path, id_of
from jskv_saver.document.names import (
    PatternPath,
    Prefixes,
    is_below,
    is_exact,
    matches,
)
from jskv_saver.document.query import Query
from jskv_saver.document.requests import DeleteRequest, ParsedFence, PutRequest
from jskv_saver.errors import (
    IncompatibleDeclarationError,
    UniqueViolationError,
    VersionConflictError,
)


class Collection:
    """The documents of one collection, their sorted paths, and its unique keys."""

    def __init__(self, spec: CollectionSpec | None = None) -> None:
        self.spec = spec
        self.documents: dict[Path, Document] = {}
        self._paths: list[Path] = []
        self._unique: dict[Constraint, dict[bytes, Path]] = {
            constraint: {} for constraint in (unique_constraints(spec) if spec else ())
        }
        # The greatest version below each prefix that a fence has named: a fence that
        # walked the subtree would cost as much as the thread is long, at every put.
        self._latest: dict[Path, int] = {}

    def extend(self, spec: CollectionSpec) -> None:
        """Take the merged declaration, or raise and change nothing."""
        unique: dict[Constraint, dict[bytes, Path]] = {
            constraint: {} for constraint in unique_constraints(spec)
        }
        for path, document in self.documents.items():
            wrong = mistyped_field(spec, document.data)
            for constraint, holders in unique.items():
                key = unique_key(constraint, document.data)
                if key is not None and holders.setdefault(key, path) != path:
                    wrong = f"its {', '.join(constraint)} is that of another"
            if wrong is not None:
                raise IncompatibleDeclarationError(
                    f"{document.id!r} in {spec.name!r} breaks the declaration: {wrong}",
                    collection=spec.name,
                    document=document.id,
                )
        self.spec, self._unique = spec, unique

    def admit(self, request: PutRequest) -> Document | None:
        """Raise if it may not be stored, or return what it would replace."""
        if self.spec is not None:
            check_declared(self.spec, request.data)
        replaced = self.documents.get(request.path)
        if request.if_version is not None:
            if request.if_version != (replaced.version if replaced else 0):
                raise _conflict(request.if_version, replaced)
        elif request.if_latest is not None:
            self._check_fence(request.if_latest)
        for constraint, holders in self._unique.items():
            key = unique_key(constraint, request.data)
            if key is not None and holders.get(key, request.path) != request.path:
                raise UniqueViolationError(
                    f"another document has the same {', '.join(constraint)}",
                    fields=constraint,
                    document=id_of(holders[key]),
                )
        return replaced

    def store(self, path: Path, document: Document) -> None:
        """Put the document in the place of the one that was admitted to go."""
        replaced = self.documents.get(path)
        if replaced is None:
            insort(self._paths, path)
        else:
            self._drop_keys(replaced)
        self.documents[path] = document
        for constraint, holders in self._unique.items():
            key = unique_key(constraint, document.data)
            if key is not None:
                holders[key] = path
        for length in range(1, len(path)):
            if path[:length] in self._latest:
                self._latest[path[:length]] = document.version

    def delete(self, request: DeleteRequest) -> int:
        """Remove one document, or what is below a prefix; how many that were."""
        if request.subtree:
            doomed = list(self._below(request.prefix))
        else:
            doomed = [path for path in (request.prefix,) if is_exact(path)]
            self._check_deletion(doomed[0], request.if_version)
        limit = request.below
        return self.remove(
            path
            for path in doomed
            if path in self.documents
            and (limit is None or self.documents[path].version < limit)
        )

    def remove(self, paths: Iterable[Path]) -> int:
        """Remove present documents; how many that were."""
        doomed = list(paths)
        for path in doomed:
            self._forget(path, self.documents.pop(path))
        if len(doomed) == 1:
            del self._paths[bisect_left(self._paths, doomed[0])]
        elif doomed:
            self._paths = [path for path in self._paths if path in self.documents]
        return len(doomed)

    def within(self, prefixes: Prefixes | None) -> Sequence[Path]:
        """The paths within, sorted, each once."""
        if prefixes is None:
            return self._paths
        if len(prefixes) == 1:
            return list(self._below(prefixes[0]))
        return sorted({path for prefix in prefixes for path in self._below(prefix)})

    def matching(self, query: Query) -> Iterator[Document]:
        """The documents that match, by id; in that order from the cursor on."""
        paths = self.within(query.within)
        for path in query.paths_after_cursor(paths) if query.by_id else paths:
            document = self.documents[path]
            if query.matches_data(document.data):
                yield document

    def fitting(self, pattern: PatternPath) -> Iterator[Document]:
        """The documents whose path has exactly these segments."""
        if is_exact(pattern):
            if pattern in self.documents:
                yield self.documents[pattern]
            return
        for path in self._below(pattern[:-1]):
            if matches(path, pattern):
                yield self.documents[path]

    def _below(self, prefix: PatternPath) -> Iterator[Path]:
        exact: list[str] = []
        for segment in prefix:
            if not isinstance(segment, str):
                break
            exact.append(segment)
        start, end = self._range(tuple(exact))
        for path in self._paths[start:end]:
            if len(exact) == len(prefix) or is_below(path, prefix):
                yield path

    def _range(self, prefix: Path) -> tuple[int, int]:
        """Where what is strictly below the prefix begins and ends."""
        if not prefix:
            return 0, len(self._paths)
        # No segment holds a NUL, so this is the least text after the last one.
        end = (*prefix[:-1], prefix[-1] + "\0")
        return bisect_right(self._paths, prefix), bisect_left(self._paths, end)

    def _check_fence(self, fence: ParsedFence) -> None:
        prefix, expected = fence
        actual = self._latest.get(prefix)
        if actual is None:
            versions = (self.documents[path].version for path in self._below(prefix))
            actual = self._latest[prefix] = max(versions, default=0)
        if actual != expected:
            raise VersionConflictError(
                f"the greatest version below {id_of(prefix)!r} is {actual}, "
                f"not {expected}",
                expected=expected,
                actual=actual,
            )

    def _check_deletion(self, path: Path, if_version: int | None) -> None:
        if if_version is None:
            return
        present = self.documents.get(path)
        # Version 0 is that of an absent document, and absence is a conflict too.
        if present is None or present.version != if_version:
            raise _conflict(if_version, present)

    def _forget(self, path: Path, document: Document) -> None:
        """Drop what is derived from a document that goes."""
        self._drop_keys(document)
        for length in range(1, len(path)):
            if self._latest.get(path[:length]) == document.version:
                del self._latest[path[:length]]

    def _drop_keys(self, document: Document) -> None:
        for constraint, holders in self._unique.items():
            key = unique_key(constraint, document.data)
            if key is not None:
                del holders[key]


def _conflict(expected: int, present: Document | None) -> VersionConflictError:
    actual = 0 if present is None else present.version
    return VersionConflictError(
        f"the stored version is {actual}, not {expected}"
        if present is not None
        else f"no document is stored, of version {expected} or any other",
        expected=expected,
        actual=actual,
    )
