"""Every error that this package raises on purpose.

    JskvError
    ├─ InvalidRequestError          400  also ValueError
    ├─ PermissionDeniedError        403
    ├─ CollectionNotFoundError      404  also LookupError
    ├─ DocumentNotFoundError        410  also LookupError
    ├─ VersionConflictError         409
    │  ├─ WriterConflictError       419
    │  └─ LeaseLostError            423
    ├─ LeaseHeldError               424  retryable
    ├─ DivergentCheckpointError     412
    ├─ DocumentTooLargeError        413
    ├─ IncompatibleDeclarationError 421
    ├─ UniqueViolationError         422
    ├─ UnsupportedServerError       426
    ├─ GraphVersionError            428
    ├─ StoreClosedError             499
    ├─ RemoteFaultError             500
    ├─ StoreUnavailableError        503  retryable
    ├─ UnknownOutcomeError          504  also TimeoutError
    ├─ StorageFullError             507
    ├─ CorruptDocumentError         520
    ├─ UnsupportedFormatError       521
    ├─ EncryptionError              522
    ├─ BucketNotFoundError          530
    ├─ UnsuitableBucketError        531
    └─ WrongThreadError             540  also RuntimeError

`code` is the number that the error has on the wire; no two classes share one.
`retryable` says that nothing was written and that the same call may succeed later.
The details are keyword arguments and attributes; they survive pickling.
"""

from __future__ import annotations

from typing import Any, ClassVar

__all__ = [
    "BucketNotFoundError",
    "CollectionNotFoundError",
    "CorruptDocumentError",
    "DivergentCheckpointError",
    "DocumentNotFoundError",
    "DocumentTooLargeError",
    "EncryptionError",
    "GraphVersionError",
    "IncompatibleDeclarationError",
    "InvalidRequestError",
    "JskvError",
    "LeaseHeldError",
    "LeaseLostError",
    "PermissionDeniedError",
    "RemoteFaultError",
    "StorageFullError",
    "StoreClosedError",
    "StoreUnavailableError",
    "UniqueViolationError",
    "UnknownOutcomeError",
    "UnsuitableBucketError",
    "UnsupportedFormatError",
    "UnsupportedServerError",
    "VersionConflictError",
    "WriterConflictError",
    "WrongThreadError",
]


class JskvError(Exception):
    """Base of all errors of this package.

    Args:
        message: What is wrong and what to do about it.
        **details: Values of the attributes that the class names in `fields_`;
            one that is left out is None.
    """

    code: ClassVar[int] = 599
    retryable: ClassVar[bool] = False
    fields_: ClassVar[tuple[str, ...]] = ()

    def __init__(self, message: str = "", /, **details: Any) -> None:
        unknown = details.keys() - set(self.fields_)
        if unknown:
            raise TypeError(f"{type(self).__name__} has no detail {sorted(unknown)}")
        super().__init__(message)
        for name in self.fields_:
            setattr(self, name, details.get(name))

    @property
    def details(self) -> dict[str, Any]:
        """The values of `fields_` by name."""
        return {name: getattr(self, name) for name in self.fields_}

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), str(self), self.details)


def _rebuild(cls: type[JskvError], message: str, details: dict[str, Any]) -> JskvError:
    return cls(message, **details)


class InvalidRequestError(JskvError, ValueError):
    """A name, id, value, query or limit breaks a rule; nothing was sent."""

    code = 400


class PermissionDeniedError(JskvError):
    """The server refused this user the subject; nothing was written."""

    code = 403
    fields_ = ("subject",)
    subject: str | None


class CollectionNotFoundError(JskvError, LookupError):
    """The collection was never declared, or was dropped."""

    code = 404
    fields_ = ("namespace", "collection")
    namespace: str | None
    collection: str | None


class DocumentNotFoundError(JskvError, LookupError):
    """No document has this id."""

    code = 410
    fields_ = ("collection", "id")
    collection: str | None
    id: Any


