"""How much is explored: a share in every run, everything in `make soak`."""

from __future__ import annotations

import os

SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
"""Whether this is `make soak`."""
SHARE = 0.6
"""Seconds of schedules by chance for each scenario, in every run."""
SMALL = ("lost-writes", "first-writes")
"""Scenarios of which every run explores all schedules."""
