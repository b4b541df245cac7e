"""Keys of the tests: any, but always the same, so that what fails can be repeated."""

from __future__ import annotations

from hashlib import sha256

NEW = sha256(b"new").digest()
OLD = sha256(b"old").digest()
OTHER = sha256(b"other").digest()
