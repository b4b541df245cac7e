"""What the documents show is what happens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.documents.blocks import READ, ROOT, RUN, SHOWN, blocks, matches, pages
from tests.documents.session import Session

from jskv_saver import LocalServer

PAGES = {page.relative_to(ROOT).as_posix(): page for page in pages()}


@pytest.fixture
def session(
    request: pytest.FixtureRequest, own_server: LocalServer, tmp_path: Path
) -> Iterator[Session]:
    """No page finds another one's buckets."""
    name = "".join(filter(str.isalnum, request.node.callspec.params["name"]))
    with Session(name, own_server.url, tmp_path) as session:
        yield session


@pytest.mark.parametrize("name", PAGES)
def test_the_blocks_of_a_page_do_what_it_says(name: str, session: Session) -> None:
    for block in blocks(PAGES[name]):
        if not block.alone and block.not_run is None:
            session.run(block)


def test_every_block_has_a_language_and_a_reason_where_it_is_not_run() -> None:
    found = [block for page in PAGES.values() for block in blocks(page)]
    assert len(found) >= 40
    for block in found:
        known = block.language in RUN | READ | SHOWN or block.language.startswith("{")
        assert known, f"{block}: {block.language!r}"
        if block.not_run is not None:
            assert block.language in RUN | READ, f"{block} is never run"
            assert len(block.not_run) > 10, f"{block}: why is it not run?"
            assert not block.needs, f"{block}: who needs that?"


def test_no_block_is_overlooked() -> None:
    for page in PAGES.values():
        fences = [
            line
            for line in page.read_text().splitlines()
            if line.lstrip().startswith("```")
        ]
        shown = sum(1 + (block.output is not None) for block in blocks(page))
        assert len(fences) == 2 * shown, page


def test_an_output_is_compared_but_for_what_is_left_out() -> None:
    assert matches("a\nb 1\n", "a\nb …\n")
    assert not matches("a\nb 1\n", "a\n")
    assert not matches("a\n", "a\nb …\n")
    assert not matches("a.b", "a…c")


def test_a_block_that_fails_is_told(tmp_path: Path, nats_url: str) -> None:
    page = ROOT / "docs" / "none.md"
    for text, error in {
        "```python\nraise KeyError\n```": KeyError,
        "```python\nprint(1)\n```\n\n```text\n2\n```": AssertionError,
        "```python\nawait 1\n```": TypeError,
        "```sh\nfalse\ntrue\n```": AssertionError,
        "```json\n{\n```": ValueError,
        "```conf\njetstream {\n```": AssertionError,
        "```\nls\n```": AssertionError,
    }.items():
        written = tmp_path / "none.md"
        written.write_text(text + "\n")
        (block,) = blocks(written)
        with Session("none", nats_url, tmp_path) as session, pytest.raises(error):
            session.run(replace(block, page=page))
