"""The checks of a calibrator over time, as one page that opens anywhere and needs no network."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup

from temperance.files import check_writable, write_atomically
from temperance.monitoring import Check
from temperance.monitoring.history import Record
from temperance.monitoring.words import e_value, points
from temperance.report.document import html_document
from temperance.report.figures import figure
from temperance.report.history_charts import evidence_chart, gap_chart, gap_of, shares_chart
from temperance.report.markup import element, joined, table

MOST_LISTED = 100  # checks in the table, the last ones


def write_history(
    check: Check, path: str | Path, *, title: str = "Checks of a calibrator", overwrite: bool = False
) -> None:
    """Write a check and all earlier ones as one HTML file."""
    check_writable(path, overwrite=overwrite)
    write_atomically(path, render_history(check, title=title).encode(), overwrite=overwrite)


def render_history(check: Check, *, title: str = "Checks of a calibrator") -> str:
    """Return the page as text."""
    verdict, *rest = check.sentences
    kind = "verdict worse" if check.acts else "verdict better"
    body = element(
        "main",
        element("h1", title),
        element("p", verdict, class_=kind, id="verdict"),
        element("ul", *(element("li", sentence) for sentence in rest)),
        *_figures(check),
        element("h2", "All checks"),
        _table(check),
        class_="single",
    )
    return html_document(title, body)


def _figures(check: Check) -> list[Markup]:
    charts = {"evidence": evidence_chart(check), "gap": gap_chart(check), "shares": shares_chart(check)}
    return [figure(name, chart) for name, chart in charts.items() if chart is not None]


def _table(check: Check) -> Markup:
    shown = check.records[-MOST_LISTED:]
    first = len(check.records) - len(shown)
    some = f", the last {len(shown)} of {len(check.records)}" if first else ""
    rows = [_row(number, record) for number, record in enumerate(shown, first + 1)]
    head = ["check", "date", "rows", "says, %", "is right, %", "gap", "e-value", "advice"]
    return table(head, rows[::-1], f"Newest first{some}")


def _row(number: int, record: Record) -> list[str]:
    date = joined([element("time", record.date[:10]), " ", record.date[11:16]])
    name = f"{number} {record.name}".strip()
    sums = record.labelled
    if sums is None:
        return [name, date, f"{record.predictions.rows:,}", "", "", "", "", record.action]
    gap, low, high = gap_of(sums)
    return [
        name,
        date,
        f"{sums.rows:,}",
        f"{100 * sums.confidence / sums.rows:.1f}",
        f"{100 * sums.accuracy:.1f}",
        f"{points(gap)} ({points(low)} to {points(high)})",
        e_value(record.log_e),
        record.action,
    ]
