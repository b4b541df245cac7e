"""Places to move threads from and to."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from tests.migrate import databases

KINDS = ["bucket", "sqlite", "postgres", *(["redis"] if databases.HAS_REDIS else [])]


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    with databases.postgres() as url:
        yield url


@pytest.fixture(scope="session")
def redis_urls() -> Iterator[Iterator[str]]:
    with databases.redis() as url:
        yield (f"{url}/{number}" for number in itertools.count())


Place = Callable[[str], str]


@pytest.fixture
def place(request: pytest.FixtureRequest, nats_url: str, tmp_path: Path) -> Place:
    """The address of a new place of some kind, with nothing in it."""

    def new(kind: str) -> str:
        name = f"m{secrets.token_hex(6)}"
        if kind == "bucket":
            return f"{nats_url}/{name}?namespace=my_app&agent=a%2B1"
        if kind in ("archive", "sqlite"):
            return f"{kind}:{tmp_path / name}"
        if kind == "redis":
            return str(next(request.getfixturevalue("redis_urls")))
        url = str(request.getfixturevalue("postgres_url"))
        with psycopg.connect(f"{url}/postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return f"{url}/{name}"

    return new
