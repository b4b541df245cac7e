"""nats-py exceptions and JetStream API errors → errors.py."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum
from types import TracebackType
from typing import Any, Final

import nats.errors
import nats.js.errors

from jskv_saver.errors import (
    BucketNotFoundError,
    DocumentTooLargeError,
    InvalidRequestError,
    JskvError,
    PermissionDeniedError,
    StorageFullError,
    StoreUnavailableError,
    UnknownOutcomeError,
    UnsuitableBucketError,
    VersionConflictError,
)


class ApiError(IntEnum):
    """`err_code` of a JetStream answer (ADR-1, ADR-7; nats-server `errors.json`)."""

    ACCOUNT_RESOURCES_EXCEEDED = 10002
    BAD_REQUEST = 10003
    CLUSTER_NOT_AVAILABLE = 10008
    CLUSTER_NOT_LEADER = 10009
    INSUFFICIENT_RESOURCES = 10023
    INVALID_JSON = 10025
    MEMORY_EXCEEDED = 10028
    NO_MESSAGE_FOUND = 10037
    NOT_ENABLED_FOR_ACCOUNT = 10039
    STORAGE_EXCEEDED = 10047
    MESSAGE_TOO_LARGE = 10054
    STREAM_NAME_IN_USE = 10058
    STREAM_NOT_FOUND = 10059
    WRONG_LAST_SEQUENCE = 10071
    REPLICAS_NOT_SUPPORTED = 10074
    NOT_ENABLED = 10076
    STORE_FAILED = 10077
    STREAM_SEALED = 10109
    # ADR-43, per-message TTL
    TTL_INVALID = 10165
    TTL_DISABLED = 10166
    # ADR-50, atomic and fast batches
    WRONG_LAST_SEQUENCE_CONSTANT = 10164
    TOO_MANY_REQUESTS = 10167
    ATOMIC_DISABLED = 10174
    ATOMIC_INCOMPLETE = 10176
    FAST_DISABLED = 10205
    FAST_ID_UNKNOWN = 10208
    ATOMIC_TOO_MANY = 10210


class Status:
    """Status line of a NATS message (ADR-4, ADR-31)."""

    END_OF_BATCH: Final = "204"
    NOT_FOUND: Final = "404"
    BAD_REQUEST: Final = "408"
    TOO_MANY_RESULTS: Final = "413"
    NO_RESPONDERS: Final = "503"


_CONFLICT: Final = frozenset(
    {ApiError.WRONG_LAST_SEQUENCE, ApiError.WRONG_LAST_SEQUENCE_CONSTANT}
)
_FULL: Final = frozenset(
    {
        ApiError.ACCOUNT_RESOURCES_EXCEEDED,
        ApiError.INSUFFICIENT_RESOURCES,
        ApiError.MEMORY_EXCEEDED,
        ApiError.STORAGE_EXCEEDED,
        ApiError.STORE_FAILED,
    }
)
_SETTING: Final[Mapping[int, str]] = {
    ApiError.STREAM_SEALED: "sealed",
    ApiError.TTL_DISABLED: "allow_msg_ttl",
    ApiError.ATOMIC_DISABLED: "allow_atomic",
    ApiError.FAST_DISABLED: "allow_batched",
}
_INVALID: Final = frozenset(
    {ApiError.BAD_REQUEST, ApiError.INVALID_JSON, ApiError.TTL_INVALID}
)
_NO_JETSTREAM: Final = frozenset(
    {ApiError.NOT_ENABLED, ApiError.NOT_ENABLED_FOR_ACCOUNT}
)
_TRAILING_NUMBER: Final = re.compile(r"(\d+)$")

# The server has no number for this one: `-ERR` of the client protocol is text only.
_VIOLATION: Final = re.compile(
    r"permissions violation for (publish|subscription) to \"(\S+?)\""
)


def error_of(
    error: Mapping[str, Any],
    *,
    bucket: str,
    expected: int | None = None,
    size: int | None = None,
    limit: int | None = None,
) -> JskvError:
    """The error that the `error` object of a JetStream answer stands for.

    All of them are definite: what was asked was not done.

    Args:
        error: `code`, `err_code`, `description`.
        bucket: The bucket that was asked.
        expected: The revision that the request named.
        size: Bytes of the value that was sent.
        limit: Bytes that it may have.
    """
    code = int(error.get("err_code", 0))
    text = f"{error.get('description', 'no description')} (JetStream error {code})"
    if code in _CONFLICT:
        # The number in the text only informs; no decision is taken on it.
        found = _TRAILING_NUMBER.search(str(error.get("description", "")))
        actual = (
            int(found[1]) if found and code == ApiError.WRONG_LAST_SEQUENCE else None
        )
        return VersionConflictError(
            f"revision {expected} is not the newest: {text}",
            expected=expected,
            actual=actual,
        )
    if code == ApiError.STREAM_NOT_FOUND:
        return BucketNotFoundError(f"bucket {bucket!r} is gone: {text}", bucket=bucket)
    if code in _FULL:
        return StorageFullError(f"bucket {bucket!r} takes nothing more: {text}")
    if code == ApiError.MESSAGE_TOO_LARGE:
        return DocumentTooLargeError(
            f"too large for bucket {bucket!r}: {text}", size=size, limit=limit
        )
    if (setting := _SETTING.get(code)) is not None:
        return UnsuitableBucketError(
            f"bucket {bucket!r} does not allow it: {text}",
            bucket=bucket,
            setting=setting,
        )
    if code == ApiError.REPLICAS_NOT_SUPPORTED:
        return InvalidRequestError(
            f"bucket {bucket!r} cannot have several replicas here: the server is in "
            f"no cluster; leave replicas= out, or connect to a cluster ({text})"
        )
    if code in _NO_JETSTREAM:
        return StoreUnavailableError(
            f"no JetStream for bucket {bucket!r}: start the server with -js (in its "
            f"configuration: jetstream {{}}), or turn it on for this account ({text})"
        )
    if code in _INVALID:
        return InvalidRequestError(f"refused by the server: {text}")
    return StoreUnavailableError(f"bucket {bucket!r} did not take it: {text}")


def violation_of(error: BaseException | None) -> tuple[bool, str] | None:
    """As `violation_in`, of an error that nats-py has reported aside."""
    return violation_in(str(error)) if isinstance(error, nats.errors.Error) else None


def violation_in(text: str) -> tuple[bool, str] | None:
    """What a permissions violation is about.

    Args:
        text: The server's error, in lower case as nats-py gives it.

    Returns:
        Whether it is a subscription, and the subject in lower case; None for any
        other error.
    """
    found = _VIOLATION.search(text)
    return (found[1] == "subscription", found[2]) if found else None


def lost(*, write: bool, why: str) -> JskvError:
    """The error of a request that was sent and has no answer."""
    if write:
        return UnknownOutcomeError(f"{why}; the write may have happened")
    return StoreUnavailableError(why)


def denied(subject: str) -> PermissionDeniedError:
    """The error of a subject that the user has no permission for."""
    return PermissionDeniedError(
        f"the server refuses this user {subject!r}", subject=subject
    )


_NOT_SENT: Final = (
    nats.errors.ConnectionClosedError,
    nats.errors.ConnectionDrainingError,
    nats.errors.ConnectionReconnectingError,
    nats.errors.OutboundBufferLimitError,
    nats.errors.NoRespondersError,
    nats.errors.NoServersError,
    nats.js.errors.NoStreamResponseError,
)
_MALFORMED: Final = (nats.errors.BadSubjectError, nats.errors.BadHeaderError)


def translated(
    exc: BaseException, *, write: bool, bucket: str = ""
) -> JskvError | None:
    """The error that an exception of nats-py or of the socket stands for, else None."""
    if isinstance(exc, nats.js.errors.APIError) and exc.err_code:
        return error_of(
            {"err_code": exc.err_code, "description": exc.description}, bucket=bucket
        )
    if isinstance(exc, _NOT_SENT):
        return StoreUnavailableError(f"nothing was sent: {exc}")
    if isinstance(exc, nats.errors.MaxPayloadError):
        return DocumentTooLargeError(f"nothing was sent: {exc}")
    if isinstance(exc, _MALFORMED):
        return InvalidRequestError(f"nothing was sent: {exc}")
    if isinstance(exc, nats.errors.AuthorizationError):
        return PermissionDeniedError("the server refused the credentials")
    if isinstance(exc, nats.errors.Error | TimeoutError | OSError):
        return lost(write=write, why=f"no answer ({type(exc).__name__}: {exc})")
    return None


class Translation:
    """A context in which nats-py's exceptions leave as those of `errors.py`.

    Args:
        write: An answer that is lost leaves a write in doubt.
        bucket: For the texts.
        sent: A part was sent already, so that nothing is definite any more.
    """

    __slots__ = ("_bucket", "_sent", "_write")

    def __init__(self, *, write: bool, bucket: str, sent: bool = False) -> None:
        self._write = write
        self._bucket = bucket
        self._sent = sent

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if exc is None or isinstance(exc, JskvError):
            return
        error = translated(exc, write=self._write, bucket=self._bucket)
        if error is None:
            return
        if self._sent:
            raise lost(write=self._write, why=f"interrupted: {error}") from exc
        raise error from exc


def translate(*, write: bool, bucket: str = "") -> Translation:
    """Translate what nats-py raises inside.

    Args:
        write: An answer that is lost leaves a write in doubt.
        bucket: The bucket, for the texts.
    """
    return Translation(write=write, bucket=bucket)
