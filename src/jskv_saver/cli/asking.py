"""Asking before something is destroyed, and reading ages."""

from __future__ import annotations

import re
import sys
from datetime import timedelta
from typing import Annotated, Final

import typer

from jskv_saver.errors import InvalidRequestError

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Only tell what would be done.")
]

_AGE: Final = re.compile(r"(\d+(?:\.\d+)?)([smhdw])").fullmatch
_UNITS: Final = {
    "s": "seconds",
    "m": "minutes",
    "h": "hours",
    "d": "days",
    "w": "weeks",
}
AGE: Final = "e.g. 90s, 15m, 12h, 30d, 2w"


def age_of(option: str, text: str | None) -> timedelta | None:
    """An age as people write it.

    Raises:
        InvalidRequestError: It is none.
    """
    if text is None:
        return None
    found = _AGE(text.strip())
    if found is None:
        raise InvalidRequestError(f"{option} {text!r:.40} is no age: {AGE}")
    number, unit = found.groups()
    try:
        return timedelta(**{_UNITS[unit]: float(number)})
    except OverflowError:
        raise InvalidRequestError(f"{option} {text!r:.40} is too long an age") from None


def confirm(question: str, *, yes: bool) -> None:
    """Go on only if that is wanted; else end with exit code 1.

    Raises:
        InvalidRequestError: Nobody can be asked.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise InvalidRequestError(
            f"{question} Nobody can be asked here: add --yes, or look with --dry-run"
        )
    if not typer.confirm(question, err=True):
        print("nothing was done", file=sys.stderr)
        raise typer.Exit(1)
