"""The page: sections, style and script in one file that opens anywhere and asks the network for nothing."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from markupsafe import Markup

from temperance.calibrators import UNCALIBRATED, method_style
from temperance.comparison import Comparison, LearningCurve
from temperance.files import check_writable, write_atomically
from temperance.report.displays import ReportDisplays
from temperance.report.markup import element
from temperance.report.sections import Source, sections

_AT_FIRST = ("ts", "hts", "bayes")  # shown beside the recommended method until the reader chooses


def write_report(
    comparison: Comparison,
    path: str | Path,
    curve: LearningCurve | None = None,
    *,
    overwrite: bool = False,
    title: str = "Calibration report",
    sources: Sequence[Source] = (),
) -> None:
    """Write the comparison as one HTML file, as `Comparison.save_report` does.

    Parameters
    ----------
    comparison : Comparison
        What is reported.
    path : path
        The file to write.
    curve, title, sources
        As for `render_report`.
    overwrite : bool
        Whether a file that exists may be replaced.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from temperance import compare
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=400, n_classes=3)
    >>> comparison = compare(task.logits, task.labels, methods=["ts"], folds=2, draws=5)
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "report.html"
    >>> write_report(comparison, path, title="Quarterly check")
    >>> "<h1>Quarterly check</h1>" in path.read_text()
    True
    """
    check_writable(path, overwrite=overwrite)
    page = render_report(comparison, curve, title=title, sources=sources)
    write_atomically(path, page.encode(), overwrite=overwrite)


def render_report(
    comparison: Comparison,
    curve: LearningCurve | None = None,
    *,
    title: str = "Calibration report",
    sources: Sequence[Source] = (),
) -> str:
    """Return the page as text.

    Parameters
    ----------
    comparison : Comparison
        What is reported.
    curve : LearningCurve, optional
        From `comparison.learning_curve`; without it the page has no section "Would more labels help?".
    title : str
        Heading of the page.
    sources : sequence of Source
        The files that the comparison was made from.

    Examples
    --------
    >>> from temperance import compare
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=400, n_classes=3)
    >>> comparison = compare(task.logits, task.labels, methods=["ts"], folds=2, draws=5)
    >>> render_report(comparison).startswith("<!doctype html>")
    True
    """
    parts = sections(comparison, ReportDisplays.of(comparison, curve), curve, sources)
    style, script = _file("page.css"), _file("page.js")
    links = [element("li", element("a", name, href=f"#{key}")) for key, (name, _) in parts.items()]
    body = [
        element("a", "Skip to the verdict", href="#verdict", class_="skip"),
        element("header", element("h1", title), _theme_button()),
        element("nav", element("ol", *links), aria_label="Sections"),
        _method_switch(comparison),
        element("main", *(_section(key, *part) for key, part in parts.items())),
    ]
    page = element(
        "html",
        element("head", *_head(title, style, script)),
        element("body", *body, element("script", script)),
        lang="en",
    )
    return f"<!doctype html>\n{page}"


def _file(name: str) -> Markup:
    return Markup(resources.files("temperance.report").joinpath(name).read_text(encoding="utf-8"))


def _head(title: str, style: Markup, script: Markup) -> list[Markup]:
    # The page may run its own script and nothing else, and may load nothing: also a browser then refuses to.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:"
    return [
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name_="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name_="color-scheme", content="light dark"),
        element("title", title),
        element("style", style),
    ]


def _section(key: str, title: str, content: Markup) -> Markup:
    return element(
        "section", element("h2", title, id=f"{key}-title"), content, id=key, aria_labelledby=f"{key}-title"
    )


def _theme_button() -> Markup:
    return element("button", "Dark or light", type="button", id="theme", class_="needs-script")


def _method_switch(comparison: Comparison) -> Markup:
    """Return the boxes that choose the methods of all pictures, and the choice of what is "after"."""
    shown = {comparison.recommended, *_AT_FIRST}
    boxes, options = [], []
    for name in comparison.results:
        if name != UNCALIBRATED:
            style, chosen = method_style(name), name == comparison.recommended
            box = element("input", type="checkbox", value=name, checked=name in shown, class_="method")
            swatch = element("span", class_="swatch", style=f"color:{style.colour}")
            boxes.append(element("label", box, swatch, style.label))
            options.append(element("option", style.label, value=name, selected=chosen))
    choose = element("label", "After: ", element("select", *options, id="after"))
    return element(
        "form",
        element("fieldset", element("legend", "Methods in the pictures"), *boxes, choose),
        class_="switch needs-script",
        aria_label="Choose methods",
    )
