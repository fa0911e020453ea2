"""Configure the site: `make docs` builds it without a network, and every warning is an error."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import matplotlib

import expecta

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
matplotlib.use("agg")
warnings.filterwarnings("ignore", message=".*starlette.testclient.*")

project = "Expecta"
author = "The Expecta developers"
copyright = "The Expecta developers"
version = release = expecta.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
    "sphinx_design",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "site_pages",
]
exclude_patterns = ["checks", "_ext", "gallery/*.ipynb", "README.md"]
templates_path = ["_templates"]
html_static_path = ["_static"]
html_theme = "pydata_sphinx_theme"
html_title = f"Expecta {release}"
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_search_scorer = str(HERE / "_ext" / "scorer.js")
html_theme_options = {
    "show_prev_next": True,
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "navbar_end": ["theme-switcher"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_sidebars = {"index": [], "changelog": []}

# -- Markdown ---------------------------------------------------------------------------
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 4

# -- names: a reference to one of ours that leads nowhere is an error ----------------------
nitpicky = True
nitpick_ignore_regex = [
    # only names of Expecta have a page here; types are written as their libraries write them
    (r"py:.*", r"(?!expecta).*"),
]
default_role = "code"
toc_object_entries_show_parents = "hide"
autosummary_generate = True
autodoc_typehints = "none"
autodoc_default_options = {"members": False}
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# -- gallery: every example runs ----------------------------------------------------------
sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "abort_on_example_error": True,
    "only_warn_on_example_error": False,
    "remove_config_comments": True,
    "show_signature": False,
    "image_scrapers": ("matplotlib",),
    "matplotlib_animations": False,
    "reference_url": {"expecta": None},
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("expecta",),
    "write_computation_times": False,
    "nested_sections": False,
}
suppress_warnings = ["config.cache"]
