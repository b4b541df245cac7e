"""Prints what increments cost: bytes, runs and time, on three kinds of value."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import ormsgpack

from jskv_saver.checkpoint.increments import Fresh, Run, plan

Step = Callable[[list[dict[str, str]]], list[dict[str, str]]]
STEPS = 450


def main() -> None:
    """Print one line for each kind."""
    rng = random.Random(1)

    def message() -> dict[str, str]:
        return {"id": rng.randbytes(8).hex(), "content": rng.randbytes(300).hex()}

    def grow(messages: list[dict[str, str]]) -> list[dict[str, str]]:
        return [*messages, message()]

    def window(messages: list[dict[str, str]]) -> list[dict[str, str]]:
        return [*messages, message()][-40:]

    def edit(messages: list[dict[str, str]]) -> list[dict[str, str]]:
        edited = list(messages) or [message() for _ in range(40)]
        edited[rng.randrange(len(edited))] = message()
        return edited

    for name, step in (("growing", grow), ("window of 40", window), ("edited", edit)):
        print(f"{name:14}{measure(step)}")


def measure(step: Step) -> str:
    """Follow a value through `STEPS` steps."""
    messages: list[dict[str, str]] = []
    old, runs = b"", list[Run]()
    distinct: set[bytes] = set()
    whole = stored = most = 0
    spent = 0.0
    for number in range(STEPS):
        messages = step(messages)
        distinct |= {ormsgpack.packb(message) for message in messages}
        new = ormsgpack.packb(messages)
        started = time.perf_counter()
        pieces = plan(old, runs, new)
        spent += time.perf_counter() - started
        old, runs, fresh = new, [], 0
        for piece in pieces:
            if isinstance(piece, Fresh):
                length = piece.end - piece.start
                runs.append(Run(number.to_bytes(8, "big"), fresh, length))
                fresh += length
            else:
                runs.append(piece)
        whole += len(new)
        stored += fresh
        most = max(most, len(runs))
    size = sum(map(len, distinct))
    return (
        f"distinct {size:>9,} B, stored {stored:>9,} B ({stored / size:.1f}x), "
        f"whole each step {whole:>11,} B, at most {most} runs, "
        f"{spent / STEPS * 1e6:.0f} us a step"
    )


if __name__ == "__main__":
    main()
