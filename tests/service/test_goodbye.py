"""In which order a service says to the server that it leaves, and asks for its word."""

from __future__ import annotations

from typing import Any

import pytest
from nats.aio.client import Client

from jskv_saver._nats.listener import Listener


async def test_the_last_ping_is_behind_what_it_asks_about(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[bytes] = []
    transport: Any = client._transport
    write, writelines = transport.write, transport.writelines

    def noted(data: bytes) -> None:
        sent.append(bytes(data))
        write(data)

    def all_noted(lines: list[bytes]) -> None:
        sent.extend(map(bytes, lines))
        writelines(lines)

    monkeypatch.setattr(transport, "write", noted)
    monkeypatch.setattr(transport, "writelines", all_noted)
    listener = Listener(client, "goodbye.*", "q", lambda msg: None)

    await listener.start()
    words = b"".join(sent)
    assert words.index(b"SUB goodbye.*") < words.rindex(b"PING")
    sent.clear()
    await listener.drain()
    words = b"".join(sent)
    assert words.index(b"UNSUB") < words.rindex(b"PING")
    await listener.close()
