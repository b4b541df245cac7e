"""What the committed contract promises those who have generated code from it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from jskv_saver._proto.jskv.v1 import document_pb2 as pb
from jskv_saver.adapters.wire.endpoints import ENDPOINTS

ROOT = Path(__file__).parents[2]


def test_the_generated_code_runs_on_the_oldest_protobuf_that_is_allowed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    [wanted] = [each for each in project["dependencies"] if "protobuf" in each]
    oldest = re.search(r">=([\d.]+)", wanted)
    generated = re.search(
        r"# Protobuf Python Version: ([\d.]+)", Path(pb.__file__).read_text()
    )
    assert oldest
    assert generated
    assert generated[1] == oldest[1]


def test_each_primitive_has_one_request_and_one_reply() -> None:
    names = {
        name.removesuffix("Request")
        for name in pb.DESCRIPTOR.message_types_by_name
        if name.endswith("Request")
    }
    assert names == {
        "".join(word.title() for word in primitive.split("_"))
        for primitive in ENDPOINTS
    }
    for primitive, endpoint in ENDPOINTS.items():
        fields = endpoint.request.DESCRIPTOR.fields_by_name
        # In the same place everywhere, for who routes by them.
        assert fields["namespace"].number == 1, primitive
        assert fields["timeout_ms"].number == 2, primitive
    for name in names:
        assert f"{name}Reply" in pb.DESCRIPTOR.message_types_by_name
