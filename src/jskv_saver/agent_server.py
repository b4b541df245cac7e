"""The checkpointer of LangGraph's Agent Server and of `langgraph dev`.

One line in `langgraph.json`, no code:

    "checkpointer": {"path": "jskv_saver.agent_server.checkpointer"}

Where the server is, is said as everywhere: `NATS_URL`, or the current NATS context,
else localhost:4222. The variables in `VARIABLES` say the rest.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from nats.aio.client import RawCredentials

from jskv_saver._nats.settings import resolve
from jskv_saver.checkpoint.encryption import Encryption
from jskv_saver.checkpoint.envelope import VARIABLE as _KEYS
from jskv_saver.connect import JetStreamSaver
from jskv_saver.errors import InvalidRequestError

__all__ = ["VARIABLES", "checkpointer"]

_log: Final = logging.getLogger(__name__)
_YES_NO: Final = {"true": True, "1": True, "false": False, "0": False}


def _yes_no(text: str) -> bool:
    return _YES_NO[text.lower()]


def _texts(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


VARIABLES: Final[Mapping[str, tuple[str, Callable[[str], Any], str]]] = {
    "JSKV_BUCKET": ("bucket", str, "text"),
    "JSKV_NAMESPACE": ("namespace", str, "text"),
    "JSKV_AGENT_ID": ("agent_id", str, "text"),
    "JSKV_ON_CONFLICT": ("on_conflict", str, "fork or raise"),
    "JSKV_REPLICAS": ("replicas", int, "a number"),
    "JSKV_STORAGE": ("storage", str, "file or memory"),
    "JSKV_COMPRESSION": ("compression", str, "s2 or none"),
    "JSKV_MAX_BYTES": ("max_bytes", int, "a number of bytes"),
    "JSKV_PLACEMENT_CLUSTER": ("placement_cluster", str, "text"),
    "JSKV_PLACEMENT_TAGS": ("placement_tags", _texts, "texts with commas"),
    "JSKV_DOMAIN": ("domain", str, "text"),
    "JSKV_API_PREFIX": ("api_prefix", str, "text"),
    "JSKV_TIMEOUT": ("timeout", float, "a number of seconds"),
    "JSKV_CREATE": ("create", _yes_no, "true or false"),
    "JSKV_TELEMETRY": ("telemetry", _yes_no, "true or false"),
}
"""Variable → argument of `JetStreamSaver.from_conn_string`, its reader, its form."""


@asynccontextmanager
async def checkpointer() -> AsyncIterator[JetStreamSaver]:
    """A saver on the running loop, as the environment says; closed at the end.

    The Agent Server enters it once for each of its event loops. Its loop is never
    blocked: files are read, and the saver is made, in a thread.

    Raises:
        InvalidRequestError: A variable has no legal value, or looks like a misspelt
            one; the login, or LANGGRAPH_AES_KEY, is none.
        StoreUnavailableError: No NATS server answers.
    """
    saver = await asyncio.to_thread(_from_environment, os.environ)
    async with saver:
        _log.info(
            "Agent Server: checkpoints go to the namespace %r of agent %r",
            saver.namespace,
            saver.agent_id,
            extra={"event": "jskv.agent_server.ready"},
        )
        yield saver


def _from_environment(environment: Mapping[str, str]) -> JetStreamSaver:
    """The saver that the environment describes; blocks while it reads files."""
    arguments = _arguments(environment)
    telemetry = arguments.pop("telemetry", False)
    saver = JetStreamSaver.from_conn_string(
        serde=_serialiser(environment),
        encryption=Encryption.from_env() if _KEYS in environment else None,
        **_login(),
        **arguments,
    )
    if telemetry:
        # Who does not ask for it needs no OpenTelemetry.
        from jskv_saver.otel import instrument

        instrument(saver)
    return saver


def _arguments(environment: Mapping[str, str]) -> dict[str, Any]:
    """What the variables say, by the names of the arguments."""
    arguments = {}
    for name, text in environment.items():
        if name in VARIABLES and text:
            argument, read, form = VARIABLES[name]
            try:
                arguments[argument] = read(text)
            except (LookupError, ValueError):
                raise InvalidRequestError(
                    f"{name} has to be {form}, not {text!r}"
                ) from None
        elif name.startswith("JSKV_") and name not in (*VARIABLES, _KEYS):
            # State in another bucket than was meant would be found much later.
            if near := get_close_matches(name, [*VARIABLES, _KEYS], 1, cutoff=0.85):
                raise InvalidRequestError(
                    f"there is no variable {name}: did you mean {near[0]}?"
                )
    return arguments


def _login() -> dict[str, Any]:
    """What files say of the login, read now: nats-py would read them on the loop."""
    options = resolve().options
    credentials, seed = options.get("user_credentials"), options.get("nkeys_seed")
    if isinstance(credentials, str):
        return {"user_credentials": RawCredentials(_read(credentials))}
    if isinstance(seed, str):
        return {"nkeys_seed_str": _read(seed).strip()}
    return {}


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except (OSError, UnicodeDecodeError) as exc:
        raise InvalidRequestError(
            f"the login is in {path!r}, which cannot be read: {exc}"
        ) from exc


def _serialiser(environment: Mapping[str, str]) -> SerializerProtocol | None:
    """LangGraph's default, which encrypts where its own variable has a key."""
    if not environment.get("LANGGRAPH_AES_KEY"):
        return None
    try:
        return EncryptedSerializer.from_pycryptodome_aes()
    except (ImportError, ValueError) as exc:
        raise InvalidRequestError(f"LANGGRAPH_AES_KEY: {exc}") from exc
