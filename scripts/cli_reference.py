"""The reference of the command line in docs/cli.md, from what `--help` says.

    python scripts/cli_reference.py --write

writes it anew, between two marks; without `--write` it says whether it is up to date.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer

from jskv_saver.cli.app import app

PAGE = Path(__file__).parents[1] / "docs" / "cli.md"
BEGIN = "<!-- made by scripts/cli_reference.py from --help -->"
END = "<!-- end -->"


def reference() -> str:
    """The reference as Markdown."""
    group: Any = typer.main.get_command(app)
    root = group.make_context("jskv", ["version"], resilient_parsing=True)
    lines: list[str] = []
    for name in group.list_commands(root):
        command = group.get_command(root, name)
        lines += [f"### jskv {name}", ""]
        lines += section(command, name, root)
    return "\n".join(lines)


def section(command: Any, name: str, root: Any) -> Iterator[str]:
    context = type(root)(command, info_name=name, parent=root)
    yield "```text"
    yield " ".join(["jskv", name, *command.collect_usage_pieces(context)])
    yield "```"
    yield ""
    for paragraph in (command.help or "").strip().split("\n\n"):
        if paragraph.startswith("    "):
            yield from ("```text", *(line[4:] for line in paragraph.split("\n")), "```")
        else:
            yield " ".join(paragraph.split())
        yield ""
    rows = [param.get_help_record(context) for param in command.get_params(context)]
    shown = [row for row in rows if row is not None and "--help" not in row[0]]
    if shown:
        yield "| | |"
        yield "|---|---|"
        for option, text in shown:
            yield f"| `{cell(option)}` | {cell(text)} |"
        yield ""


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def page(text: str) -> str:
    """The page with the reference of today."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{reference()}\n{END}{after}"


def main() -> None:
    text = PAGE.read_text()
    fresh = page(text)
    if "--write" in sys.argv[1:]:
        PAGE.write_text(fresh)
    elif fresh != text:
        sys.exit("docs/cli.md is stale: python scripts/cli_reference.py --write")


if __name__ == "__main__":
    main()
