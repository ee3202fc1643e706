"""HTML and SVG as text: elements from names and attributes, and every foreign word escaped."""

from __future__ import annotations

from html import escape

_VOID = frozenset({"meta", "input", "br"})


def text(words: object) -> str:
    """Return words that can stand between tags."""
    return escape(str(words), quote=False)


def element(name: str, *children: str, **attributes: str | float | bool | None) -> str:
    """Return an element. Children are markup already; attributes are escaped, and left out if None or False.

    `class_` stands for class, and an underscore for a hyphen; numbers are written to a tenth of a pixel.

    Examples
    --------
    >>> element("text", text("a < b"), class_="tick", text_anchor="end", x=1.26)
    '<text class="tick" text-anchor="end" x="1.3">a &lt; b</text>'
    """
    parts = [name]
    for key, value in attributes.items():
        label = key.rstrip("_").replace("_", "-")
        if value is True:
            parts.append(label)
        elif value is not None and value is not False:
            shown = f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
            parts.append(f'{label}="{escape(shown)}"')
    opening = f"<{' '.join(parts)}>"
    return opening if name in _VOID else f"{opening}{''.join(children)}</{name}>"


def table(head: list[str], rows: list[list[str]], caption: str) -> str:
    """Return a plain table of words; the first of each row is its heading."""
    headings = "".join(element("th", text(words), scope="col") for words in head)
    body = "".join(
        element(
            "tr",
            element("th", text(row[0]), scope="row"),
            *(element("td", text(words)) for words in row[1:]),
        )
        for row in rows
    )
    return element(
        "div",
        element(
            "table",
            element("caption", text(caption)),
            element("thead", element("tr", headings)),
            element("tbody", body),
        ),
        class_="scroll",
        tabindex="0",
        role="region",
        aria_label=caption,
    )