class VersionConflictError(JskvError):
    """The stored version is not the expected one; nothing was written.

    `expected` and `actual` are versions, 0 for "absent"; None when the server did
    not say.
    """

    code = 409
    fields_: ClassVar[tuple[str, ...]] = ("expected", "actual")
    expected: int | None
    actual: int | None


class WriterConflictError(VersionConflictError):
    """Another run moved the head of this thread; nothing was written."""

    code = 419
    fields_ = ("expected", "actual", "mine", "theirs")
    mine: str | None
    theirs: str | None


class LeaseLostError(VersionConflictError):
    """This writer's lease is over, or another one's; nothing was written.

    `holder` is who has it now; None if nobody has.
    """

    code = 423
    fields_ = ("expected", "actual", "holder")
    holder: str | None


class LeaseHeldError(JskvError):
    """Another one holds the lease of this thread; `holder` is who."""

    code = 424
    retryable = True
    fields_ = ("thread", "holder")
    thread: str | None
    holder: str | None


class DivergentCheckpointError(JskvError):
    """Other content is stored under the same checkpoint id; it was left alone."""

    code = 412
    fields_ = ("checkpoint_id",)
    checkpoint_id: str | None


class DocumentTooLargeError(JskvError):
    """The encoded document or key exceeds the limit, in bytes; nothing was sent."""

    code = 413
    fields_ = ("size", "limit")
    size: int | None
    limit: int | None


class IncompatibleDeclarationError(JskvError):
    """The declaration contradicts the stored one or the stored documents."""

    code = 421
    fields_ = ("collection", "document")
    collection: str | None
    document: Any


class UniqueViolationError(JskvError):
    """Another document has the same values in unique fields; nothing was written."""

    code = 422
    fields_ = ("fields", "document")
    fields: tuple[str, ...] | None
    document: Any


class UnsupportedServerError(JskvError):
    """The server is older than this package needs."""

    code = 426
    fields_ = ("version", "needed")
    version: str | None
    needed: str | None


class GraphVersionError(JskvError):
    """The thread was written by another version of the graph; nothing was run."""

    code = 428
    fields_ = ("stored", "current", "checkpoint_id")
    stored: str | None
    current: str | None
    checkpoint_id: str | None


class StoreClosedError(JskvError):
    """The store or saver was used after it was closed."""

    code = 499


class RemoteFaultError(JskvError):
    """The service failed in a way that it does not describe."""

    code = 500


class StoreUnavailableError(JskvError):
    """No server answers; nothing was written. Also a read without an answer."""

    code = 503
    retryable = True


class UnknownOutcomeError(JskvError, TimeoutError):
    """A write had no answer and may have happened: read, then decide."""

    code = 504


class StorageFullError(JskvError):
    """The bucket or disk is full; nothing was written. Reads and deletes work."""

    code = 507


class CorruptDocumentError(JskvError):
    """Stored bytes are not what was written, or a part is missing."""

    code = 520
    fields_ = ("key",)
    key: str | None


class UnsupportedFormatError(JskvError):
    """The document was written by a newer release of this package."""

    code = 521
    fields_ = ("key", "version")
    key: str | None
    version: int | None


class EncryptionError(JskvError):
    """The keys do not fit what is stored: none, others, or it is not encrypted."""

    code = 522
    fields_ = ("key", "key_id")
    key: str | None
    key_id: str | None


class BucketNotFoundError(JskvError):
    """The bucket is gone. This is never the same as an empty one."""

    code = 530
    fields_ = ("bucket",)
    bucket: str | None


class UnsuitableBucketError(JskvError):
    """A setting of a bucket that was made elsewhere does not fit."""

    code = 531
    fields_ = ("bucket", "setting")
    bucket: str | None
    setting: str | None


class WrongThreadError(JskvError, RuntimeError):
    """A blocking call on the very event loop that would have to serve it."""

    code = 540
