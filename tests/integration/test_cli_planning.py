from __future__ import annotations

from tests.integration.commands import Fill, Run


def test_what_would_run_is_printed(run: Run, fill: Fill) -> None:
    fill("t")
    ids = [row["id"] for row in run("history", "t", "--json").json["checkpoints"]]

    found = run("replay-plan", "t", ids[1], "--json").json
    assert found["id"] == ids[1]
    assert found["latest"] is False
    assert [(t["node"], t["on_resume"], t["on_replay"]) for t in found["tasks"]] == [
        ("begin", False, True)
    ]
    result = run("replay-plan", "t", ids[1])
    assert (result.code, result.err) == (0, "")
    assert "begin" in result.out
    assert "not the latest" in result.out

    asking = run("replay-plan", "t")
    assert ids[0] in asking.out
    assert 'its question: "really?"' in asking.out

    fill("t", resume=True)
    assert "Nothing would run" in run("replay-plan", "t").out


def test_an_unknown_one_is_an_error(run: Run, fill: Fill) -> None:
    fill("t")
    result = run("replay-plan", "t", "no-such")
    assert (result.code, result.out) == (1, "")
    assert "no checkpoint 'no-such'" in result.err
