"""Settings of the documentation site, which `make docs` builds from a copy of this folder."""

import inspect
import sys
import warnings
from pathlib import Path

import temperance

sys.path.insert(0, str(Path(__file__).parent))  # site_extension

REPOSITORY = "https://github.com/OWNER/temperance"
project = "temperance"
author = "The temperance developers"
project_copyright = "The temperance developers, Apache-2.0"
version = release = temperance.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.linkcode",
    "sphinx_gallery.gen_gallery",
    "site_extension",
]
exclude_patterns = ["tutorials", "samples/*.py"]
templates_path = ["_templates"]
default_role = "code"  # `name` in a docstring is code, as in Markdown
nitpicky = True
suppress_warnings = ["config.cache"]  # the sorting function of the gallery cannot be pickled

# Markdown
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
html_math_renderer = "mathml"
myst_heading_anchors = 4

# API reference: one page per public name; numpydoc reads the docstrings
autosummary_generate = True
autosummary_imported_members = False
autodoc_typehints = "none"  # the docstrings have the types
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False  # the template of a class lists its methods
numpydoc_xref_param_type = False


def linkcode_resolve(domain, info):
    """Return the address of the lines of a public name in the repository."""
    value = sys.modules.get(info["module"])
    for part in info["fullname"].split("."):
        value = getattr(value, part, None)
    value = inspect.unwrap(getattr(value, "fget", None) or value) if value is not None else None
    try:
        path, (lines, start) = inspect.getsourcefile(value), inspect.getsourcelines(value)
    except TypeError:  # a value, such as a field with a default
        return None
    place = Path(path).relative_to(Path(temperance.__file__).parent)
    return f"{REPOSITORY}/blob/v{release}/src/temperance/{place}#L{start}-L{start + len(lines) - 1}"


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
html_js_files = ["site.js"]
pygments_style = "friendly"
pygments_dark_style = "github-dark"
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
