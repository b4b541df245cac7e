"""How large all is that is stored: everything follows from how small a part may be."""

from __future__ import annotations

DOCUMENT = 8192
"""Bytes of a document: four KiB are a part, so that small states have several."""
ALONE = 600
"""Bytes of a value that has a part of its own. A record brings one such itself."""
FEW = 120
"""New bytes that a record brings itself."""
LARGE = 4600
"""Bytes of writes that are kept in two parts."""
