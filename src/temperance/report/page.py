"""The report of a comparison: its sections as one page."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from markupsafe import Markup

import temperance
from temperance.calibrators import UNCALIBRATED, method_style
from temperance.comparison import Comparison
from temperance.files import check_writable, utc_now, write_atomically
from temperance.report.markup import element, html_document, joined
from temperance.report.sections import SECTIONS, Report, Section, Source, shown_at_first
from temperance.report.snippets import Snippets

TITLE = "Calibration report"


def write_report(
    comparison: Comparison,
    path: str | Path,
    *,
    overwrite: bool = False,
    title: str = TITLE,
    sources: Sequence[Source] = (),
    snippets: Snippets | None = None,
) -> None:
    """Write the comparison as one HTML file; the options are those of `render_report`."""
    check_writable(path, overwrite=overwrite)
    page = render_report(comparison, title=title, sources=sources, snippets=snippets)
    write_atomically(path, page.encode(), overwrite=overwrite)


def render_report(
    comparison: Comparison,
    *,
    title: str = TITLE,
    sources: Sequence[Source] = (),
    snippets: Snippets | None = None,
) -> str:
    """Return the page as text.

    Parameters
    ----------
    comparison : Comparison
        The comparison to report. Without its learning curve, the page does not say whether more labels would
        help.
    title : str
        Heading of the page, such as the model and the data.
    sources : sequence of Source
        The files that the comparison was made from.
    snippets : Snippets, optional
        Commands that fit and use the recommended method with these files; by default, lines of Python.
    """
    shown = shown_at_first(comparison)
    report = Report(comparison, sources, snippets or Snippets(), {UNCALIBRATED, *shown})
    made = {anchor: section(report) for anchor, section in SECTIONS.items()}
    parts = {anchor: part for anchor, part in made.items() if part[1]}
    verdict, *others = (
        element(
            "section",
            element("h2", heading, id=f"{anchor}-title"),
            content,
            id=anchor,
            aria_labelledby=f"{anchor}-title",
        )
        for anchor, (heading, content) in parts.items()
    )
    return html_document(
        title,
        element("a", "Skip to the verdict", href="#verdict", class_="skip"),
        element("header", element("h1", title), element("p", _about(comparison), class_="about")),
        element("main", verdict, _aside(comparison, parts, shown), *others),
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


def _aside(comparison: Comparison, parts: Mapping[str, Section], shown: Collection[str]) -> Markup:
    """Return the controls: beside the sections, or below the verdict on a narrow screen.

    Boxes select the methods in the figures.
    """
    links = [element("li", element("a", name, href=f"#{key}")) for key, (name, _) in parts.items()]
    boxes = []
    for name in comparison.results:
        if name != UNCALIBRATED:
            style = method_style(name)
            box = element("input", type="checkbox", value=name, checked=name in shown, class_="method")
            swatch = element("span", class_="swatch", style=f"color:{style.colour}")
            boxes.append(element("label", box, swatch, style.label))
    switch = element(
        "form",
        element("fieldset", element("legend", "Methods in the figures"), *boxes),
        class_="switch needs-script",
        aria_label="Choose methods",
    )
    theme = element("button", "Dark or light", type="button", id="theme", class_="needs-script")
    return element("aside", element("nav", element("ol", *links), aria_label="Sections"), switch, theme)
