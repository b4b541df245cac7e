"""Predicates on a document's top-level fields: `(field, operator, value)`. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, cast, get_args

from jskv_saver.document.model import Operator, Predicate
from jskv_saver.document.names import is_text, shown
from jskv_saver.document.ordering import (
    Kind,
    canonical_bytes,
    equality_key,
    kind_of,
    order_key,
)
from jskv_saver.document.values import check_value
from jskv_saver.errors import InvalidRequestError

MAX_IN_VALUES: Final = 500

_OPERATORS: Final = frozenset(get_args(Operator))
_SCALARS: Final = frozenset(
    {Kind.BOOL, Kind.NUMBER, Kind.STRING, Kind.DATETIME, Kind.BYTES}
)


@dataclass(frozen=True, slots=True)
class Filter:
    """One parsed predicate.

    Attributes:
        field: A top-level key, literally.
        operator: As in the predicate.
        value: A checked private copy; of `in` and `nin` a tuple of values.
        operand: The value as it is compared: an equality key, a frozenset of them
            (`in`, `nin`), an order key (`lt lte gt gte`), or a bool (`exists`).
    """

    field: str
    operator: Operator
    value: Any
    operand: Any

    def matches(self, data: Mapping[str, Any]) -> bool:
        """Whether a document with this data matches."""
        if self.operator == "exists":
            return (self.field in data) is self.operand
        if self.field not in data:
            return False
        value = data[self.field]
        match self.operator:
            case "eq":
                return _equals(value, self.operand)
            case "ne":
                return not _equals(value, self.operand)
            case "in":
                return equality_key(value) in self.operand
            case "nin":
                return equality_key(value) not in self.operand
            case "contains":
                return type(value) is list and any(
                    _equals(item, self.operand) for item in value
                )
            case _:
                return self._compares(value)

    def canonical(self) -> bytes:
        """Bytes that are the same for exactly the predicates that mean the same."""
        if self.operator in ("in", "nin"):
            # Each on its own: the order and repetition of the values say nothing.
            meaning: Any = sorted(set(map(canonical_bytes, self.value)))
        else:
            meaning = self.value
        return canonical_bytes([self.field, self.operator, meaning])

    def _compares(self, value: Any) -> bool:
        have, want = order_key(value), self.operand
        if have[0] != want[0]:
            return False
        match self.operator:
            case "lt":
                return bool(have < want)
            case "lte":
                return bool(have <= want)
            case "gt":
                return bool(have > want)
            case _:
                return bool(have >= want)


def parse_where(where: Iterable[Predicate]) -> tuple[Filter, ...]:
    """Check predicates and take private copies; an iterable is used up here.

    Raises:
        InvalidRequestError: One of them breaks a rule; the message names which.
    """
    if isinstance(where, str | bytes | Mapping):
        raise InvalidRequestError(
            f"where is a {type(where).__name__}, not an iterable of predicates"
        )
    return tuple(
        _parse(predicate, f"where[{position}]")
        for position, predicate in enumerate(_materialised(where, "where"))
    )


def check_field(field: str, name: str) -> str:
    """Return a field's name, which may be any text."""
    if type(field) is not str:
        raise InvalidRequestError(f"{name} is a {type(field).__name__}, not a str")
    if not is_text(field):
        raise InvalidRequestError(
            f"{name}, {shown(field)}, has a NUL or an unpaired surrogate"
        )
    return field


def _parse(predicate: Any, name: str) -> Filter:
    if type(predicate) not in (tuple, list) or len(predicate) != 3:
        raise InvalidRequestError(f"{name} is not a triple (field, operator, value)")
    field, operator, value = predicate
    check_field(field, f"the field of {name}")
    operator = _parse_operator(operator, name)
    name = f"the value of {name}"
    if operator == "exists":
        if type(value) is not bool:
            raise InvalidRequestError(f"{name} is not True or False")
        return Filter(field, operator, value, value)
    if operator in ("in", "nin"):
        values = _in_values(value, name)
        return Filter(field, operator, values, frozenset(map(equality_key, values)))
    value = check_value(value, name)
    if operator in ("eq", "ne", "contains"):
        return Filter(field, operator, value, equality_key(value))
    if kind_of(value) not in _SCALARS:
        raise InvalidRequestError(
            f"{name} is a {type(value).__name__}, which has no order; {operator} "
            "compares bools, numbers, strings, datetimes and bytes"
        )
    return Filter(field, operator, value, order_key(value))


def _parse_operator(operator: Any, name: str) -> Operator:
    if type(operator) is not str or operator not in _OPERATORS:
        raise InvalidRequestError(
            f"{name} has the operator {shown(operator)}, not one of "
            f"{' '.join(get_args(Operator))}"
        )
    return cast(Operator, operator)


def _in_values(values: Any, name: str) -> tuple[Any, ...]:
    if isinstance(values, str | bytes | bytearray | Mapping):
        raise InvalidRequestError(
            f"{name} is a {type(values).__name__}, not an iterable of values"
        )
    # One more than allowed is enough to refuse, also what never ends.
    given = list(islice(_materialised(values, name), MAX_IN_VALUES + 1))
    if len(given) > MAX_IN_VALUES:
        raise InvalidRequestError(f"{name} has more than {MAX_IN_VALUES} values")
    return tuple(
        check_value(value, f"{name}[{position}]")
        for position, value in enumerate(given)
    )


def _materialised(values: Iterable[Any], name: str) -> Iterable[Any]:
    if not isinstance(values, Iterable):
        raise InvalidRequestError(
            f"{name} is a {type(values).__name__}, not an iterable"
        )
    return values


def _equals(value: Any, operand: Any) -> bool:
    # The kind first: no need to fold a large list to see that it is not a string.
    return kind_of(value) is operand[0] and bool(equality_key(value) == operand)
