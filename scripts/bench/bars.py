"""What this saver is held to: a line, beside whom, and the bound."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from scripts.bench.report import Figure, Figures


@dataclass(frozen=True)
class Bar:
    """Ours through theirs is at most the bound, or at least; or ours alone is."""

    workload: str
    line: str
    peer: str
    bound: float
    at_least: bool = False

    def judge(self, ours: float, theirs: float) -> tuple[float, bool]:
        """What was measured, and whether that is within the bound."""
        value = ours / theirs
        return value, value >= self.bound if self.at_least else value <= self.bound


ALONE = ""
_ONE = Figure(1.0, 1.0, 1.0, 1, "")
_TABLE = """
chat        aput, end              sqlite 0.62  redis 0.45  postgres 0.18
chat        aput, start            sqlite 0.42  redis 0.5
chat        aput_writes            sqlite 0.33  redis 0.5
chat        latest read, end       sqlite 0.88
chat        read, fresh process    sqlite 1.2
chat        all operations         sqlite 0.5
chat        stored                 alone 1.55
wide        aput                   sqlite 0.3
wide        stored                 alone 0.48
history     list 10                sqlite 0.5
history     list 10, stranger      sqlite 0.8
history     list all               sqlite 0.7
history     filter 1 %             sqlite 2
history     by id                  sqlite 0.5
threads     random latest          postgres 0.55
threads     delete                 postgres 0.8
threads     list(None, 20)         sqlite 0.65
big         aput                   sqlite 0.65
big         read, fresh process    postgres 0.25  sqlite 2
concurrent  throughput             sqlite >4  redis >2.5  postgres >5
graph       sync, a run            sqlite 0.53  redis 0.66
graph       async, a run           sqlite 0.53  redis 0.66
graph       blocking, a run        sqlite 0.8
delta       latest state           sqlite 1  postgres 0.55
delta       state by id            sqlite 1  postgres 0.55
window      stored / distinct bytes  alone 2
window      aput                   sqlite 0.62
floor       small aput             raw_request 1.35
floor       aput_writes            raw_request 1
floor       read by id             raw_request 1.2
"""


def bars() -> Iterator[Bar]:
    """All of them, in the order of the table."""
    for row in _TABLE.strip().splitlines():
        workload = row[:12].strip()
        line, _, bounds = row[12:].partition("  ")
        words = bounds.split()
        for peer, bound in zip(words[::2], words[1::2], strict=True):
            yield Bar(
                workload,
                line.strip(),
                ALONE if peer == "alone" else peer.replace("_", " "),
                float(bound.removeprefix(">")),
                bound.startswith(">"),
            )


def judged(figures: Mapping[str, Figures]) -> Iterator[tuple[str, bool | None]]:
    """A text for each bar of what was run, and whether it is kept.

    None: a saver that it needs was not there.
    """
    for bar in bars():
        if bar.workload not in figures:
            continue
        savers = figures[bar.workload].get(bar.line, {})
        relation = ">=" if bar.at_least else "<="
        beside = f" / {bar.peer}" if bar.peer else ""
        text = f"{bar.workload:11}{bar.line + beside:42}{relation} {bar.bound:<6g}"
        if "jskv" not in savers or (bar.peer and bar.peer not in savers):
            yield f"{text}not measured", None
            continue
        ours, theirs = savers["jskv"], savers.get(bar.peer, _ONE)
        value, kept = bar.judge(ours.median, theirs.median)
        quiet, _ = bar.judge(ours.best, theirs.best)
        word = "ok" if kept else "MISS"
        yield f"{text}{value:8.3f}  {word:6}(best tenth {quiet:.3f})", kept
