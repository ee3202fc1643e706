"""The page: sections, style and script in one file that opens anywhere and asks the network for nothing."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path

from temperance.comparison import UNCALIBRATED, Comparison, learning_curve
from temperance.display.colours import colour_of
from temperance.files import check_writable, write_atomically
from temperance.report.markup import element, text
from temperance.report.sections import Source, sections

_AT_FIRST = ("ts", "hts", "bayes")  # shown beside the recommended method until the reader chooses


def write_report(
    comparison: Comparison,
    path: str | Path,
    *,
    overwrite: bool = False,
    title: str = "Calibration report",
    sources: Sequence[Source] = (),
    progress: Callable[[str, float], None] | None = None,
) -> None:
    """Write the comparison as one HTML file, with all it takes inside."""
    check_writable(path, overwrite=overwrite)
    page = render_report(comparison, title=title, sources=sources, progress=progress)
    write_atomically(path, page.encode(), overwrite=overwrite)


def render_report(
    comparison: Comparison,
    *,
    title: str = "Calibration report",
    sources: Sequence[Source] = (),
    progress: Callable[[str, float], None] | None = None,
) -> str:
    """Return the page as text."""
    curve = learning_curve(comparison, random_state=comparison.settings["random_state"], progress=progress)
    parts = sections(comparison, curve, sources)
    style, script = _file("page.css"), _file("page.js")
    links = "".join(
        element("li", element("a", text(name), href=f"#{key}")) for key, (name, _) in parts.items()
    )
    body = [
        element("a", "Skip to the verdict", href="#verdict", class_="skip"),
        element("header", element("h1", text(title)), _theme_button()),
        element("nav", element("ol", links), aria_label="Sections"),
        _method_switch(comparison),
        element("main", *(_section(key, *part) for key, part in parts.items())),
    ]
    return "<!doctype html>\n" + element(
        "html",
        element("head", _head(title, style, script)),
        element("body", *body, element("script", script)),
        lang="en",
    )


def _file(name: str) -> str:
    return resources.files("temperance.report").joinpath(name).read_text(encoding="utf-8")


def _head(title: str, style: str, script: str) -> str:
    # The page may run its own script and nothing else, and may load nothing: also a browser then refuses to.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:"
    return "".join(
        [
            element("meta", charset="utf-8"),
            element("meta", http_equiv="Content-Security-Policy", content=policy),
            element("meta", name_="viewport", content="width=device-width, initial-scale=1"),
            element("meta", name_="color-scheme", content="light dark"),
            element("title", text(title)),
            element("style", style),
        ]
    )


def _section(key: str, title: str, content: str) -> str:
    return element(
        "section",
        element("h2", text(title), id=f"{key}-title"),
        content,
        id=key,
        aria_labelledby=f"{key}-title",
    )


def _theme_button() -> str:
    return element("button", "Dark or light", type="button", id="theme", class_="needs-script")


def _method_switch(comparison: Comparison) -> str:
    """Return the boxes that choose the methods of all pictures, and the choice of what is "after"."""
    shown = {comparison.recommended, *_AT_FIRST}
    boxes = [
        element(
            "label",
            element("input", type="checkbox", value=name, checked=name in shown, class_="method"),
            element("span", class_="swatch", style=f"background:{colour_of(name)}"),
            text(name),
        )
        for name in comparison.results
        if name != UNCALIBRATED
    ]
    options = [
        element("option", text(name), value=name, selected=name == comparison.recommended)
        for name in comparison.results
        if name != UNCALIBRATED
    ]
    choose = element("label", "After: ", element("select", *options, id="after"))
    return element(
        "form",
        element("fieldset", element("legend", "Methods in the pictures"), *boxes, choose),
        class_="switch needs-script",
        aria_label="Choose methods",
    )
