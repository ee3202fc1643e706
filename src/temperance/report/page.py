"""The report of a comparison: its sections as one page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

import temperance
from temperance.calibrators import UNCALIBRATED, method_style
from temperance.clock import utc_now
from temperance.comparison import Comparison, LearningCurve
from temperance.files import check_writable, write_atomically
from temperance.report.displays import ReportDisplays
from temperance.report.document import html_document
from temperance.report.markup import element, joined
from temperance.report.provenance import Source
from temperance.report.sections import Sections, sections
from temperance.report.shipping import Shipping
from temperance.report.shown_methods import shown_at_first

TITLE = "Calibration report"


def write_report(
    comparison: Comparison,
    path: str | Path,
    curve: LearningCurve | None = None,
    *,
    overwrite: bool = False,
    title: str = TITLE,
    sources: Sequence[Source] = (),
    shipping: Shipping | None = None,
) -> None:
    """Write the comparison as one HTML file, as `Comparison.save_report` does.

    Parameters
    ----------
    comparison : Comparison
        The comparison to report.
    path : path
        The file to write.
    curve, title, sources, shipping
        As for `render_report`.
    overwrite : bool
        Whether an existing file may be replaced.

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
    page = render_report(comparison, curve, title=title, sources=sources, shipping=shipping)
    write_atomically(path, page.encode(), overwrite=overwrite)


def render_report(
    comparison: Comparison,
    curve: LearningCurve | None = None,
    *,
    title: str = TITLE,
    sources: Sequence[Source] = (),
    shipping: Shipping | None = None,
) -> str:
    """Return the page as text.

    Parameters
    ----------
    comparison : Comparison
        The comparison to report.
    curve : LearningCurve, optional
        From `comparison.learning_curve`; without it the page has no section "Would more labels help?".
    title : str
        Heading of the page, such as the model and the data.
    sources : sequence of Source
        The files that the comparison was made from.
    shipping : Shipping, optional
        Commands that ship the recommended method from these files; by default, lines of Python.

    Examples
    --------
    >>> from temperance import compare
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=400, n_classes=3)
    >>> comparison = compare(task.logits, task.labels, methods=["ts"], folds=2, draws=5)
    >>> render_report(comparison).startswith("<!doctype html>")
    True
    """
    displays = ReportDisplays.of(comparison, curve)
    parts = sections(comparison, displays, curve, sources, shipping or Shipping())
    verdict, *others = (_section(key, *part) for key, part in parts.items())
    return html_document(
        title,
        element("a", "Skip to the verdict", href="#verdict", class_="skip"),
        element("header", element("h1", title), element("p", _about(comparison), class_="about")),
        element("main", verdict, _aside(comparison, parts), *others),
        script="page.js",
    )


def _about(comparison: Comparison) -> Markup:
    """Return the size of the data, and when the page was made."""
    n_fitted, n_judged = len(comparison.fitted), len(comparison.judged)
    rows = f"{n_fitted} rows to fit, {n_judged} to judge"
    if comparison.judged is comparison.fitted:
        rows = f"{n_fitted} rows, {comparison.evaluated_on}"
    n_classes = comparison.results[UNCALIBRATED].scores.n_classes
    day, _, _ = utc_now().partition("T")
    made = element("time", day), f", temperance {temperance.__version__}."
    return joined([f"{rows}, {n_classes} classes. ", *made])


def _section(key: str, title: str, content: Markup) -> Markup:
    return element(
        "section", element("h2", title, id=f"{key}-title"), content, id=key, aria_labelledby=f"{key}-title"
    )


def _aside(comparison: Comparison, parts: Sections) -> Markup:
    """Return the controls: beside the sections, or below the verdict on a narrow screen."""
    links = [element("li", element("a", name, href=f"#{key}")) for key, (name, _) in parts.items()]
    theme = element("button", "Dark or light", type="button", id="theme", class_="needs-script")
    nav = element("nav", element("ol", *links), aria_label="Sections")
    return element("aside", nav, _method_switch(comparison), theme)


def _method_switch(comparison: Comparison) -> Markup:
    """Return the boxes that select the methods in all figures, and the choice of what is "after"."""
    shown = shown_at_first(comparison)
    boxes, options = [], []
    for name in comparison.results:
        if name != UNCALIBRATED:
            style, chosen = method_style(name), name == comparison.verdict.tried
            box = element("input", type="checkbox", value=name, checked=name in shown, class_="method")
            swatch = element("span", class_="swatch", style=f"color:{style.colour}")
            boxes.append(element("label", box, swatch, style.label))
            options.append(element("option", style.label, value=name, selected=chosen))
    choose = element("label", "After: ", element("select", *options, id="after"))
    return element(
        "form",
        element("fieldset", element("legend", "Methods in the figures"), *boxes, choose),
        class_="switch needs-script",
        aria_label="Choose methods",
    )
