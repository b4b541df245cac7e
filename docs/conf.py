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


def _conf_lexer(app: object) -> None:
    """`conf` is nats-server's configuration, which no lexer knows."""
    from pygments.lexers.special import TextLexer
    from sphinx.highlighting import lexers

    lexers["conf"] = TextLexer()


def setup(app: object) -> None:
    """Called by Sphinx."""
    _conf_lexer(app)
