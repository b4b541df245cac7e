"""What a check finds: how bad it is, what it is, and what mends it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum


class Level(IntEnum):
    """How bad it is."""

    OK = 0
    NOTE = 1
    WARNING = 2
    ERROR = 3

    @property
    def word(self) -> str:
        """As it is printed."""
        return self.name.lower()


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        topic: What.
        level: How bad it is.
        text: What was found.
        fix: The command that mends it, or what to do; empty: nothing is to be done.
    """

    topic: str
    level: Level
    text: str
    fix: str = ""


def ok(topic: str, text: str) -> Finding:
    """All is well."""
    return Finding(topic, Level.OK, text)


def note(topic: str, text: str, fix: str = "") -> Finding:
    """Worth knowing."""
    return Finding(topic, Level.NOTE, text, fix)


def warning(topic: str, text: str, fix: str) -> Finding:
    """It works, and should be mended."""
    return Finding(topic, Level.WARNING, text, fix)


def error(topic: str, text: str, fix: str) -> Finding:
    """It does not work."""
    return Finding(topic, Level.ERROR, text, fix)


def worst(findings: Iterable[Finding]) -> Level:
    """The worst level."""
    return max((finding.level for finding in findings), default=Level.OK)
