"""The code blocks of the documents, and what the comments before them say.

A block is marked by an HTML comment on the lines before it:

    <!-- not run: why -->          nobody runs it
    <!-- needs                     Python that is run before it, and shown to nobody
    graph = ...
    -->
    <!-- then                      Python that is run after it, and shown to nobody
    await answer(graph)
    -->
    <!-- run until: text -->       sh: ended by Ctrl-C when it has printed this
    <!-- goes on: text -->         sh: the same, at the end of the page

`<!-- runnable -->` is a program on its own, for `tests/acceptance/test_readme.py`.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

RUN = frozenset({"python", "sh"})
READ = frozenset({"conf", "json", "toml"})
SHOWN = frozenset({"proto", "text"})

_BLOCK = re.compile(
    r"(?P<marks>(?:^ *<!--(?:(?!-->).)*?-->\n+)*)"
    r"^(?P<indent> *)```(?P<language>[^\n]*)\n(?P<code>.*?)^(?P=indent)```$"
    r"(?:\n+(?P=indent)```text\n(?P<output>.*?)^(?P=indent)```$)?",
    re.MULTILINE | re.DOTALL,
)
_MARK = re.compile(r"<!--\s*(.*?)\s*-->", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block. `output` is the text block right after it, if there is one."""

    page: Path
    line: int
    language: str
    code: str
    output: str | None
    not_run: str | None = None
    needs: str = ""
    then: str = ""
    until: str | None = None
    goes_on: str | None = None
    alone: bool = False

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def pages() -> list[Path]:
    """All documents that have blocks."""
    top = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]
    found = [*top, *sorted((ROOT / "docs").rglob("*.md"))]
    return [page for page in found if "```" in page.read_text()]


def blocks(page: Path) -> list[Block]:
    """The blocks of a page, in order.

    Raises:
        ValueError: A mark is none of those above.
    """
    text = page.read_text()
    return [_block(page, text, found) for found in _BLOCK.finditer(text)]


def _block(page: Path, text: str, found: re.Match[str]) -> Block:
    line = text.count("\n", 0, found.start("language")) + 1
    not_run = until = goes_on = None
    hidden = {"needs": "", "then": ""}
    alone = False
    for mark in _MARK.findall(found["marks"]):
        if mark.startswith("not run:"):
            not_run = mark.removeprefix("not run:").strip()
        elif (word := mark.partition("\n")[0]) in hidden:
            hidden[word] += textwrap.dedent(mark.partition("\n")[2]) + "\n"
        elif mark.startswith("run until:"):
            until = mark.removeprefix("run until:").strip()
        elif mark.startswith("goes on:"):
            goes_on = mark.removeprefix("goes on:").strip()
        elif mark == "runnable":
            alone = True
        elif re.match(r"not|need|run|then|goes", mark):
            raise ValueError(f"{page.name}:{line}: <!-- {mark} --> says nothing known")
    return Block(
        page,
        line,
        found["language"].strip(),
        textwrap.dedent(found["code"]),
        found["output"] and textwrap.dedent(found["output"]),
        not_run,
        hidden["needs"],
        hidden["then"],
        until,
        goes_on,
        alone,
    )


def matches(output: str, shown: str) -> bool:
    """Whether an output is what a page shows, where `…` stands for anything."""
    pattern = ".*?".join(map(re.escape, shown.strip().split("…")))
    return re.fullmatch(pattern, output.strip(), re.DOTALL) is not None
