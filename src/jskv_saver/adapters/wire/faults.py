"""errors.py ⇄ code, message and detail on the wire: one table, read both ways. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from google.protobuf.message import DecodeError

from jskv_saver import errors
from jskv_saver._proto.jskv.v1 import document_pb2 as pb
from jskv_saver.adapters.wire.values import fill_object, object_of
from jskv_saver.document.names import shown
from jskv_saver.errors import InvalidRequestError, JskvError, RemoteFaultError

# ADR-32.
ERROR_HEADER: Final = "Nats-Service-Error"
CODE_HEADER: Final = "Nats-Service-Error-Code"

UNDESCRIBED: Final = "the document service failed; its log says how"

_OWN: Final = (errors.StoreClosedError, errors.WrongThreadError)
"""Of the service itself: its caller has done nothing wrong."""

BY_CODE: Final[Mapping[int, type[JskvError]]] = {
    error.code: error
    for error in (getattr(errors, name) for name in errors.__all__)
    if error is not JskvError and error not in _OWN
}
"""The errors that go over the wire."""


def encode_fault(error: JskvError) -> tuple[bytes, dict[str, str]]:
    """The body and the headers of an answer that is an error."""
    fault = pb.Fault(code=error.code, message=_text(str(error)))
    if known := {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in error.details.items()
        if value is not None
    }:
        fill_object(fault.detail, known)
    headers = {
        CODE_HEADER: str(error.code),
        ERROR_HEADER: shown(fault.message).strip("'\""),
    }
    return fault.SerializeToString(), headers


def decode_fault(body: bytes, code: str) -> JskvError:
    """The error that an answer stands for.

    Args:
        body: Of the answer.
        code: As its header has it.
    """
    try:
        fault = pb.Fault.FromString(body)
        detail = object_of(fault.detail)
    except (DecodeError, InvalidRequestError):
        return RemoteFaultError(f"the service answers with the error {shown(code)}")
    error = BY_CODE.get(fault.code)
    if error is None or code != str(fault.code):
        return RemoteFaultError(fault.message or UNDESCRIBED)
    known = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in detail.items()
        if name in error.fields_
    }
    return error(fault.message, **known)


def told(error: BaseException) -> JskvError:
    """What a caller is told of an error in the service."""
    if isinstance(error, errors.StoreClosedError):
        return errors.StoreUnavailableError("the document service is being closed")
    if isinstance(error, JskvError) and error.code in BY_CODE:
        return error
    return RemoteFaultError(UNDESCRIBED)


def _text(message: str) -> str:
    # Python's own texts may have what no protobuf string can hold.
    return message.encode("utf-8", "backslashreplace").decode()
