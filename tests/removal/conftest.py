"""Savers on each store, as the tests of the saver have them, and the command."""

from __future__ import annotations

from tests.checkpoint.conftest import open_saver, other, saver
from tests.integration.conftest import run
from tests.removal.commanding import fill, left, use

__all__ = ["fill", "left", "open_saver", "other", "run", "saver", "use"]
