"""Clocks that are wrong by hours: the latest is the greatest id, for everybody."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from typing import Any, TypedDict

import pytest
from langgraph.checkpoint.base import id as ids_module
from langgraph.graph import END, START, StateGraph
from tests.attacks.clocks import hours_of, skewed_id
from tests.attacks.indexes import check_threads
from tests.checkpoint.saving import (
    OpenSaver,
    at,
    get,
    id_of,
    ids,
    listed,
    parent_of,
    put,
    values,
)
from tests.conftest import BINARY

import jskv_saver
from jskv_saver import DocumentCheckpointSaver, MemoryDocumentStore
from jskv_saver.errors import WriterConflictError
