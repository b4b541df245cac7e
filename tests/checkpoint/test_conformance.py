"""LangGraph's own conformance suite: every capability, no test left out."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.checkpoint.conformance import (
    Factory,
    asynchronous,
    conform,
    entered,
    not_entered,
)
from tests.checkpoint.saving import OpenSaver


@pytest.mark.parametrize(
    "opened", [asynchronous, entered, not_entered], ids=lambda f: f.__name__
)
async def test_all_81_tests_of_all_capabilities_run_and_pass(
    open_saver: OpenSaver, opened: Callable[[OpenSaver], Factory]
) -> None:
    await conform(opened(open_saver))
