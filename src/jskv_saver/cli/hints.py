"""What to do about an error, where its text does not say so itself. Pure."""

from __future__ import annotations

from typing import Final

from jskv_saver.checkpoint.archive import ARCHIVE
from jskv_saver.errors import (
    BucketNotFoundError,
    CorruptDocumentError,
    DivergentCheckpointError,
    DocumentNotFoundError,
    EncryptionError,
    JskvError,
    PermissionDeniedError,
    StorageFullError,
    StoreUnavailableError,
    UnknownOutcomeError,
    UnsuitableBucketError,
    UnsupportedFormatError,
)

# The most specific one first.
_HINTS: Final[tuple[tuple[type[JskvError], str], ...]] = (
    (
        BucketNotFoundError,
        "the first saver makes it; or name another with --bucket",
    ),
    (
        DocumentNotFoundError,
        "`jskv threads` and `jskv history THREAD` list what is there",
    ),
    (PermissionDeniedError, "`jskv doctor` tries each subject that is needed"),
    (StorageFullError, "`jskv doctor` tells how full it is"),
    (UnsuitableBucketError, "`jskv doctor` tells what does not fit"),
    (UnsupportedFormatError, "pip install -U jskv-saver"),
    (DivergentCheckpointError, "into another namespace: --namespace"),
    (EncryptionError, "values are shown by the program that has the key"),
    (
        CorruptDocumentError,
        "`jskv verify` tells what else is damaged",
    ),
    (UnknownOutcomeError, "look at what is there, then repeat it if need be"),
    (StoreUnavailableError, "`jskv doctor` looks closer"),
)


def hint_for(error: Exception) -> str:
    """What to do about an error; empty: its text says all there is to say."""
    if isinstance(error, CorruptDocumentError) and error.key == ARCHIVE:
        return "is it a file of `jskv export`? Then export once more"
    for kind, hint in _HINTS:
        if isinstance(error, kind):
            return hint
    return ""
