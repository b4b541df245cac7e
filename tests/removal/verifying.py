"""A thread of everything, and what a verification finds."""

from __future__ import annotations

from tests.checkpoint.saving import at, put

from jskv_saver import DocumentCheckpointSaver, VerifyReport

OWNER = "default"
TEXT = "x" * 5000
LARGE = "w" * 700_000
HERE = ("default", "t", "")
Saver = DocumentCheckpointSaver


async def fill(saver: Saver, thread: str = "t") -> None:
    for ns in ("", "child:1"):
        await put(saver, "1", {"text": TEXT}, thread=thread, ns=ns, run_id="r1")
        await put(
            saver,
            "2",
            {"text": TEXT + "2" * 3000},
            parent="1",
            thread=thread,
            ns=ns,
            run_id="r2",
        )
        await saver.aput_writes(at("2", thread=thread, ns=ns), [("c", LARGE)], "large")
        await saver.aput_writes(at("2", thread=thread, ns=ns), [("c", 1)], "small")


async def look(saver: Saver, *threads: str) -> VerifyReport:
    return await saver.averify(threads or None, settle=0)


def brief(report: VerifyReport) -> set[tuple[str, str]]:
    return {(each.kind, each.key) for each in report.findings}
