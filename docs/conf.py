"""How the site is made: `make docs`, or `make docs-check` without running the gallery.

Nothing is fetched while it is built or read: no inventories, fonts, badges or scripts from
elsewhere.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import traceless

sys.path.insert(0, str(Path(__file__).parent))  # gallery_order

project = "traceless"
author = "The traceless developers"
copyright = author  # noqa: A001
version = release = traceless.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates", "generated/backreferences"]
nitpicky = True
default_role = "code"
toc_object_entries_show_parents = "hide"
highlight_language = "none"  # of blocks that do not say it: shell commands
smartquotes = False  # they would change code in parameter lists

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
copybutton_exclude = ".linenos, .gp, .go"  # what is copied runs as it stands

autodoc_typehints = "none"  # numpydoc's parameter lists have them
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False  # _templates/autosummary/class.rst lists them

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "backreferences_dir": "generated/backreferences",
    "doc_module": ("traceless",),
    "within_subsection_order": "gallery_order.Told",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_signature": False,
    "thumbnail_size": (440, 320),
    "write_computation_times": False,
}

html_theme = "pydata_sphinx_theme"
html_title = "traceless"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
_ALONE = "index get-started how-it-works papers benchmarks expect limits glossary changes"
html_sidebars = {page: [] for page in _ALONE.split()}
html_theme_options = {
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "secondary_sidebar_items": {"**": ["page-toc"], "index": []},
    "show_prev_next": False,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "tango",
    "pygments_dark_style": "github-dark",
}


def _skip_what_is_inherited(
    _app: Any, _what: str, _name: str, member: Any, _skip: bool, _options: Any
) -> bool | None:
    """Leave out what estimators inherit from scikit-learn, which documents it."""
    function = getattr(member, "fget", member)
    return True if str(getattr(function, "__module__", "")).startswith("sklearn") else None


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("autodoc-skip-member", _skip_what_is_inherited)
