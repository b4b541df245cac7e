"""The reference pages name what the package has, and nothing else."""

from __future__ import annotations

import re

from tests.documents.blocks import ROOT

import jskv_saver
from jskv_saver import errors

DOCS = ROOT / "docs"


def rows(page: str) -> list[list[str]]:
    """The cells of the tables of a page."""
    lines = (DOCS / page).read_text().splitlines()
    return [
        [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in lines
        if line.startswith("|")
    ]


def test_the_errors_are_those_of_the_package() -> None:
    shown = {
        name.strip("`"): (int(code), retryable == "yes")
        for name, code, retryable, *_ in rows("errors.md")
        if name.startswith("`")
    }
    assert shown == {
        name: (error.code, error.retryable)
        for name in errors.__all__
        if (error := getattr(errors, name)) is not errors.JskvError
    }


def test_what_the_errors_are_besides_and_have_is_so() -> None:
    listed = [row for row in rows("errors.md") if row[0].startswith("`")]
    for name, _, _, details, when, _ in listed:
        error = getattr(errors, name.strip("`"))
        assert re.findall(r"`(\w+)`", details) == list(error.fields_), name
        also = re.search(r"Also an? `(\w+)`", when)
        builtin = [
            base.__name__
            for base in error.__mro__
            if base.__module__ == "builtins"
            and base not in (Exception, BaseException, object)
        ]
        assert [also[1] if also else None] == (builtin[:1] or [None]), name


def test_the_api_page_describes_every_public_name() -> None:
    page = (DOCS / "api.md").read_text()
    described = set(re.findall(r"auto\w+:: jskv_saver\.(\w+)", page))
    assert set(jskv_saver.__all__) - {"ANY", "__version__", "errors"} <= described
