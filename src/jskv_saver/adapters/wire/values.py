"""Values, ids and predicates ⇄ protobuf messages; pure.

What comes from the wire is checked here as far as its form goes: whether a value is
legal is decided by the store, as for any other caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from jskv_saver._proto.jskv.v1 import document_pb2 as pb
from jskv_saver.document.model import (
    ANY,
    CollectionSpec,
    Document,
    FieldSpec,
    Order,
    Path,
    Pattern,
    Predicate,
    id_of,
    path_of,
)
from jskv_saver.document.names import PatternPath, is_exact
from jskv_saver.errors import InvalidRequestError

MOST: Final = 256
"""Predicates, prefixes, patterns, or fields of a declaration in one request."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def microseconds(moment: datetime) -> int:
    """A moment as it goes over the wire."""
    return (moment - _EPOCH) // _MICROSECOND


def moment_of(count: int) -> datetime:
    """The moment of so many microseconds."""
    try:
        return _EPOCH + timedelta(microseconds=count)
    except OverflowError as exc:
        raise InvalidRequestError("a datetime is outside the years 1 to 9999") from exc


# -- values ------------------------------------------------------------------------


def fill_object(target: Any, data: dict[str, Any]) -> None:
    """Write checked data into an `Object`; an empty one counts as set."""
    if not data:
        target.SetInParent()
        return
    target.keys.extend(data)
    fill_values(target.values, data.values())


def fill_values(target: Any, values: Iterable[Any]) -> None:
    """Add checked values to a repeated field."""
    add = target.add
    for value in values:
        kind = type(value)
        if kind is str:
            add(string_value=value)
        elif kind is bytes:
            add(bytes_value=value)
        elif kind is int:
            add(int_value=value)
        elif kind is bool:
            add(bool_value=value)
        elif value is None:
            add(null_value=0)
        elif kind is float:
            add(double_value=value)
        elif kind is datetime:
            add(datetime_value=microseconds(value))
        elif kind is dict:
            inner = add().object_value
            inner.SetInParent()
            fill_object(inner, value)
        else:
            inner = add().list_value
            inner.SetInParent()
            fill_values(inner.values, value)


def object_of(message: Any) -> dict[str, Any]:
    """The data in an `Object`."""
    keys = message.keys
    values = values_of(message.values)
    data = dict(zip(keys, values, strict=False))
    if not len(keys) == len(values) == len(data):
        raise InvalidRequestError("an object has not one value for each of its keys")
    return data


def values_of(messages: Any) -> list[Any]:
    """The values in a repeated field."""
    values: list[Any] = []
    for message in messages:
        kind = message.WhichOneof("kind")
        if kind is None:
            raise InvalidRequestError(
                "a value has no kind, or one that is unknown here"
            )
        if kind == "null_value":
            values.append(None)
        elif kind == "object_value":
            values.append(object_of(message.object_value))
        elif kind == "list_value":
            values.append(values_of(message.list_value.values))
        elif kind == "datetime_value":
            values.append(moment_of(message.datetime_value))
        else:
            values.append(getattr(message, kind))
    return values


# -- ids ---------------------------------------------------------------------------


def fill_pattern(target: Any, pattern: PatternPath) -> None:
    """Write a parsed pattern or prefix."""
    target.SetInParent()
    for position, segment in enumerate(pattern):
        if isinstance(segment, str):
            target.segments.append(segment)
        else:
            target.segments.append("")
            target.any.append(position)


def pattern_of(message: Any) -> PatternPath:
    """The pattern or prefix in a message."""
    segments: list[Any] = list(message.segments)
    for position in message.any:
        if position >= len(segments) or segments[position]:
            raise InvalidRequestError("a pattern has ANY where it has no place")
        segments[position] = ANY
    return tuple(segments)


def fill_within(target: Any, prefixes: Sequence[PatternPath] | None) -> None:
    """Write `within`, which is not there where everything is."""
    if prefixes is None:
        return
    target.within.SetInParent()
    for prefix in prefixes:
        fill_pattern(target.within.prefixes.add(), prefix)


def within_of(request: Any) -> list[Pattern] | None:
    """The `within` of a request."""
    if not request.HasField("within"):
        return None
    few(len(request.within.prefixes), "prefixes")
    return [pattern_of(prefix) for prefix in request.within.prefixes]


# -- queries -----------------------------------------------------------------------


def fill_where(target: Any, predicates: Iterable[Predicate]) -> None:
    """Write checked predicates; the values of `in` and `nin` are a list."""
    for field, operator, value in predicates:
        message = target.where.add(field=field, operator=operator)
        given = list(value) if operator in ("in", "nin") else value
        holder = pb.List()
        fill_values(holder.values, [given])
        message.value.CopyFrom(holder.values[0])


def where_of(request: Any) -> list[Predicate]:
    """The predicates of a request."""
    few(len(request.where), "predicates")
    return [
        (each.field, each.operator, values_of([each.value])[0])
        for each in request.where
    ]


def reads_of(request: Any) -> list[tuple[str, PatternPath]]:
    """The reads of a request."""
    reads = [(read.collection, pattern_of(read.id)) for read in request.reads]
    few(sum(not is_exact(pattern) for _, pattern in reads), "patterns with ANY")
    return reads


def few(count: int, what: str) -> None:
    """Refuse what one request must not have many of, for what each of them costs.

    Raises:
        InvalidRequestError: There are too many.
    """
    if count > MOST:
        raise InvalidRequestError(f"{count} {what} are more than {MOST} in one request")


def order_of(request: Any) -> Order | None:
    """The order of a request."""
    if not request.HasField("order_by"):
        return None
    return request.order_by.field, request.order_by.direction


def fill_spec(target: Any, spec: CollectionSpec) -> None:
    """Write a checked declaration."""
    target.name = spec.name
    for field in spec.fields:
        target.fields.add(
            name=field.name,
            type=field.type,
            indexed=field.indexed,
            unique=field.unique,
        )
    for group in spec.unique_together:
        target.unique_together.add(fields=group)


def spec_of(message: Any) -> CollectionSpec:
    """The declaration in a message."""
    few(len(message.fields), "fields")
    few(len(message.unique_together), "groups of unique_together")
    return CollectionSpec(
        message.name,
        tuple(
            FieldSpec(field.name, field.type, field.indexed, field.unique)
            for field in message.fields
        ),
        tuple(tuple(group.fields) for group in message.unique_together),
    )


# -- documents ---------------------------------------------------------------------


def fill_stamp(target: Any, document: Document) -> None:
    """Write what the store knows of a document besides its data."""
    target.version = document.version
    target.created = microseconds(document.created_at)
    target.updated = microseconds(document.updated_at)


def fill_document(target: Any, document: Document) -> None:
    """Write a document."""
    target.id.extend(path_of(document.id))
    fill_object(target.data, document.data)
    fill_stamp(target.stamp, document)


def document_of(message: Any) -> Document:
    """The document in a message."""
    if not message.id:
        raise InvalidRequestError("a document has no id")
    return stamped(tuple(message.id), object_of(message.data), message.stamp)


def stamped(path: Path, data: dict[str, Any], stamp: Any) -> Document:
    """A document of these data."""
    created = stamp.created
    first = moment_of(created)
    updated = stamp.updated
    last = first if updated == created else moment_of(updated)
    return Document(id_of(path), data, stamp.version, first, last)
