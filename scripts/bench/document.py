"""All tables of a run, as text, as JSON, and as a section of a document."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from scripts.bench.pace import Pace, verdict
from scripts.bench.report import Figures, as_markdown, as_text, rows

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks.md"


@dataclass
class Tables:
    """By workload: the figures, and the machine's pace before and after."""

    figures: dict[str, Figures] = field(default_factory=dict)
    paces: dict[str, Pace] = field(default_factory=dict)

    def add(self, name: str, figures: Figures, pace: Pace) -> None:
        """One more workload."""
        self.figures[name] = figures
        self.paces[name] = pace

    def text(self, name: str) -> str:
        """A workload's table, under the pace."""
        return f"{self.paces[name]}\n{as_text(list(rows(self.figures[name])))}"

    def markdown(self, name: str) -> str:
        """The same for a document."""
        table = as_markdown(list(rows(self.figures[name])))
        return f"### {name}\n\n{table}\n\n{self.paces[name]}"

    def as_json(self, lines: Sequence[str]) -> dict[str, Any]:
        """Everything."""
        return {
            "savers": list(lines),
            "workloads": {
                name: {
                    "pace": asdict(self.paces[name]),
                    "lines": {
                        line: {saver: asdict(figure) for saver, figure in each.items()}
                        for line, each in figures.items()
                    },
                }
                for name, figures in self.figures.items()
            },
        }


def write(lines: Sequence[str], tables: Tables, *, durable: bool) -> None:
    """Replace the page's section of this kind of run; the rest is left."""
    kind = "durable" if durable else "default"
    begin, end = f"<!-- {kind}: begin -->", f"<!-- {kind}: end -->"
    settings = "\n".join(f"- {line}" for line in lines)
    told = verdict(tables.paces.values())
    body = "\n\n".join([settings, *map(tables.markdown, tables.figures), told])
    section = re.compile(f"{re.escape(begin)}.*{re.escape(end)}", re.DOTALL)
    text = section.sub(
        lambda _: f"{begin}\n{body}\n{end}", PAGE.read_text(encoding="utf-8")
    )
    PAGE.write_text(text, encoding="utf-8")
