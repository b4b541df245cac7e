"""What commands print: text for people, or JSON for programs.

Ids and values come from others. They are printed as `Text`, never as markup, and
with everything that does not print escaped.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shlex
import shutil
import sys
from datetime import UTC, datetime
from typing import Any, NoReturn

from rich.console import Console
from rich.text import Text

from jskv_saver.checkpoint.inspect import ThreadRef, escaped
from jskv_saver.cli.hints import hint_for

FAILED = 1
"""Exit code: what was asked for was not done; one line on standard error says why."""
USAGE = 2
"""Exit code: the command line is none; nothing was sent."""
STOPPED = 3
"""Exit code of `status`: the server does not run."""
WARNED = 3
"""Exit code of `doctor`: it works, and something should be mended."""
BROKEN = 4
"""Exit code of `doctor`: something does not work."""
INTERRUPTED = 130
"""Exit code: ended by Ctrl-C."""

_NEVER_FOLDED = 10_000


def console() -> Console:
    """A console on standard output; where that is no terminal, rows stay lines."""
    width = None if sys.stdout.isatty() or os.environ.get("COLUMNS") else _NEVER_FOLDED
    return Console(
        width=width,
        # Nothing at all: rich itself would leave bold and dim.
        color_system=None if os.environ.get("NO_COLOR") else "auto",
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=False,
    )


def shown(text: str, style: str = "") -> Text:
    """A text of others: escaped, and quoted where one would not see it."""
    safe = escaped(text)
    if not safe or safe != safe.strip():
        safe = f'"{safe}"'
    return Text(safe, style=style, overflow="fold")


def time_of(moment: datetime | None) -> str:
    """A moment in UTC, to the second."""
    if moment is None:
        return "-"
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def size_of(count: int) -> str:
    """A number of bytes for people."""
    size = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1000
    return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"


def counted(count: int, noun: str) -> str:
    """A number of things."""
    return f"{count} {noun}" + ("" if count == 1 else "s")


def command() -> str:
    """How a shell calls this program: by its path, unless `jskv` finds the same."""
    running = os.path.abspath(sys.argv[0])
    if os.path.basename(running) != "jskv" or not os.access(running, os.X_OK):
        return f"{shlex.quote(sys.executable)} -m jskv_saver"
    found = shutil.which("jskv")
    if found and os.path.samefile(found, running):
        return "jskv"
    return shlex.quote(running)


def failed(error: Exception) -> NoReturn:
    """Say in one line on standard error what is wrong and what to do, and exit."""
    complain(str(error), hint_for(error))
    sys.exit(FAILED)


def complain(text: str, hint: str = "") -> None:
    """Print one line on standard error."""
    line = " ".join(text.split())
    if hint:
        line += f" (hint: {hint})"
    # Messages quote what others named; a backslash is then escaped already.
    print(f"jskv: {line if line.isprintable() else escaped(line)}", file=sys.stderr)


def print_json(value: Any) -> None:
    """Print as JSON in ASCII: control characters of others stay escaped."""
    json.dump(value, sys.stdout, indent=2, ensure_ascii=True)
    print()


def plain(value: Any) -> Any:
    """A dataclass as JSON types; a thread's reference becomes three fields."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if not dataclasses.is_dataclass(value):
        return value
    fields: dict[str, Any] = {}
    for field in dataclasses.fields(value):
        item = getattr(value, field.name)
        if isinstance(item, ThreadRef):
            fields |= plain(item)
        else:
            fields[field.name] = plain(item)
    return fields
