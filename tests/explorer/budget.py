"""How much is explored: a share in every run, everything in `make soak`."""

from __future__ import annotations

import os

from tests.explorer.scenarios import PAIRS, SCENARIOS

SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
"""Whether this is `make soak`."""
SHARE = 60 if SOAK else 0.5
"""Seconds of schedules by chance for each scenario."""
RECOVERY = 1 if SOAK else 4
"""Of every how many states of these it is looked at what is left if all die."""
COMPLETE = list({**PAIRS, **SCENARIOS}) if SOAK else ["lost-writes", "first-writes"]
"""Scenarios of which all schedules are tried."""
WALKS = 100 if SOAK else 1
"""Schedules by chance of each scenario in which the memory of actors is looked at."""
REPLAYS = 100 if SOAK else 2
"""Schedules of each scenario that are replayed on the JetStream store."""
