"""Checks what documents promise: links, code blocks, names, commands, addresses."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import jskv_saver

ROOT = Path(__file__).parents[1]
# In two pieces, so that this file passes its own check.
HOSTS = [
    ".".join(pair)
    for pair in [
        ("pypi", "org"),
        ("pythonhosted", "org"),
        ("npmjs", "org"),
        ("golang", "org"),
        ("crates", "io"),
        ("deb.debian", "org"),
    ]
]
MACHINE_PATH = re.compile(r"(?<![\w./-])/(?:work|home|root|Users)/\w")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
BLOCK = re.compile(r"^( *)```python\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^( *)```(.*)\n(?:.*\n)*?\1```$", re.MULTILINE)
LANGUAGES = {"conf", "json", "proto", "python", "sh", "text", "toml"}
FENCED = re.compile(r"^( *)```.*?^\1```", re.MULTILINE | re.DOTALL)
TEST = re.compile(r"`(tests/[\w./-]+\.py)::(\w+)`")
MAKE = re.compile(r"(?:^|`)make ([a-z][a-z-]*)", re.MULTILINE)


def tracked() -> list[Path]:
    """The files of the repository, also those that are not committed yet."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    paths = [ROOT / name for name in listed.stdout.split("\0") if name]
    if listed.returncode:  # not a git checkout: a source archive
        paths = [*ROOT.glob("*.*"), *ROOT.glob("docs/**/*.md")]
    return [path for path in paths if path.is_file()]


def anchor(heading: str) -> str:
    words = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return words.replace(" ", "-")


def anchors(path: Path) -> set[str]:
    text = FENCED.sub("", path.read_text())
    return {anchor(line) for line in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}


def check_links(path: Path, text: str) -> Iterator[str]:
    for link in LINK.findall(FENCED.sub("", text)):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, fragment = link.partition("#")
        target = path.parent / name if name else path
        if not target.exists():
            yield f"link to {link}: no such file"
        elif fragment and target.suffix == ".md" and fragment not in anchors(target):
            yield f"link to {link}: no such heading"


def check_languages(text: str) -> Iterator[str]:
    """What is run is run by tests/documents; without a language nobody knows."""
    for found in FENCE.finditer(text):
        if found[2] not in LANGUAGES and not found[2].startswith("{"):
            line = text.count("\n", 0, found.start()) + 1
            yield f"block at line {line}: say its language, one of {sorted(LANGUAGES)}"


def check_listed() -> Iterator[str]:
    index = (ROOT / "docs/index.md").read_text().splitlines()
    for page in sorted((ROOT / "docs").glob("*.md")):
        if page.stem not in {"index", *index}:
            yield f"docs/{page.name}: add it to docs/index.md, or nobody finds it"


def check_blocks(text: str) -> Iterator[str]:
    for found in BLOCK.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        # Fragments of async functions are welcome in documents.
        code = "async def block():\n" + textwrap.indent(
            textwrap.dedent(found[2]) + "\npass", "    "
        )
        try:
            compile(code, "block", "exec")
        except SyntaxError as exc:
            yield f"python block at line {line}: {exc.msg}"


def check_commands(text: str, targets: set[str]) -> Iterator[str]:
    for name in MAKE.findall(text):
        if name not in targets:
            yield f"`make {name}`: no such target"


def check_tests(text: str) -> Iterator[str]:
    for path, name in TEST.findall(text):
        file = ROOT / path
        code = file.read_text() if file.is_file() else ""
        if not re.search(rf"^ *(?:async )?(?:def|class) {name}\b", code, re.MULTILINE):
            yield f"`{path}::{name}`: no such test"


def check_addresses(text: str) -> Iterator[str]:
    for host in HOSTS:
        if host in text:
            yield f"names the registry host {host}"
    for found in MACHINE_PATH.finditer(text):
        line = text.count("\n", 0, found.start()) + 1
        yield f"line {line}: a path of one machine"


def main() -> int:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    problems = []
    documents = []
    for path in tracked():
        try:
            text = path.read_text()
        except UnicodeDecodeError:
            continue
        found = list(check_addresses(text))
        if path.suffix == ".md":
            documents.append(text)
            found += check_links(path, text)
            found += check_languages(text)
            found += check_blocks(text)
            found += check_commands(text, targets)
            found += check_tests(text)
        problems += [f"{path.relative_to(ROOT)}: {problem}" for problem in found]
    problems += check_listed()
    prose = "\n".join(documents)
    problems += [
        f"{name}: public, and named in no document"
        for name in jskv_saver.__all__
        if not name.startswith("_") and not re.search(rf"\b{name}\b", prose)
    ]
    for problem in problems:
        print(problem)
    print(f"docs: {len(documents)} documents, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
