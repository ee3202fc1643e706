"""The report of a comparison: its sections as one page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from markupsafe import Markup

import temperance
from temperance.calibrators import UNCALIBRATED
from temperance.comparison import Comparison
from temperance.files import check_writable, utc_now, write_atomically
from temperance.report.markup import element, html_document, joined
from temperance.report.sections import SECTIONS, Report, Source
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
    """Write the comparison as one HTML file, with the options of `render_report`."""
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
        The comparison to report. Without a learning curve, the page does not tell whether more labels would
        help.
    title : str
        Heading of the page, such as the model and the data.
    sources : sequence of Source
        The files that the comparison read.
    snippets : Snippets, optional
        Commands that fit and use the recommended method with these files; by default, lines of Python.
    """
    report = Report(comparison, sources, snippets or Snippets())
    parts: dict[bool, list[Markup]] = {False: [], True: []}
    for anchor, section in SECTIONS.items():
        content = section.content(report)
        if content:
            heading = element("h3" if section.folded else "h2", section.title, id=f"{anchor}-title")
            part = element("section", heading, content, id=anchor, aria_labelledby=f"{anchor}-title")
            parts[section.folded].append(part)
    diagnostics = element("details", element("summary", "Diagnostics"), *parts[True], id="diagnostics")
    return html_document(
        title,
        element("header", element("h1", title), element("p", _about(comparison), class_="about")),
        element("main", *parts[False], diagnostics),
        script="page.js",
    )


def _about(comparison: Comparison) -> Markup:
    """Return the size of the data, and when the page was made."""
    n_fitted, n_judged = len(comparison.fitted), len(comparison.judged)
    rows = f"{n_fitted:,} rows to fit, {n_judged:,} to evaluate"
    if comparison.judged is comparison.fitted:
        rows = f"{n_fitted:,} rows, {comparison.evaluated_on}"
    n_classes = comparison.results[UNCALIBRATED].scores.n_classes
    day, _, _ = utc_now().partition("T")
    made = element("time", day), f", temperance {temperance.__version__}."
    return joined([f"{rows}, {n_classes:,} classes. ", *made])
