"""How Sphinx builds the site; everything works without a network."""

from __future__ import annotations

import inspect
import os
import re
import sys
import tomllib
from pathlib import Path
from typing import Any

import matplotlib as mpl
from docutils import nodes
from sphinx.pycode import ModuleAnalyzer

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "_ext"), str(HERE.parent / "src")]
mpl.use("Agg")

import projfree  # noqa: E402 - found through the path above

project = "projfree"
SOURCE = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]["urls"]["Source"]
author = copyright = "The projfree developers"
version = release = projfree.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # brings the files of MathJax along, so that no page asks a server for them
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "command_reference",
    "drawn_figures",
]
exclude_patterns = ["_build", "_ext", "_figures", "_templates"]
templates_path = ["_templates"]
suppress_warnings = [
    "config.cache",  # the sorter of the gallery is a function
]
smartquotes = False  # two dashes begin an option
# Single backticks in docstrings link to the object of that name where there is one.
default_role = "py:obj"
autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

html_theme = "pydata_sphinx_theme"
html_title = "projfree"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "show_nav_level": 1,
    "secondary_sidebar_items": ["page-toc"],
    "icon_links": [{"name": "Repository", "url": SOURCE, "icon": "fa-brands fa-github"}],
    "logo": {"text": f"projfree {version}"},
}

#: Gallery items that take more than a few seconds; `make docs GALLERY=fast` shows their code without running it.
SLOW = ("plot_adult", "plot_choice", "plot_films", "plot_multitask", "plot_new_user", "plot_sparse")
_skipped = "|".join(SLOW) if os.environ.get("PROJFREE_GALLERY") == "fast" else "(?!)"
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": rf"plot_(?!({_skipped.replace('plot_', '')})\.py)",
    "ignore_pattern": r"(__init__|extend)",
    "within_subsection_order": "gallery_order.Position",
    "abort_on_example_error": True,
    "capture_repr": (),  # only what an example prints
    "download_all_examples": False,
    "plot_gallery": "True",
    "show_memory": False,
    "write_computation_times": False,  # its page asks servers for scripts
    "min_reported_time": 1,
    "remove_config_comments": True,
}
linkcheck_timeout = 30
linkcheck_retries = 2


def _repository_links(app: object, page: str, source: list[str]) -> None:
    """Lead links to files outside of this folder to the repository; on a code host they work as they are."""
    source[0] = re.sub(r"\]\(\.\./(?=\w)", f"]({SOURCE}/blob/main/", source[0])


#: Methods of public classes that only the package calls.
INTERNAL = {
    *("Constrained.minimise", "Constrained.relaxed", "Constrained.with_multipliers"),
    *("PrimalAveraging.move", "Trace.add"),
}


def _skip(app: object, what: str, name: str, thing: object, skip: bool, options: object) -> bool | None:
    """Leave out what only the package calls, and metadata routing, which links to the glossary of scikit-learn."""
    routing = name == "get_metadata_routing" or (name.startswith("set_") and name.endswith("_request"))
    return True if routing or getattr(thing, "__qualname__", "") in INTERNAL else None


def _described(app: object, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Give a property that stands for a plain attribute of a base the comment of that attribute.

    Without it, it would inherit the text of the type of the attribute's value, such as that of `bool`.
    """
    if lines and any(lines[0] == inspect.getdoc(kind).splitlines()[0] for kind in (bool, float, int, str)):
        owner, _, attribute = name.removeprefix("projfree.").rpartition(".")
        for base in getattr(projfree, owner).__mro__[:-1]:
            comments = ModuleAnalyzer.for_module(base.__module__).find_attr_docs()
            if found := comments.get((base.__qualname__, attribute)):
                lines[:] = found
                return
        lines.clear()


def _thumbnails(app: object, doctree: nodes.document, page: str) -> None:
    """Give the pictures of the gallery's index, which have no text, the titles of the examples that follow them."""
    for picture in doctree.findall(nodes.image):
        if not picture.get("alt") and (title := picture.next_node(nodes.reference, siblings=True, ascend=True)):
            picture["alt"] = f"Figure of the example {title.astext()}"


def setup(app: Any) -> None:
    app.connect("source-read", _repository_links)
    app.connect("autodoc-skip-member", _skip)
    app.connect("autodoc-process-docstring", _described, priority=400)  # before numpydoc has changed the lines
    app.connect("doctree-resolved", _thumbnails)
