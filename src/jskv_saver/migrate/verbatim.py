"""Values that pass through unread: no type of the user is made, no byte changes."""

from __future__ import annotations

import copy
from typing import Any, Final

import ormsgpack
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.base import CipherProtocol, SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import EXT_DELTA_SNAPSHOT, JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot

OPTION: Final = ormsgpack.OPT_NON_STR_KEYS
"""What LangGraph unpacks with."""


class Verbatim(SerializerProtocol):
    """LangGraph's serialiser, whose extension types stay bytes in a shell.

    Loaded, a type that cannot be imported here would turn into something else. What
    would not come out again as it went in is loaded the usual way.
    """

    def __init__(self, inner: SerializerProtocol) -> None:
        self._inner = inner
        self._cipher: CipherProtocol | None = None
        self._plain = inner
        if isinstance(inner, EncryptedSerializer):
            self._cipher, self._plain = inner.cipher, inner.serde

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        """As the serialiser does."""
        return self._inner.dumps_typed(obj)

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        """The value, with a shell in the place of each extension type."""
        kind, separator, cipher = data[0].partition("+")
        body = data[1]
        if separator and self._cipher is not None:
            body = self._cipher.decrypt(cipher, body)
        if kind == "msgpack":
            value = _unpacked(body)
            if self._plain.dumps_typed(value) == (kind, body):
                return value
        return self._plain.loads_typed((kind if self._cipher else data[0], body))


def _unpacked(body: bytes) -> Any:
    return ormsgpack.unpackb(body, ext_hook=_shell, option=OPTION)


def _shell(code: int, body: bytes) -> Any:
    if code == EXT_DELTA_SNAPSHOT:
        # Savers look for it among the values, and store it in its own way.
        return _DeltaSnapshot(_unpacked(body))
    return ormsgpack.Ext(code, bytes(body))


def passing(saver: BaseCheckpointSaver[Any]) -> BaseCheckpointSaver[Any]:
    """A copy of a saver, on the same storage, through which values pass unread.

    One with a serialiser of somebody else's is given back as it is.
    """
    serde = saver.serde
    inner = serde.serde if isinstance(serde, EncryptedSerializer) else serde
    if type(inner) is not JsonPlusSerializer:
        return saver
    # As LangGraph itself makes copies with another serialiser.
    clone = copy.copy(saver)
    clone.serde = Verbatim(serde)
    return clone
