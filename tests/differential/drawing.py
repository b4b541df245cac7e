"""Ids, values and checkpoints by chance: all of it from one `random.Random`."""

from __future__ import annotations

import uuid
from bisect import bisect_right
from random import Random
from typing import Any

from tests.differential.model import COUNTERS, State

CHANNELS = ["a", "b", "c", "d"]
DELTAS = ["x", "y"]
"""Delta channels: most checkpoints count their steps and leave out their value."""
SPECIAL = ["__error__", "__interrupt__", "__resume__"]
RUNS = [f"run {n}" for n in range(6)]
TASKS = ["task 1", "task 2", str(uuid.UUID(int=1)), str(uuid.UUID(int=2))]
TAGS = [0, 1, 2, True, None]
_IDS = 1500
_SIZES = [3, 200, 270, 600, 3000, 9000]
"""Bytes of a text: in hexadecimal on each side of what a record keeps in itself."""


class Drawing:
    """Draws what the calls of a game are about."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.ids = sorted({self._id() for _ in range(_IDS)})

    def _id(self) -> str:
        """A UUID, what looks like one, or any text."""
        plain = str(uuid.UUID(int=self.random.getrandbits(128)))
        kind = self.random.random()
        if kind < 0.5:
            return plain
        if kind < 0.6:
            return plain.upper()
        if kind < 0.7:
            return f"{plain[:8]} {plain[9:]}"
        if kind < 0.75:
            return "".join(self.random.choices("0123456789abcdef-", k=36))
        if kind < 0.8:
            return plain.replace("-", "")
        if kind < 0.9:
            return f"{self.random.randrange(10**6):06}"
        letter = self.random.choice("abcf0123XYZé *.>")
        return letter * self.random.randrange(1, 4) + str(self.random.randrange(100))

    def any_id(self) -> str:
        return self.random.choice(self.ids)

    def next_id(self, head: str | None) -> str:
        """A little above the greatest, as long as there is one."""
        at = bisect_right(self.ids, head) if head is not None else 0
        at += int(self.random.expovariate(0.8))
        return self.ids[at] if at < len(self.ids) else self.any_id()

    def value(self, old: Any = None) -> Any:
        """A value; of a list often the same with one more at its end."""
        kind = self.random.random()
        if isinstance(old, list) and kind < 0.7:
            gone = 1 if self.random.random() < 0.3 else 0
            return [*old[gone:], self._text(4, 40, 300)]
        if kind < 0.3:
            return self.random.randrange(10**9)
        if kind < 0.4:
            return None
        if kind < 0.6:
            return [self._text(10, 300, 900)]
        return self._text(*_SIZES)

    def _text(self, *sizes: int) -> str:
        return self.random.randbytes(self.random.choice(sizes)).hex()

    def writes(self) -> list[tuple[str, Any]]:
        """Regular and special writes of one call."""
        channels = [*CHANNELS, *DELTAS, *DELTAS, *SPECIAL]
        chosen = self.random.choices(channels, k=self.random.randrange(1, 4))
        writes = [(channel, self.value()) for channel in chosen]
        if self.random.random() < 0.03:
            # Larger than a part.
            writes.insert(0, ("x", self.random.randbytes(300_000).hex()))
        return writes

    def state(self, parent: str | None, of_parent: State | None) -> State:
        """A checkpoint that continues another one; channels change by chance."""
        random = self.random
        values = dict(of_parent.values) if of_parent else {}
        versions = dict(of_parent.versions) if of_parent else {}
        newest = max((v for v in versions.values() if isinstance(v, int)), default=0)
        for channel in random.sample(CHANNELS, random.randrange(4)):
            if random.random() < 0.1:
                values.pop(channel, None)
            else:
                values[channel] = self.value(values.get(channel))
            versions[channel] = newest + 1
        counters: dict[str, list[int]] = {}
        for channel in DELTAS:
            values.pop(channel, None)
            if random.random() < 0.25:
                values[channel] = self.value()
                versions[channel] = newest + 1
            elif parent is not None or random.random() < 0.5:
                # The number of steps is a hint: a wrong one changes no answer.
                steps = random.choice([0, 1, 2, 5, 60])
                counters[channel] = [random.randrange(5), steps]
        if random.random() < 0.05:
            versions["other"] = random.choice([1.5, float("inf"), 2**70, "0001.5"])
        sources = ["loop", "loop", "loop", "input", "update", "fork"]
        metadata: dict[str, Any] = {
            "source": random.choice(sources),
            "step": random.randrange(100),
        }
        if random.random() < 0.9:
            metadata["tag"] = random.choice(TAGS)
        if counters:
            metadata[COUNTERS] = counters
        if random.random() < 0.8:
            metadata["run_id"] = random.choice(RUNS)
        return State(parent, values, versions, metadata, random.choice([None, ["a"]]))
