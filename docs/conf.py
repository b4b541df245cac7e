"""How `make docs` builds these pages: Sphinx, offline, each warning an error."""

from __future__ import annotations

import importlib.metadata

project = "jskv-saver"
author = "jskv-saver contributors"
release = version = importlib.metadata.version("jskv-saver")

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
# The sources are those of the repository, so that its README is a page as well.
include_patterns = ["*.md", "docs/*.md", "docs/*/*.md"]
exclude_patterns = [".*", "build", "dist", "src", "tests"]
source_suffix = {".md": "markdown"}
root_doc = "docs/index"

# Headings are linked to as on the forges that show these files.
myst_heading_anchors = 4
html_theme = "furo"
html_title = f"jskv-saver {release}"
html_copy_source = False
html_show_sphinx = False
pygments_style = "default"
highlight_options = {"conf": {"stripnl": False}}

# Docstrings are written in Markdown: `name` is code.
default_role = "literal"
autodoc_inherit_docstrings = False
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_custom_sections = [("Source", "notes_style")]
nitpicky = False


def _lex_conf() -> None:
    """`conf` is nats-server's configuration, which no lexer knows."""
    from pygments.lexers.special import TextLexer
    from sphinx.highlighting import lexers

    lexers["conf"] = TextLexer()


def _returns_are_texts() -> None:
    """A colon in a Returns section is one: types are in the signatures."""
    from sphinx.ext.napoleon.docstring import GoogleDocstring

    def whole(
        self: GoogleDocstring, preprocess_types: bool = False
    ) -> list[tuple[str, str, list[str]]]:
        lines = self._dedent(self._consume_to_next_section())
        return [("", "", lines)] if lines else []

    setattr(GoogleDocstring, "_consume_returns_section", whole)  # noqa: B010


def setup(app: object) -> None:
    """Called by Sphinx."""
    _lex_conf()
    _returns_are_texts()
