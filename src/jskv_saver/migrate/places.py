"""Addresses of savers, as the command line takes them → savers.

The packages of others are imported when one of their addresses is opened, and their
errors become ours here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    asynccontextmanager,
    contextmanager,
)
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from langgraph.checkpoint.base import BaseCheckpointSaver

from jskv_saver.checkpoint.encryption import Encryption
from jskv_saver.connect import JetStreamSaver
from jskv_saver.errors import (
    BucketNotFoundError,
    InvalidRequestError,
    StoreUnavailableError,
)
from jskv_saver.migrate.archives import archive

Saver = BaseCheckpointSaver[Any]
Opener = Callable[[str, bool], AbstractAsyncContextManager[Saver]]

FORMS: Final = (
    "nats://HOST:PORT/BUCKET?namespace=NAME&agent=NAME&encrypted=yes",
    "jskv:BUCKET?namespace=NAME&agent=NAME (the server of NATS_URL or the context)",
    "postgresql://USER@HOST/DATABASE",
    "sqlite:PATH",
    "redis://HOST:PORT/DB (langgraph-checkpoint-plainredis)",
    "archive:PATH?namespace=NAME&agent=NAME (of `jskv export`)",
)
"""What an address looks like."""


class NothingThereError(InvalidRequestError):
    """There is no bucket, database or file of this address."""


@asynccontextmanager
async def opened(address: str, *, make: bool) -> AsyncIterator[Saver]:
    """The saver at an address, closed at the end.

    Args:
        address: One of `FORMS`.
        make: Make the bucket, tables or file where there is none.

    Raises:
        InvalidRequestError: The address is none, or needs a package that is missing.
        NothingThereError: Nothing is there, and nothing is to be made.
        StoreUnavailableError: No server answers, or a database fails.
    """
    opener = OPENERS.get(address.partition(":")[0].lower())
    if opener is None or ":" not in address:
        raise InvalidRequestError(
            f"{shown(address)!r} is no place to move threads from or to: write "
            + "; or ".join(FORMS)
        )
    async with opener(address, make) as saver:
        yield saver


def shown(address: str) -> str:
    """An address without its login and its parameters."""
    before, separator, rest = address.partition("://")
    return before + separator + rest.rpartition("@")[2].partition("?")[0]


@asynccontextmanager
async def _bucket(address: str, make: bool) -> AsyncIterator[Saver]:
    parts = urlsplit(address)
    own = parts.scheme == "jskv"
    names = _parameters(address, "namespace", "agent", "encrypted")
    encrypted = names.get("encrypted", "no")
    if encrypted not in ("yes", "no"):
        raise InvalidRequestError(f"encrypted= has to be yes or no, not {encrypted!r}")
    saver = JetStreamSaver.from_conn_string(
        None if own else f"{parts.scheme}://{parts.netloc}",
        bucket=unquote(parts.path).strip("/") or "jskv",
        namespace=names.get("namespace", "default"),
        agent_id=names.get("agent", "default"),
        encryption=Encryption.from_env() if encrypted == "yes" else None,
        create=make,
    )
    async with AsyncExitStack() as stack:
        try:
            await stack.enter_async_context(saver)
        except BucketNotFoundError as exc:
            raise NothingThereError(f"{exc} at {shown(address)}") from exc
        yield saver


@asynccontextmanager
async def _archive(address: str, make: bool) -> AsyncIterator[Saver]:
    names = _parameters(address, "namespace", "agent")
    path = _path_of(address)
    if not make and not _is_file(path):
        raise NothingThereError(f"there is no file {str(path)!r}")
    async with archive(
        path, names.get("namespace"), names.get("agent"), keep=make
    ) as saver:
        yield saver


def _parameters(address: str, *known: str) -> dict[str, str]:
    """What follows the question mark."""
    names = dict(parse_qsl(address.partition("?")[2], keep_blank_values=True))
    if unknown := sorted(names.keys() - set(known)):
        raise InvalidRequestError(
            f"{shown(address)!r} takes {'=, '.join(known)}=, not {unknown[0]}="
        )
    return names


def _path_of(address: str) -> Path:
    text = address.partition(":")[2].partition("?")[0]
    return Path(unquote(text.removeprefix("//")))


def _is_file(path: Path) -> bool:
    """Whether there is a file."""
    return path.is_file()


@asynccontextmanager
async def _sqlite(address: str, make: bool) -> AsyncIterator[Saver]:
    with _extra("langgraph-checkpoint-sqlite"):
        import aiosqlite
        from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
    # Nothing is changed in a source, nor by a dry run.
    uri = _uri_of(address, "rwc" if make else "ro")
    try:
        async with aiosqlite.connect(uri, uri=True) as connection:
            tables = await connection.execute_fetchall(
                "SELECT name FROM sqlite_master WHERE name = 'checkpoints'"
            )
            if not make and not list(tables):
                raise NothingThereError(f"{shown(address)} has no checkpoints")
            yield AsyncSqliteSaver(connection)
    except aiosqlite.Error as exc:
        raise StoreUnavailableError(f"SQLite: {exc}") from exc


def _uri_of(address: str, mode: str) -> str:
    path = _path_of(address)
    if mode == "ro" and not _is_file(path):
        raise NothingThereError(f"there is no file {str(path)!r}")
    return f"{path.absolute().as_uri()}?mode={mode}"


@asynccontextmanager
async def _postgres(address: str, make: bool) -> AsyncIterator[Saver]:
    with _extra("langgraph-checkpoint-postgres"):
        import psycopg
        from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
    try:
        async with AsyncPostgresSaver.from_conn_string(address) as saver:
            if make:
                await saver.setup()
            async with saver._cursor() as cursor:
                await cursor.execute("SELECT to_regclass('checkpoints') AS there")
                row = await cursor.fetchone()
            if row is None or row["there"] is None:
                raise NothingThereError(f"{shown(address)} has no checkpoints")
            yield saver
    except psycopg.Error as exc:
        raise StoreUnavailableError(f"PostgreSQL: {exc}") from exc


@asynccontextmanager
async def _redis(address: str, make: bool) -> AsyncIterator[Saver]:
    with _extra("langgraph-checkpoint-plainredis"):
        import redis
        from langgraph_checkpoint_plainredis import AsyncRedisSaver
    try:
        saver = AsyncRedisSaver(url=address)
        try:
            yield saver
        finally:
            await saver.aclose()
    except redis.RedisError as exc:
        raise StoreUnavailableError(f"Redis: {exc}") from exc


@contextmanager
def _extra(package: str) -> Iterator[None]:
    try:
        yield
    except ModuleNotFoundError as exc:
        raise InvalidRequestError(
            f"this address needs {package} (there is no {exc.name}); install it with: "
            'pip install "jskv-saver[migrate]"'
        ) from exc


OPENERS: Final[Mapping[str, Opener]] = {
    "archive": _archive,
    "jskv": _bucket,
    "nats": _bucket,
    "tls": _bucket,
    "postgres": _postgres,
    "postgresql": _postgres,
    "redis": _redis,
    "rediss": _redis,
    "sqlite": _sqlite,
}
"""Scheme → how its savers are opened."""
