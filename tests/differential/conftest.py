"""Savers on each store, as `tests/checkpoint` has them."""

from __future__ import annotations

from tests.checkpoint.conftest import open_saver

__all__ = ["open_saver"]
