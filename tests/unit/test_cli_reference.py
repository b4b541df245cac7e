"""docs/cli.md says of every command what `--help` says."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable

import pytest
from scripts.cli_reference import PAGE, page

from jskv_saver.__main__ import main
from jskv_saver.cli.app import app

OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")


@pytest.fixture
def said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    monkeypatch.setenv("COLUMNS", "300")

    def said(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["jskv", *arguments, "--help"])
        with pytest.raises(SystemExit) as caught:
            main()
        assert caught.value.code == 0
        return capsys.readouterr().out

    return said


def names() -> list[str]:
    return [command.name or "" for command in app.registered_commands]


def test_the_page_is_what_the_commands_say() -> None:
    text = PAGE.read_text()
    assert page(text) == text, "python scripts/cli_reference.py --write"


def test_every_command_is_in_the_help(said: Callable[..., str]) -> None:
    shown = said()
    assert all(re.search(rf"^  {name} ", shown, re.MULTILINE) for name in names())
    assert "--install-completion" in shown


@pytest.mark.parametrize("name", names())
def test_every_option_of_help_is_on_the_page(
    name: str, said: Callable[..., str]
) -> None:
    text = PAGE.read_text()
    section = re.search(
        rf"^### jskv {name}\n(.*?)(?=^### |^<!-- end)", text, re.M | re.S
    )
    assert section is not None
    options = set(OPTION.findall(said(name))) - {"--help"}
    assert options == set(OPTION.findall(section[1]))


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_shell_completes_commands_and_options(
    shell: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def completed(words: str) -> str:
        monkeypatch.setattr(sys, "argv", ["jskv"])
        for name, value in (
            ("_JSKV_COMPLETE", f"complete_{shell}"),
            ("COMP_WORDS", words),
            ("COMP_CWORD", str(len(words.split()) - 1)),
            ("_TYPER_COMPLETE_ARGS", words),
            ("_TYPER_COMPLETE_FISH_ACTION", "get-args"),
        ):
            monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit) as caught:
            main()
        assert caught.value.code == 0
        assert "_JSKV_COMPLETE" in os.environ
        return capsys.readouterr().out

    assert "threads" in completed("jskv th")
    assert "history" not in completed("jskv th")
    assert "--metadata" in completed("jskv threads --me")
