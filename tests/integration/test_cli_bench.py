from __future__ import annotations

import pytest
from tests.integration.commands import Fill, Run

from jskv_saver.cli import bench
from jskv_saver.errors import CorruptDocumentError


def test_what_a_graph_asks_for_is_measured_and_nothing_stays(
    run: Run, fill: Fill
) -> None:
    fill("t")
    result = run("bench", "--steps", "12", "--size", "5000")
    assert (result.code, result.err) == (0, "")
    assert "12 steps of 5.0 kB each" in result.out
    found = run("bench", "--steps", "12", "--json").json
    assert [(each["operation"], each["calls"]) for each in found["operations"]] == [
        ("store a step", 12),
        ("store a task's writes", 12),
        ("read the latest", 3),
        ("list the newest 10", 3),
        ("delete the thread", 1),
    ]
    for each in found["operations"]:
        assert 0 < each["median"] <= each["most"] <= each["slowest"]
    left = run("threads", "--json").json["threads"]
    assert [thread["thread"] for thread in left] == ["t"]
    assert run("bench", "--steps", "0").code == 2


def test_what_is_read_is_compared(
    run: Run, fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(*_: object) -> None:
        raise CorruptDocumentError("what was read is not what was stored")

    monkeypatch.setattr(bench, "_compare", wrong)
    fill("t")
    result = run("bench", "--steps", "3")
    assert (result.code, result.out) == (1, "")
    assert "is not what was stored" in result.err
    assert run("threads", "--json").json["total"] == 1


def test_another_content_is_no_match() -> None:
    with pytest.raises(CorruptDocumentError, match="not what was stored"):
        bench._compare(None, b"x")
