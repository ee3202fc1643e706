"""Settings of the documentation site, which `make docs` builds from a copy of this folder."""

import warnings

import temperance

project = "temperance"
author = "The temperance developers"
project_copyright = "The temperance developers, Apache-2.0"
version = release = temperance.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["tutorials"]
templates_path = ["_templates"]
default_role = "code"  # `name` in a docstring is code, as in Markdown
nitpicky = True
suppress_warnings = ["config.cache"]  # the sorting function of the gallery cannot be pickled

# Markdown
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4

# API reference: one page for each public name; numpydoc reads the docstrings
autosummary_generate = True
autosummary_imported_members = False
autodoc_typehints = "none"  # the docstrings have the types
autodoc_member_order = "bysource"
numpydoc_show_class_members = False  # the template of a class lists its methods
numpydoc_xref_param_type = False

# Tutorials: scripts that the build runs; an error in one of them stops the build
sphinx_gallery_conf = {
    "examples_dirs": "tutorials",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/\d\d_",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "download_all_examples": False,
    "remove_config_comments": True,
    "reset_modules": (),  # it would drop the style, which build.py sets
    "parallel": 2,
}
warnings.filterwarnings("ignore", category=UserWarning, message="Matplotlib is currently using agg")

# Page
html_theme = "furo"
html_title = f"temperance {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False

# Pages that live at the root of the repository have a copy on the site.
LINKS = {"](../CONTRIBUTING.md": "](contributing.md", "](../CHANGELOG.md": "](changelog.md"}


def prepare(app, docname, source):
    """Let links to files at the root lead to their pages here."""
    for path, page in LINKS.items():
        source[0] = source[0].replace(path, page)


def is_foreign(app, what, name, member, skip, options):
    """Leave out what a class inherits from other packages, and the classes that its attributes name."""
    owner = getattr(member, "fget", None) or getattr(member, "__wrapped__", member)
    module = getattr(owner, "__module__", None) or ""
    if isinstance(member, type) or not module.startswith("temperance"):
        return True
    return skip


def setup(app):
    """Register the hooks."""
    app.connect("source-read", prepare)
    app.connect("autodoc-skip-member", is_foreign)
