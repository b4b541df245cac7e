"""Options of a bucket: what is legal is said before any server is asked."""

from __future__ import annotations

from typing import Any

import pytest

from jskv_saver import JetStreamDocumentStore, JetStreamSaver
from jskv_saver.adapters.jetstream.options import (
    BucketOptions,
    Republish,
    parse_options,
)
from jskv_saver.errors import InvalidRequestError


def refused(**options: Any) -> str:
    with pytest.raises(InvalidRequestError) as caught:
        BucketOptions(**options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        ({"storage": "disk"}, "storage has to be 'file' or 'memory', not 'disk'"),
        ({"compression": "zip"}, "compression has to be 's2' or 'none', not 'zip'"),
        ({"compression": True}, "compression has to be 's2' or 'none', not True"),
        ({"replicas": 0}, "replicas has to be a number from 1 to 5, not 0"),
        ({"replicas": 6}, "replicas has to be a number from 1 to 5, not 6"),
        ({"replicas": "3"}, "replicas has to be a number from 1 to 5, not '3'"),
        ({"replicas": True}, "replicas has to be a number from 1 to 5, not True"),
        ({"max_bytes": 0}, "max_bytes has to be a number of bytes, or -1"),
        ({"max_bytes": -2}, "max_bytes has to be a number of bytes, or -1"),
        ({"max_bytes": 2**63}, "max_bytes has to be a number of bytes, or -1"),
        ({"max_value_size": 1.5}, "max_value_size has to be a number of bytes"),
        ({"max_value_size": 2**31}, "max_value_size has to be a number of bytes"),
        ({"placement_tags": "ssd"}, "placement_tags has to be a tuple or list"),
        ({"placement_tags": ("",)}, "placement_tags has to be a tuple or list"),
        ({"placement_cluster": ""}, "placement_cluster has to be the name"),
        ({"metadata": {"a": 1}}, "metadata has to be a dict of texts"),
        ({"republish": "a"}, "republish has to be a Republish"),
        ({"description": None}, "description has to be text"),
        ({"domain": "a.b"}, "domain has to be the name of a JetStream domain"),
        ({"api_prefix": "a b"}, "api_prefix has to be the beginning of subjects"),
        ({"timeout": 0}, "timeout has to be a number of seconds above 0, not 0"),
        ({"timeout": float("inf")}, "timeout has to be a number of seconds above 0"),
        ({"timeout": None}, "timeout has to be a number of seconds above 0, not None"),
        ({"create": "no"}, "create has to be True or False, not 'no'"),
        ({"domain": "a", "api_prefix": "b"}, "domain or api_prefix, not both"),
    ],
)
def test_an_illegal_value_is_named_with_the_legal_ones(
    options: dict[str, Any], rule: str
) -> None:
    assert rule in refused(**options)


def test_legal_values() -> None:
    options = BucketOptions(
        description="text",
        storage="memory",
        replicas=5,
        placement_cluster="c",
        placement_tags=("ssd",),
        max_value_size=2**31 - 1,
        max_bytes=2**63 - 1,
        compression="none",
        metadata={"a": "b"},
        republish=Republish(">", "copy.>"),
        domain="leaf",
        timeout=2,
        create=False,
    )
    assert options.replicas == 5
    assert BucketOptions(api_prefix="JSD.API").domain is None
    with pytest.raises(InvalidRequestError, match="destination has to be a subject"):
        Republish(">", "")


def test_options_of_both_kinds_are_told_apart() -> None:
    options, connect = parse_options(
        {"replicas": 3, "token": "x"}, of_connection={"token", "user"}
    )
    assert options == BucketOptions(replicas=3)
    assert connect == {"token": "x"}


@pytest.mark.parametrize("kind", [JetStreamSaver, JetStreamDocumentStore])
@pytest.mark.parametrize(
    ("typo", "meant"),
    [("replica", "replicas"), ("usre", "user"), ("max_byte", "max_bytes")],
)
def test_a_typo_names_the_nearest_option_and_both_kinds(
    kind: Any, typo: str, meant: str
) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        kind.from_conn_string("nats://h", **{typo: 3})
    text = str(caught.value)
    assert text.startswith(f"there is no option {typo!r}, did you mean {meant!r}?")
    assert "options of the bucket: description, storage, replicas" in text
    assert "of nats.connect: " in text
    assert "ping_interval" in text


def test_over_a_client_there_are_options_of_the_bucket_only() -> None:
    with pytest.raises(InvalidRequestError, match="takes no options"):
        parse_options({"ping_interval": 3})


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("mirror", "a mirror takes no writes"),
        ("ttl", "would expire"),
        ("history", "one revision"),
    ],
)
def test_what_no_bucket_of_ours_can_be_says_why(name: str, reason: str) -> None:
    options: dict[str, Any] = {name: "other"}
    with pytest.raises(InvalidRequestError, match=reason):
        JetStreamSaver.from_conn_string("nats://h", **options)
