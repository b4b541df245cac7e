"""Every answer of the server and every exception of nats-py has one of our errors."""

from __future__ import annotations

import asyncio
import inspect

import nats.errors
import nats.js.errors
import pytest

from jskv_saver._nats.faults import (
    ApiError,
    denied,
    error_of,
    lost,
    translate,
    translated,
    violation_of,
)
from jskv_saver._nats.faults import Translation as Context
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

CODES: dict[ApiError, type[JskvError]] = {
    ApiError.ACCOUNT_RESOURCES_EXCEEDED: StorageFullError,
    ApiError.BAD_REQUEST: InvalidRequestError,
    ApiError.CLUSTER_NOT_AVAILABLE: StoreUnavailableError,
    ApiError.CLUSTER_NOT_LEADER: StoreUnavailableError,
    ApiError.INSUFFICIENT_RESOURCES: StorageFullError,
    ApiError.INVALID_JSON: InvalidRequestError,
    ApiError.MEMORY_EXCEEDED: StorageFullError,
    ApiError.NO_MESSAGE_FOUND: StoreUnavailableError,
    ApiError.NOT_ENABLED_FOR_ACCOUNT: StoreUnavailableError,
    ApiError.STORAGE_EXCEEDED: StorageFullError,
    ApiError.MESSAGE_TOO_LARGE: DocumentTooLargeError,
    ApiError.STREAM_NAME_IN_USE: StoreUnavailableError,
    ApiError.STREAM_NOT_FOUND: BucketNotFoundError,
    ApiError.WRONG_LAST_SEQUENCE: VersionConflictError,
    ApiError.NOT_ENABLED: StoreUnavailableError,
    ApiError.REPLICAS_NOT_SUPPORTED: InvalidRequestError,
    ApiError.STORE_FAILED: StorageFullError,
    ApiError.STREAM_SEALED: UnsuitableBucketError,
    ApiError.TTL_INVALID: InvalidRequestError,
    ApiError.TTL_DISABLED: UnsuitableBucketError,
    ApiError.WRONG_LAST_SEQUENCE_CONSTANT: VersionConflictError,
    ApiError.TOO_MANY_REQUESTS: StoreUnavailableError,
    ApiError.ATOMIC_DISABLED: UnsuitableBucketError,
    ApiError.ATOMIC_INCOMPLETE: StoreUnavailableError,
    ApiError.FAST_DISABLED: UnsuitableBucketError,
    ApiError.FAST_ID_UNKNOWN: StoreUnavailableError,
    ApiError.ATOMIC_TOO_MANY: StoreUnavailableError,
}


def test_every_code_is_decided() -> None:
    assert set(CODES) == set(ApiError)


@pytest.mark.parametrize("code", ApiError)
def test_codes(code: ApiError) -> None:
    error = error_of(
        {"code": 400, "err_code": int(code), "description": "why: 7"},
        bucket="b",
        expected=5,
        size=10,
        limit=9,
    )
    assert type(error) is CODES[code]
    assert str(int(code)) in str(error)


def test_the_description_never_decides() -> None:
    lie = {"code": 503, "err_code": 10077, "description": "wrong last sequence: 7"}
    assert type(error_of(lie, bucket="b")) is StorageFullError


def test_an_unknown_code_is_definite() -> None:
    error = error_of({"code": 500, "err_code": 99999, "description": "x"}, bucket="b")
    assert type(error) is StoreUnavailableError
    assert type(error_of({}, bucket="b")) is StoreUnavailableError


def test_a_conflict_tells_both_revisions() -> None:
    answer = {"err_code": 10071, "description": "wrong last sequence: 17"}
    error = error_of(answer, bucket="b", expected=5)
    assert error.details == {"expected": 5, "actual": 17}
    constant = {"err_code": 10164, "description": "wrong last sequence"}
    assert error_of(constant, bucket="b", expected=5).details["actual"] is None


def test_a_setting_is_named() -> None:
    error = error_of({"err_code": 10166, "description": "x"}, bucket="b")
    assert error.details == {"bucket": "b", "setting": "allow_msg_ttl"}


def test_a_size_is_told() -> None:
    error = error_of({"err_code": 10054}, bucket="b", size=10, limit=9)
    assert error.details == {"size": 10, "limit": 9}


