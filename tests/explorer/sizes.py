"""How large all is that is stored: everything follows from how small a part may be."""

from __future__ import annotations

APART = 600
"""Bytes of a value that a record does not hold itself: a part has them."""
DOCUMENT = 6144
"""Bytes of a document: two KiB are a part, so that small states have several."""
LARGE = 2500
"""Bytes of writes that are kept in two parts."""
