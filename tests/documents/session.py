"""Runs the blocks of a page one after the other, as a reader would."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import gc
import inspect
import io
import json
import os
import shlex
import signal
import subprocess
import sys
import tomllib
import types
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Self, TypeVar
from urllib.parse import urlsplit

import pytest
from tests.documents.blocks import READ, SHOWN, Block, matches
from tests.patience import PATIENCE

from jskv_saver import DocumentCheckpointSaver
from jskv_saver.__main__ import main as jskv
from jskv_saver._server_process import find_binary

T = TypeVar("T")

_SHOWN_URL = "nats://localhost:4222"
_SHOWN_ADDRESS = "localhost:4222"


class Session:
    """One module, one event loop and one working directory for the blocks of a page.

    The blocks see it as `here`. `nats://localhost:4222` in a block, and `NATS_URL`, are
    the server at `here.url`; set it in a `needs` to another one. `here.printed` is what
    the block has printed that a `then` follows.
    """

    def __init__(self, name: str, url: str, directory: Path) -> None:
        self.url = url
        self.directory = directory
        self.variables: dict[str, str] = {}
        self.printed = ""
        self._module = types.ModuleType(f"page_{name}")
        vars(self._module)["here"] = self
        self._ends = ExitStack()
        self._loop = asyncio.Runner()

    def __enter__(self) -> Self:
        # Where type hints of the classes in the blocks are looked up.
        sys.modules[self._module.__name__] = self._module
        self._loop.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        try:
            for value in vars(self._module).values():
                if isinstance(value, DocumentCheckpointSaver):
                    value.close()
        finally:
            self._ends.close()
            self._loop.close()
            del sys.modules[self._module.__name__]
            vars(self._module).clear()
            # What a page forgot to close is told of here, and not by another test.
            gc.collect()

    def enter(self, context: AbstractContextManager[T]) -> T:
        """Enter a context that ends with the page."""
        return self._ends.enter_context(context)

    def at_end(self, *command: str) -> None:
        """Run a command of `jskv` when the page is over, whatever happened."""
        self._ends.callback(self._jskv, list(command))

    def _jskv(self, command: list[str]) -> None:
        with contextlib.chdir(self.directory), self._environment():
            _jskv(command)

    def run(self, block: Block) -> None:
        """Run a block, and hold what it prints to what the page shows."""
        with contextlib.chdir(self.directory), self._environment():
            if block.needs:
                self._python(block.needs, f"{block} (needs)")
        with contextlib.chdir(self.directory), self._environment():
            output = self.printed = self._run(block)
            if block.then:
                output += self._python(block.then, f"{block} (then)")
        if block.output is not None:
            assert matches(output, block.output), f"{block} prints:\n{output}"

    def _run(self, block: Block) -> str:
        code = block.code.replace(_SHOWN_URL, self.url)
        if block.language == "python":
            return self._python(code, str(block))
        address = urlsplit(self.url)
        code = code.replace(_SHOWN_ADDRESS, f"{address.hostname}:{address.port}")
        if block.language == "sh":
            return self._shell(code, block)
        if block.language in READ:
            _read(code, block, self.directory)
            return block.output or ""
        shown = block.language in SHOWN or block.language.startswith("{")
        assert shown, f"{block}: what language is {block.language!r}?"
        return block.output or ""

    def _environment(self) -> AbstractContextManager[None]:
        return _environment({"NATS_URL": self.url, **self.variables})

    def _python(self, code: str, name: str) -> str:
        address = urlsplit(self.url)
        code = code.replace(f"@{_SHOWN_ADDRESS}", f"@{address.hostname}:{address.port}")
        # As readers run it: without the `annotations` of this file.
        awaiting = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        compiled = compile(code, name, "exec", awaiting, dont_inherit=True)
        with contextlib.redirect_stdout(io.StringIO()) as output:
            if compiled.co_flags & inspect.CO_COROUTINE:
                function = types.FunctionType(compiled, vars(self._module))
                self._loop.run(asyncio.wait_for(function(), PATIENCE))
            else:
                exec(compiled, vars(self._module))
        return output.getvalue()

    def _shell(self, code: str, block: Block) -> str:
        if block.until is not None:
            with _going_on(code, block.until) as seen:
                return seen
        if block.goes_on is not None:
            return self.enter(_going_on(code, block.goes_on))
        commands = _of_jskv(code)
        if commands is not None:
            return "".join(map(_jskv, commands))
        with _shell(code) as process:
            output, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, f"{block} ends with {output}"
        return output


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    path = f"{Path(sys.executable).parent}{os.pathsep}{before['PATH']}"
    os.environ.update({"PATH": path, "COLUMNS": "200", **variables})
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextlib.contextmanager
def _shell(code: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        ["bash", "-euo", "pipefail", "-c", code],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield process
        except BaseException:
            _signal(process, signal.SIGKILL)
            raise


@contextlib.contextmanager
def _going_on(code: str, until: str) -> Iterator[str]:
    """What a command prints up to a text, while it goes on; then Ctrl-C."""
    with _shell(code) as process:
        assert process.stdout
        seen = ""
        while until not in seen:
            line = process.stdout.readline()
            assert line, f"it ended with {seen}"
            seen += line
        yield seen
        _signal(process, signal.SIGINT)
        rest, _ = process.communicate(timeout=PATIENCE)
        assert process.returncode in (0, 130), f"it ended with {seen}{rest}"


def _of_jskv(code: str) -> list[list[str]] | None:
    """The commands of a script, if all are `jskv`, and nothing is left to a shell."""
    lines = code.replace("\\\n", " ").splitlines()
    words = [shlex.split(line, comments=True) for line in lines]
    commands = [each for each in words if each]
    plain = all(
        each[0] == "jskv" and not set("".join(each)) & set("|&;$<>`*")
        for each in commands
    )
    return commands if plain else None


def _jskv(command: list[str]) -> str:
    """Run it here: a process of its own is a second, for each."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(out),
    ):
        patch.setattr(sys, "argv", command)
        try:
            jskv()
            code: object = 0
        except SystemExit as end:
            code = end.code
    assert not code, f"{command} ends with {code}: {_text(out)}"
    return _text(out)


def _text(out: io.TextIOWrapper) -> str:
    out.seek(0)
    return out.read()


def _signal(process: subprocess.Popen[str], number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _read(code: str, block: Block, directory: Path) -> None:
    """Read a file of settings as its program would."""
    if block.language == "json":
        json.loads(code)
    elif block.language == "toml":
        tomllib.loads(code)
    else:
        (directory / "shown.conf").write_text(code)
        done = subprocess.run(
            [find_binary(None), "-t", "-c", "shown.conf"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{block}: {done.stdout}{done.stderr}"