NOT_SENT: list[Exception] = [
    nats.errors.ConnectionClosedError(),
    nats.errors.ConnectionDrainingError(),
    nats.errors.ConnectionReconnectingError(),
    nats.errors.OutboundBufferLimitError(),
    nats.errors.NoRespondersError(),
    nats.errors.NoServersError(),
    nats.js.errors.NoStreamResponseError(),
]
LOST: list[Exception] = [
    nats.errors.TimeoutError(),
    nats.errors.FlushTimeoutError(),
    nats.errors.StaleConnectionError(),
    nats.errors.UnexpectedEOF(),
    nats.errors.ProtocolError(),
    nats.errors.Error("anything new"),
    TimeoutError(),
    TimeoutError(),
    ConnectionResetError(),
    BrokenPipeError(),
    OSError(),
]
REFUSED: list[tuple[Exception, type[JskvError]]] = [
    (nats.errors.MaxPayloadError(), DocumentTooLargeError),
    (nats.errors.BadSubjectError(), InvalidRequestError),
    (nats.errors.BadHeaderError("x"), InvalidRequestError),
    (nats.errors.AuthorizationError(), PermissionDeniedError),
    (nats.js.errors.NotFoundError(404, "x", 10059), BucketNotFoundError),
    (nats.js.errors.BadRequestError(400, "x", 10071), VersionConflictError),
]


@pytest.mark.parametrize("write", [True, False])
@pytest.mark.parametrize("exc", NOT_SENT, ids=lambda exc: type(exc).__name__)
def test_what_was_not_sent_is_definite(exc: Exception, write: bool) -> None:
    with pytest.raises(StoreUnavailableError) as caught, translate(write=write):
        raise exc
    assert caught.value.__cause__ is exc


@pytest.mark.parametrize("exc", NOT_SENT + LOST, ids=lambda exc: type(exc).__name__)
def test_nothing_is_definite_once_a_part_was_sent(exc: Exception) -> None:
    with (
        pytest.raises(UnknownOutcomeError),
        Context(write=True, bucket="b", sent=True),
    ):
        raise exc


@pytest.mark.parametrize("exc", LOST, ids=lambda exc: type(exc).__name__)
def test_what_has_no_answer_is_in_doubt_if_it_wrote(exc: Exception) -> None:
    with pytest.raises(UnknownOutcomeError), translate(write=True):
        raise exc
    with pytest.raises(StoreUnavailableError), translate(write=False):
        raise exc


@pytest.mark.parametrize("write", [True, False])
@pytest.mark.parametrize(("exc", "kind"), REFUSED)
def test_what_was_refused(exc: Exception, kind: type[JskvError], write: bool) -> None:
    with pytest.raises(JskvError) as caught, translate(write=write, bucket="b"):
        raise exc
    assert type(caught.value) is kind


ATTRIBUTES = (
    *("code", "err_code", "description", "stream", "seq", "key", "op", "entry"),
    *("subject", "reply", "sid", "sub", "message", "_msg", "consumer_sequence"),
    *("last_consumer_sequence", "stream_resume_sequence"),
)


def test_every_nats_error_is_translated() -> None:
    for module in (nats.errors, nats.js.errors):
        for _, cls in inspect.getmembers(module, inspect.isclass):
            if not issubclass(cls, nats.errors.Error):
                continue
            exc = cls.__new__(cls)
            # Whatever its text is made of.
            for name in ATTRIBUTES:
                setattr(exc, name, 0)
            assert isinstance(translated(exc, write=True), JskvError), cls


@pytest.mark.parametrize(
    "exc", [KeyError("bug"), ValueError(), asyncio.CancelledError()]
)
def test_bugs_and_cancellation_pass(exc: BaseException) -> None:
    with pytest.raises(type(exc)) as caught, translate(write=True):
        raise exc
    assert caught.value is exc


def test_our_own_errors_pass() -> None:
    error = StorageFullError("x")
    with pytest.raises(StorageFullError) as caught, translate(write=True):
        raise error
    assert caught.value is error


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            'nats: permissions violation for publish to "$kv.b.a"',
            (False, "$kv.b.a"),
        ),
        (
            'nats: permissions violation for subscription to "_inbox.x.>"',
            (True, "_inbox.x.>"),
        ),
        (
            'nats: permissions violation for subscription to "a" using queue "q"',
            (True, "a"),
        ),
        ("nats: maximum payload violation", None),
        ("", None),
    ],
)
def test_violations(text: str, expected: tuple[bool, str] | None) -> None:
    assert violation_of(nats.errors.Error(text)) == expected
    assert violation_of(ValueError(text)) is None
    assert violation_of(None) is None


def test_small_constructors() -> None:
    assert denied("a.b").subject == "a.b"
    assert type(lost(write=True, why="x")) is UnknownOutcomeError
    assert type(lost(write=False, why="x")) is StoreUnavailableError
