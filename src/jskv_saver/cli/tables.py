"""Tables that keep ids whole: on a narrow terminal other columns fold, or go."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

_GAP = 2


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Attributes:
        name: Its heading.
        right: Aligned to the right, as numbers are.
        folds_to: The width down to which it may be folded; None: never folded, so
            that what is in it can be copied.
        goes: Where there is no room: 0 never, else the smallest goes first.
    """

    name: str
    right: bool = False
    folds_to: int | None = None
    goes: int = 0


Cell = str | Text


def print_table(
    out: Console, columns: Sequence[Column], rows: Sequence[Sequence[Cell]]
) -> None:
    """Print a table, and which of its columns the terminal has no room for."""
    width = out.width
    wanted = [
        max(cell_len(column.name), *(_width(row[at]) for row in rows), 0)
        for at, column in enumerate(columns)
    ]
    least = [
        size if column.folds_to is None else min(size, column.folds_to)
        for column, size in zip(columns, wanted, strict=True)
    ]
    left = list(range(len(columns)))
    gone = sorted((c.goes, at) for at, c in enumerate(columns) if c.goes)
    hidden: list[str] = []
    for _, at in gone:
        if _total(least, left) <= width:
            break
        left.remove(at)
        hidden.append(columns[at].name)
    widths = _widened(least, wanted, left, width)
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, _GAP, 0, 0))
    for at in left:
        column = columns[at]
        justify: Literal["left", "right"] = "right" if column.right else "left"
        table.add_column(
            column.name,
            justify=justify,
            no_wrap=column.folds_to is None,
            overflow="fold",
            width=widths[at],
        )
    for row in rows:
        table.add_row(*(row[at] for at in left))
    # Wider than the terminal, if it must be: that wraps a line without breaking it.
    out.width = max(width, _total(least, left))
    try:
        out.print(table)
    finally:
        out.width = width
    if hidden:
        out.print(
            Text(f"no room here for: {', '.join(hidden)}", style="dim"), soft_wrap=True
        )


def _widened(
    least: Sequence[int], wanted: Sequence[int], chosen: Sequence[int], width: int
) -> list[int]:
    """The least widths, with what is left given to those that want little more."""
    widths = list(least)
    room = max(0, width - _total(least, chosen))
    hungry = sorted(chosen, key=lambda at: wanted[at] - least[at])
    for count, at in zip(range(len(hungry), 0, -1), hungry, strict=True):
        more = min(wanted[at] - least[at], room // count)
        widths[at] += more
        room -= more
    return widths


def _total(widths: Sequence[int], chosen: Sequence[int]) -> int:
    return sum(widths[at] for at in chosen) + _GAP * (len(chosen) - 1)


def _width(cell: Cell) -> int:
    return cell_len(cell.plain if isinstance(cell, Text) else cell)
