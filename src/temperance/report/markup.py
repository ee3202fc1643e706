"""HTML and SVG as text: elements from names, attributes and children; plain text is escaped.

A page has its style and script inline, so it opens anywhere and needs no network.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from importlib import resources

from markupsafe import Markup, escape

from temperance.errors import on_one_line

_LAYOUT = "\n\t\N{NO-BREAK SPACE}\N{NARROW NO-BREAK SPACE}\N{SOFT HYPHEN}"  # used in our own text
_VOID = frozenset({"meta", "input", "br"})


def element(name: str, *children: str, **attributes: str | float | bool | None) -> Markup:
    """Return an element. Children that are not `Markup` are escaped, and so are attributes.

    Attributes that are None or False are left out. `class_` stands for class, and an underscore for a
    hyphen; numbers are written to a tenth of a pixel.

    Examples
    --------
    >>> print(element("text", "a < b", element("b", "c"), class_="tick", text_anchor="end", x=1.26))
    <text class="tick" text-anchor="end" x="1.3">a &lt; b<b>c</b></text>
    """
    parts = [name]
    for key, value in attributes.items():
        label = key.rstrip("_").replace("_", "-")
        if value is True:
            parts.append(label)
        elif value is not None and value is not False:
            shown = f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
            parts.append(f'{label}="{escape(_visible(shown))}"')
    opening = Markup(f"<{' '.join(parts)}>")
    return opening if name in _VOID else opening + joined(children) + Markup(f"</{name}>")


def joined(parts: Iterable[str]) -> Markup:
    """Join the parts, and escape those that are not `Markup`."""
    return Markup("").join(part if isinstance(part, Markup) else _visible(part) for part in parts)


def _visible(text: str) -> str:
    """Return text without control characters, which file names can have and a page must not."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() or sign in _LAYOUT else on_one_line(sign) for sign in text)


def table(head: list[str], rows: list[list[str]], caption: str) -> Markup:
    """Return a plain table; the first cell of each row is its heading."""
    headings = (element("th", words, scope="col") for words in head)
    body = (
        element("tr", element("th", first, scope="row"), *(element("td", words) for words in rest))
        for first, *rest in rows
    )
    whole = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *headings)),
        element("tbody", *body),
    )
    return element("div", whole, class_="scroll", tabindex="0", role="region", aria_label=caption)


def html_document(title: str, *body: Markup, script: str | None = None) -> str:
    """Return the page as text; `script` is the name of its script."""
    # A browser loads nothing but the page's own script.
    policy, end = "default-src 'none'; style-src 'unsafe-inline'; img-src data:", []
    if script is not None:
        code = read_asset(script)
        digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
        policy += f"; script-src 'sha256-{digest}'"
        end.append(element("script", code))
    head = [
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name_="color-scheme", content="light dark"),
        element("title", title),
        element("style", read_asset("page.css")),
    ]
    page = element("html", element("head", *head), element("body", *body, *end), lang="en")
    return f"<!doctype html>\n{page}"


def read_asset(name: str) -> Markup:
    """Return a style sheet or script of this package."""
    return Markup(resources.files("temperance.report").joinpath(name).read_text(encoding="utf-8"))
