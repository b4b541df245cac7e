from __future__ import annotations

import ast
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import jskv_saver
import jskv_saver.adapters

STORAGE = [
    "jskv_saver",
    "jskv_saver.errors",
    "jskv_saver.server",
    "jskv_saver.document.port",
    *(
        module.name
        for module in pkgutil.walk_packages(
            jskv_saver.adapters.__path__, "jskv_saver.adapters."
        )
    ),
]


def _loaded_after(code: str) -> set[str]:
    """The top-level packages that a fresh interpreter has loaded after this code."""
    script = (
        f"import sys\n{code}\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


@pytest.mark.parametrize("name", jskv_saver.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(jskv_saver, name) is not None


def test_public_names_are_sorted_and_listed() -> None:
    assert list(jskv_saver.__all__) == sorted(jskv_saver.__all__)
    assert set(jskv_saver.__all__) <= set(dir(jskv_saver))


def test_type_checkers_see_exactly_the_public_names() -> None:
    tree = ast.parse(Path(jskv_saver.__file__).read_text())
    block = next(
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    )
    imported = {
        alias.name
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert imported | {"__version__"} == set(jskv_saver.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        jskv_saver.no_such_name  # noqa: B018


def test_modules_export_what_they_say() -> None:
    for info in pkgutil.walk_packages(jskv_saver.__path__, "jskv_saver."):
        if not info.name.endswith(("__main__", "_keeper")):
            module = importlib.import_module(info.name)
            for name in getattr(module, "__all__", ()):
                assert hasattr(module, name), f"{info.name}.{name}"


def test_storing_documents_does_not_import_langgraph() -> None:
    loaded = _loaded_after(f"import {', '.join(STORAGE)}")
    assert "nats" in loaded
    assert not loaded & {"langgraph", "langchain_core"}


def test_the_package_itself_imports_nothing_else() -> None:
    loaded = _loaded_after("import jskv_saver; jskv_saver.LocalServer")
    assert not loaded & {"nats", "cbor2", "google", "typer", "rich", "langgraph"}


def test_asking_a_service_imports_no_storage() -> None:
    loaded = _loaded_after(
        "import jskv_saver; jskv_saver.RemoteDocumentStore\n"
        "assert 'jskv_saver.adapters.jetstream.store' not in sys.modules\n"
        "assert 'jskv_saver.adapters.wire.service' not in sys.modules"
    )
    assert {"nats", "google"} <= loaded
    assert not loaded & {"cbor2", "langgraph", "langchain_core", "typer", "rich"}
