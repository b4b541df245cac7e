"""Declarations of collections: their rules, merging, and what documents owe. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, TypeAlias, get_args

from jskv_saver.document.model import CollectionSpec, FieldSpec, FieldType
from jskv_saver.document.names import check_declarable, shown
from jskv_saver.document.ordering import canonical_bytes
from jskv_saver.document.predicates import check_field
from jskv_saver.errors import IncompatibleDeclarationError, InvalidRequestError

Constraint: TypeAlias = tuple[str, ...]
"""The fields, sorted, whose values together are unique."""

_FIELD_TYPES: Final = frozenset(get_args(FieldType))
_ACCEPTED: Final[dict[str, tuple[type, ...]]] = {
    "string": (str,),
    "int": (int,),
    "float": (float, int),
    "bool": (bool,),
    "datetime": (datetime,),
    "bytes": (bytes,),
}


def parse_spec(spec: CollectionSpec) -> CollectionSpec:
    """Check a declaration by itself and return its canonical form.

    That is: fields by name, groups of `unique_together` as sorted tuples, sorted, each
    once. Whether the groups name declared fields is seen in `merge`, for a field may
    have been declared earlier.

    Raises:
        InvalidRequestError: It breaks a rule.
    """
    if type(spec) is not CollectionSpec:
        raise InvalidRequestError(
            f"the declaration is a {type(spec).__name__}, not a CollectionSpec"
        )
    check_declarable(spec.name)
    fields: dict[str, FieldSpec] = {}
    for field in _sequence("fields", spec.fields):
        _check_field_spec(field)
        if field.name in fields:
            raise InvalidRequestError(f"the field {shown(field.name)} stands twice")
        fields[field.name] = field
    groups = {
        _parse_group(group)
        for group in _sequence("unique_together", spec.unique_together)
    }
    return CollectionSpec(
        spec.name,
        tuple(fields[name] for name in sorted(fields)),
        tuple(sorted(groups)),
    )


def merge(stored: CollectionSpec | None, added: CollectionSpec) -> CollectionSpec:
    """The stored declaration with another one added; both in canonical form.

    Raises:
        IncompatibleDeclarationError: A field's type differs from the stored one.
        InvalidRequestError: A group names a field that neither declares.
    """
    fields = {} if stored is None else {field.name: field for field in stored.fields}
    for field in added.fields:
        present = fields.get(field.name)
        if present is None:
            fields[field.name] = field
            continue
        if present.type != field.type:
            raise IncompatibleDeclarationError(
                f"the field {shown(field.name)} of {shown(added.name)} is declared as "
                f"{present.type}, not {field.type}",
                collection=added.name,
            )
        fields[field.name] = FieldSpec(
            field.name,
            field.type,
            indexed=present.indexed or field.indexed,
            unique=present.unique or field.unique,
        )
    groups = set(added.unique_together)
    for group in groups:
        for name in group:
            if name not in fields:
                raise InvalidRequestError(
                    f"unique_together names {shown(name)}, which is not declared"
                )
    if stored is not None:
        groups.update(stored.unique_together)
    return CollectionSpec(
        added.name,
        tuple(fields[name] for name in sorted(fields)),
        tuple(sorted(groups)),
    )


def mistyped_field(spec: CollectionSpec, data: dict[str, Any]) -> str | None:
    """What is wrong with the first field that has not its declared type, or None."""
    for field in spec.fields:
        value = data.get(field.name)
        if value is None or field.type == "json":
            continue
        if type(value) not in _ACCEPTED[field.type]:
            return (
                f"the field {shown(field.name)} is declared as {field.type}, "
                f"not {type(value).__name__}"
            )
    return None


def check_declared(spec: CollectionSpec, data: dict[str, Any]) -> None:
    """Check a document's checked data against the declaration.

    Raises:
        InvalidRequestError: A field has not its declared type; the message names it.
    """
    wrong = mistyped_field(spec, data)
    if wrong is not None:
        raise InvalidRequestError(f"{wrong}, in {shown(spec.name)}")


def unique_constraints(spec: CollectionSpec) -> tuple[Constraint, ...]:
    """The unique constraints of a declaration in canonical form, sorted, each once."""
    single = {(field.name,) for field in spec.fields if field.unique}
    return tuple(sorted(single.union(spec.unique_together)))


def unique_key(constraint: Constraint, data: dict[str, Any]) -> bytes | None:
    """What must differ between any two documents; None when this one is exempt.

    The same bytes for exactly the values that `eq` holds equal, in every process.
    """
    values = [data.get(name) for name in constraint]
    return None if None in values else canonical_bytes(values)


def _check_field_spec(field: Any) -> None:
    if type(field) is not FieldSpec:
        raise InvalidRequestError(
            f"fields has a {type(field).__name__}, not a FieldSpec"
        )
    check_field(field.name, "the name of a field")
    if not field.name:
        raise InvalidRequestError("the name of a declared field is empty")
    if not _is_field_type(field.type):
        raise InvalidRequestError(
            f"the field {shown(field.name)} has the type {shown(field.type)}, not one "
            f"of {' '.join(get_args(FieldType))}"
        )
    if {type(field.indexed), type(field.unique)} != {bool}:
        raise InvalidRequestError(
            f"indexed and unique of the field {shown(field.name)} are not bools"
        )


def _is_field_type(name: Any) -> bool:
    return type(name) is str and name in _FIELD_TYPES


def _parse_group(group: Any) -> Constraint:
    names = _sequence("a group of unique_together", group)
    for name in names:
        check_field(name, "a name in unique_together")
    if len(names) < 2:
        raise InvalidRequestError(
            "a group of unique_together has fewer than two fields: "
            "declare one field as unique instead"
        )
    if len(set(names)) < len(names):
        raise InvalidRequestError("a group of unique_together names a field twice")
    return tuple(sorted(names))


def _sequence(what: str, value: Any) -> tuple[Any, ...]:
    if type(value) is not tuple and type(value) is not list:
        raise InvalidRequestError(f"{what} is a {type(value).__name__}, not a tuple")
    return tuple(value)
