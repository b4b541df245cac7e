"""`jskv permissions`: a nats-server configuration that keeps namespaces apart."""

from __future__ import annotations

from typing import Annotated

import typer

from jskv_saver.cli.isolation import (
    DEFAULT_BUCKET,
    DEFAULT_SIZE,
    Mode,
    configuration,
    tenants_of,
)
from jskv_saver.errors import InvalidRequestError


def permissions(
    *,
    namespace: Annotated[
        list[str], typer.Option(help="A namespace. May be given several times.")
    ],
    mode: Annotated[
        Mode,
        typer.Option(
            help="service: over the document service. account: an account for each. "
            "bucket: a bucket for each, for programs that trust each other."
        ),
    ],
    user: Annotated[
        list[str] | None,
        typer.Option(
            help="The user of each namespace, in the same order.",
            show_default="named as the namespace",
        ),
    ] = None,
    bucket: Annotated[
        list[str] | None,
        typer.Option(
            help="Name of the bucket; with mode bucket one for each namespace.",
            show_default=f"{DEFAULT_BUCKET}, or {DEFAULT_BUCKET}-USER",
        ),
    ] = None,
    password: Annotated[
        list[str] | None,
        typer.Option(
            help="A user's password, or its bcrypt hash. May be given several times.",
            metavar="USER=TEXT",
            show_default="$JSKV_USER_PASSWORD",
        ),
    ] = None,
    max_file: Annotated[
        str, typer.Option(help="With mode account: what each of them may store.")
    ] = DEFAULT_SIZE,
) -> None:
    """Print users, permissions and accounts for nats-server, one namespace for each.

    The passwords are left to the environment of nats-server, unless given.
    """
    tenants = tenants_of(mode, namespace, user or [], bucket or [])
    passwords: dict[str, str] = {}
    for text in password or []:
        name, given, secret = text.partition("=")
        if not (name and given and secret):
            raise InvalidRequestError("write a password as USER=TEXT")
        passwords[name] = secret
    print(
        configuration(mode, tenants, passwords=passwords, size=max_file),
        end="",
    )
