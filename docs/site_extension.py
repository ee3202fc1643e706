"""What the site adds to Sphinx: links in docstrings, returned types, see also, formulas without a network."""

import inspect
import re
import tomllib
from importlib import import_module
from pathlib import Path

from docutils.nodes import SkipNode
from docutils.utils.math.latex2mathml import tex2mathml
from generated_pages import public_names

SEE_ALSO = tomllib.loads((Path(__file__).parent / "see_also.toml").read_text(encoding="utf-8"))


def targets():
    """Return the full names of the public names, by each way to write them: `nll`, `metrics.nll`."""
    found = {}
    for module, names in public_names():
        for name in names:
            full = f"{module.__name__}.{name}"
            for short in (full, full.removeprefix("temperance."), name):
                found.setdefault(short, full)
    return found


TARGETS = targets()
RETURNS = re.compile(r"^(Returns|Yields)\n-", re.MULTILINE)
LATER = re.compile(
    r"^(Notes|References|Examples)\n-", re.MULTILINE
)  # the sections that follow, in numpydoc's order


def linked(line):
    """Return a line of a docstring whose public names in backquotes are links."""

    def link(match):
        full = TARGETS.get(match[1])
        return f":py:obj:`{match[1]} <{full}>`" if full else match[0]

    return re.sub(r"(?<![\w:`])`([A-Za-z_][\w.]*)`(?![\w`])", link, line)


def add_to_docstring(app, what, name, value, options, lines):
    """Link the public names of a docstring, and add the sections that follow from the code and a table."""
    text = "\n".join(lines)
    added = ""
    returned = getattr(value, "__annotations__", {}).get("return")
    if what == "function" and returned not in (None, "None") and not RETURNS.search(text):
        added += f"Returns\n-------\n{linked(f'`{returned}`')}\n\n"
    if related := SEE_ALSO.get(name.removeprefix("temperance.")):
        entries = "\n".join(f"{other} : {purpose(other)}" for other in related)
        added += f"See Also\n--------\n{entries}\n\n"
    if added:
        later = LATER.search(text)
        place = later.start() if later else len(text)
        text = f"{text[:place].rstrip()}\n\n{added}{text[place:]}"
    lines[:] = [linked(line) for line in text.split("\n")]


def purpose(full):
    """Return the first line of the docstring of a name."""
    module, _, name = full.rpartition(".")
    return inspect.getdoc(getattr(import_module(module), name)).splitlines()[0].rstrip(".")


def write_formula(writer, node, block):
    """Write a formula as MathML, which browsers draw themselves."""
    writer.body.append(tex2mathml(node.astext(), as_block=block))
    raise SkipNode


def setup(app):
    """Register the hooks; docstrings are changed before numpydoc reads them."""
    app.connect("autodoc-process-docstring", add_to_docstring, priority=100)
    app.add_html_math_renderer(
        "mathml",
        inline_renderers=(lambda writer, node: write_formula(writer, node, False), None),
        block_renderers=(lambda writer, node: write_formula(writer, node, True), None),
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
