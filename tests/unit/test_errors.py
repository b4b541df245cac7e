from __future__ import annotations

import pickle
import re

import pytest

from jskv_saver import errors
from jskv_saver.errors import (
    JskvError,
    LeaseHeldError,
    StoreUnavailableError,
    VersionConflictError,
)

CLASSES: list[type[JskvError]] = [getattr(errors, name) for name in errors.__all__]
CONCRETE = [cls for cls in CLASSES if cls is not JskvError]

each = pytest.mark.parametrize("cls", CLASSES, ids=lambda cls: cls.__name__)


def _subclasses(cls: type[JskvError]) -> set[type[JskvError]]:
    return {cls}.union(*(_subclasses(sub) for sub in cls.__subclasses__()))


def _name(cls: type[JskvError]) -> str:
    return cls.__name__


def _tree() -> dict[str, tuple[str, int, str]]:
    """Of the module's docstring: name → parent, code, remark."""
    parents = ["JskvError"]
    tree = {}
    for line in (errors.__doc__ or "").splitlines():
        found = re.fullmatch(r" {4}([│ ]*)[├└]─ (\w+)\s+(\d+)\s*(.*)", line)
        if found:
            depth = 1 + len(found[1]) // 3
            parents[depth:] = [found[2]]
            tree[found[2]] = (parents[depth - 1], int(found[3]), found[4])
    return tree


def test_all_errors_are_exported() -> None:
    public = {e for e in _subclasses(JskvError) if e.__module__ == errors.__name__}
    assert public == set(CLASSES)


def test_codes_are_unique() -> None:
    codes = [cls.code for cls in CLASSES]
    assert len(set(codes)) == len(codes)


def test_the_docstring_draws_the_tree_that_exists() -> None:
    drawn = {name: (parent, code) for name, (parent, code, _) in _tree().items()}
    real = {}
    for cls in CONCRETE:
        base = cls.__bases__[0].__name__
        real[cls.__name__] = (base, cls.code)
    assert drawn == real


def test_the_docstring_names_the_other_bases_and_what_is_retryable() -> None:
    remarks = {name: remark for name, (_, _, remark) in _tree().items() if remark}
    real = {}
    for cls in CONCRETE:
        others = [base.__name__ for base in cls.__bases__[1:]]
        if others:
            real[cls.__name__] = f"also {', '.join(others)}"
        elif cls.retryable:
            real[cls.__name__] = "retryable"
    assert remarks == real


def test_only_what_wrote_nothing_is_retryable() -> None:
    retryable = {cls for cls in CLASSES if cls.retryable}
    assert retryable == {LeaseHeldError, StoreUnavailableError}


@each
def test_errors_survive_pickling(cls: type[JskvError]) -> None:
    details = {name: f"value of {name}" for name in cls.fields_}
    error = cls("what is wrong", **details)

    copy = pickle.loads(pickle.dumps(error))

    assert type(copy) is cls
    assert str(copy) == "what is wrong"
    assert copy.details == details
    for name, value in details.items():
        assert getattr(copy, name) == value


@each
def test_details_left_out_are_none(cls: type[JskvError]) -> None:
    assert cls().details == dict.fromkeys(cls.fields_)


@each
def test_unknown_details_are_refused(cls: type[JskvError]) -> None:
    with pytest.raises(TypeError, match="no detail"):
        cls("x", colour="red")


CONFLICTS = sorted(_subclasses(VersionConflictError), key=_name)


@pytest.mark.parametrize("cls", CONFLICTS)
def test_conflicts_all_tell_the_versions(cls: type[VersionConflictError]) -> None:
    error = cls("x", expected=1, actual=2)
    assert (error.expected, error.actual) == (1, 2)
