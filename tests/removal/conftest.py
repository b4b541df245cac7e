"""Savers on each store, as the tests of the saver have them."""

from __future__ import annotations

from tests.checkpoint.conftest import open_saver, other, saver

__all__ = ["open_saver", "other", "saver"]
