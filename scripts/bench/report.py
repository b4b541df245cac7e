"""Tables of what was measured: medians, p99 and ratios."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from scripts.bench.run import Results

OURS = "jskv"
ORDER = (OURS, "sqlite", "postgres", "redis", "memory", "raw request")
"""Of the columns, whoever was measured first."""


@dataclass(frozen=True)
class Figure:
    """One saver's figures for one line; the best tenth is what noise met least."""

    median: float
    best: float
    p99: float
    count: int
    unit: str


Figures = Mapping[str, Mapping[str, Figure]]
"""Of one workload: by line and saver."""


def figures_of(results: Results) -> Figures:
    """What the samples say."""
    return {
        line: {
            saver: Figure(
                statistics.median(samples),
                _best(samples, results.units[line]),
                percentile(samples, 0.99),
                len(samples),
                results.units[line],
            )
            for saver, samples in savers.items()
        }
        for line, savers in results.samples.items()
    }


def _best(samples: Sequence[float], unit: str) -> float:
    return percentile(samples, 0.9 if unit == "ops/s" else 0.1)


def percentile(samples: Sequence[float], share: float) -> float:
    """The least sample that this share of the samples does not exceed."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def rows(figures: Figures) -> Iterator[list[str]]:
    """A table: its head, then a row for each line."""
    savers = list(dict.fromkeys(name for line in figures.values() for name in line))
    savers.sort(key=ORDER.index)
    peers = [name for name in savers if name != OURS] if OURS in savers else []
    yield ["line", *savers, *(f"ours / {peer}" for peer in peers)]
    for line, by_saver in figures.items():
        unit = next(iter(by_saver.values())).unit
        cells = [_cell(by_saver.get(saver)) for saver in savers]
        ratios = [_ratio(by_saver, peer) for peer in peers]
        yield [f"{line} ({unit})", *cells, *ratios]


def _cell(figure: Figure | None) -> str:
    if figure is None:
        return "-"
    if figure.count < 5:
        return _short(figure.median)
    return f"{_short(figure.median)} / {_short(figure.p99)}"


def _ratio(by_saver: Mapping[str, Figure], peer: str) -> str:
    if OURS not in by_saver or peer not in by_saver:
        return "-"
    return f"{by_saver[OURS].median / by_saver[peer].median:.2f}"


def _short(value: float) -> str:
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def as_text(table: Sequence[Sequence[str]]) -> str:
    """Columns side by side."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return "\n".join(
        row[0].ljust(widths[0])
        + "".join(
            f"  {cell:>{width}}"
            for cell, width in zip(row[1:], widths[1:], strict=True)
        )
        for row in table
    )


def as_markdown(table: Sequence[Sequence[str]]) -> str:
    """The same as a table of a document."""
    head, *rest = table
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rest]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
