"""LangGraph's own conformance suite, encrypted by this package and by LangGraph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from tests.checkpoint.conformance import (
    Factory,
    asynchronous,
    conform,
    entered,
    not_entered,
)
from tests.checkpoint.saving import OpenSaver

from jskv_saver import DocumentCheckpointSaver


@pytest.mark.parametrize(
    "opened", [asynchronous, entered, not_entered], ids=lambda f: f.__name__
)
async def test_all_81_tests_pass_with_encryption(
    open_saver: OpenSaver, opened: Callable[[OpenSaver], Factory]
) -> None:
    await conform(opened(open_saver))


@pytest.mark.parametrize("opened", [asynchronous, entered], ids=lambda f: f.__name__)
async def test_all_81_tests_pass_with_langgraph_s_encrypted_serialiser(
    open_saver: OpenSaver, opened: Callable[[OpenSaver], Factory]
) -> None:
    def open_(**options: Any) -> DocumentCheckpointSaver:
        serde = EncryptedSerializer.from_pycryptodome_aes(key=b"0123456789abcdef")
        return open_saver(**({"serde": serde, "encryption": None} | options))

    await conform(opened(open_))
