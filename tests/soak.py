"""Whether this run has hours or minutes: what CI does once, `make soak` does long."""

from __future__ import annotations

import os

SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
