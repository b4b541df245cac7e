"""A nats-server in operator mode, and the credentials file of a user of it."""

from __future__ import annotations

import base64
import json
import secrets
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nkeys
from tests.conftest import BINARY
from tests.patience import wait_until

from jskv_saver._server_process import find_binary

_UNLIMITED = dict.fromkeys(
    ["subs", "data", "payload", "conn", "leaf", "imports", "exports"], -1
)
_STORAGE = dict.fromkeys(["mem_storage", "disk_storage", "streams", "consumer"], -1)


def seed_of(kind: int) -> bytes:
    """A new key pair's seed."""
    seed: bytes = nkeys.encode_seed(secrets.token_bytes(32), kind)
    return seed


def public_of(seed: bytes) -> str:
    """The public key that belongs to a seed."""
    key: bytes = nkeys.from_seed(bytearray(seed)).public_key
    return key.decode()


def _encoded(value: bytes | Mapping[str, Any]) -> str:
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def jwt(issuer: bytes, subject: str, **claims: Any) -> str:
    """A token of NATS, signed by the issuer's seed."""
    body = {
        "jti": secrets.token_hex(16),
        "iat": int(time.time()),
        "iss": public_of(issuer),
        "sub": subject,
        "name": "test",
        "nats": {"version": 2, **claims},
    }
    head = {"typ": "JWT", "alg": "ed25519-nkey"}
    signed = f"{_encoded(head)}.{_encoded(body)}"
    signature: bytes = nkeys.from_seed(bytearray(issuer)).sign(signed.encode())
    return f"{signed}.{_encoded(signature)}"


class Operator:
    """An operator with one account, which signs its users."""

    def __init__(self) -> None:
        self._seed = seed_of(nkeys.PREFIX_BYTE_OPERATOR)
        self._account = seed_of(nkeys.PREFIX_BYTE_ACCOUNT)

    def config(self) -> str:
        """What makes a server believe this operator, and nobody else."""
        system = public_of(seed_of(nkeys.PREFIX_BYTE_ACCOUNT))
        account = public_of(self._account)
        preload = {
            system: jwt(self._seed, system, type="account", limits=_UNLIMITED),
            account: jwt(
                self._seed, account, type="account", limits=_UNLIMITED | _STORAGE
            ),
        }
        operator = jwt(
            self._seed, public_of(self._seed), type="operator", system_account=system
        )
        return (
            f"operator: {operator}\nsystem_account: {system}\nresolver: MEMORY\n"
            f"resolver_preload: {json.dumps(preload)}\n"
        )

    def creds(self, **claims: Any) -> str:
        """The text of a credentials file, of a new user."""
        seed = seed_of(nkeys.PREFIX_BYTE_USER)
        limits = {"subs": -1, "data": -1, "payload": -1}
        token = jwt(self._account, public_of(seed), type="user", **limits, **claims)
        return (
            f"-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n"
            f"-----BEGIN USER NKEY SEED-----\n{seed.decode()}\n"
            "------END USER NKEY SEED------\n"
        )


@contextmanager
def operated(operator: Operator, home: Path) -> Iterator[str]:
    """The address of a server of the operator. `LocalServer` has no login there."""
    path = home / "nats-server.conf"
    path.write_text(
        f'listen: "127.0.0.1:-1"\nports_file_dir: "{home}"\n'
        f'jetstream {{ store_dir: "{home / "store"}" }}\n{operator.config()}'
    )
    with (
        (home / "log").open("wb") as log,
        subprocess.Popen(
            [find_binary(BINARY), "-c", str(path)], stdout=log, stderr=log
        ) as process,
    ):
        try:
            ports = home / f"nats-server_{process.pid}.ports"
            wait_until(lambda: process.poll() is not None or ports.exists())
            assert process.poll() is None, (home / "log").read_text()
            wait_until(lambda: ports.read_text().endswith("}"))
            (url,) = json.loads(ports.read_text())["nats"]
            yield url
        finally:
            process.terminate()
