"""The checks of a calibrator over time, as one page: evidence, gap, confidence, classes by check."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from markupsafe import Markup

from temperance.calibrators import CALIBRATORS
from temperance.core.arrays import Indices, Vector
from temperance.display import GapsDisplay
from temperance.display.chart import WIDE, Axis, Chart, Intervals, Line, Rule, robust_limits
from temperance.files import write_atomically
from temperance.metrics.finding import rates
from temperance.monitoring import Check
from temperance.monitoring.words import e_value, points
from temperance.report.markup import element, html_document, joined, table
from temperance.report.svg import figure

MAX_SHARES = 5  # classes in the figure
MAX_DATES = 6  # on the axis
MIN_E_VALUE, MAX_E_VALUE = 1e-6, 1e9  # in the figure
_SIZE = (WIDE, 3.2)
_COLOURS = tuple(CALIBRATORS)  # whose colours can be distinguished with colour blindness


def write_history(
    check: Check, path: str | Path, *, title: str = "Checks of a calibrator", overwrite: bool = False
) -> None:
    """Write a check and all earlier ones as one HTML file."""
    write_atomically(path, render_history(check, title=title).encode(), overwrite=overwrite)


def render_history(check: Check, *, title: str = "Checks of a calibrator") -> str:
    """Return the page as text."""
    verdict, *rest = check.sentences
    # Nothing green stands above a number outside its range.
    colour = {"keep": "better" if check.within else "same", "watch": "watch", "act": "worse"}[check.state]
    at = np.flatnonzero([record.labelled is not None for record in check.records])
    # Evidence and gap need labels.
    charts = {"evidence": evidence_chart(check, at), "gap": gap_chart(check, at)} if at.size else {}
    charts["confidence"] = confidence_chart(check)
    charts["shares"] = shares_chart(check)
    if check.by_group is not None:
        charts["gaps"] = GapsDisplay.from_evaluation(check).chart()
    body = element(
        "main",
        element("h1", title),
        element("p", verdict, class_=f"verdict {colour}", id="verdict"),
        element("ul", *(element("li", sentence) for sentence in rest)),
        *(figure(name, chart, heading=True) for name, chart in charts.items()),
        element("h2", "All checks"),
        _table(check),
        class_="single",
    )
    return html_document(title, body)


def _table(check: Check) -> Markup:
    """List the checks, the newest first."""
    rows, judged = [], check.limits.judged
    column = int(check.limits.columns[judged])
    for number, record in enumerate(check.records, 1):
        date = joined([element("time", record.date[:10]), " ", record.date[11:16]])
        n_rows, found = record.predictions.rows, ["", "", "", ""]
        sums = record.labelled
        if sums is not None:
            n_rows, gap = sums.rows, sums.gap_of(judged)
            found = [
                *rates(*sums.rates_of(column)),
                f"{points(gap.value)} ({points(gap.low)} to {points(gap.high)})",
                e_value(record.log_e),
            ]
        name = f"{number} {record.name}".strip()
        rows.append([name, date, f"{n_rows:,.0f}", *found, record.action])
    counted = "groups" if check.groups else "rows"
    told = ("conf.", "acc.") if column < 0 else ("mean P", "observed")
    head = ["check", "date", counted, *told, "gap, points", "e-value", "advice"]
    return table(head, rows[::-1], "Newest first")


def evidence_chart(check: Check, at: Indices) -> Chart:
    """Return the e-value of the labelled checks on a logarithmic axis, with the line of the alarm."""
    logs = np.array([check.records[i].log_e for i in at])
    values = np.exp(np.clip(logs, np.log(MIN_E_VALUE), np.log(MAX_E_VALUE)))
    alarm = 1 / check.alpha
    words = [f"e-value {e_value(log)}" for log in logs]
    marks = [Rule(alarm, label=f"alarm at {alarm:.3g}"), _line(check, at, values, "e-value", words)]
    state = "The alarm was raised" if check.alarm else "No alarm"
    ends = (min(float(values.min()), 0.1) / 1.5, max(float(values.max()), 2 * alarm) * 1.5)
    return Chart(
        "Evidence of a change",
        f"{state}: the alarm is at an e-value of {alarm:.3g}, which an unchanged calibrator reaches with a "
        f"probability of at most {100 * check.alpha:.3g}% over all checks.",
        _dates(check),
        Axis("e-value", ends, log=True),
        marks,
        _SIZE,
    )


def gap_chart(check: Check, at: Indices) -> Chart:
    """Return prediction minus observation of the labelled checks, with intervals and limits."""
    judged = check.limits.judged
    labelled = [sums.gap_of(judged) for i in at if (sums := check.records[i].labelled) is not None]
    gaps = 100 * np.array([(gap.value, gap.low, gap.high) for gap in labelled])
    low, high = (100 * limit for limit in check.gap_limits)
    tips = _tips(check, at, [f"{points(gap / 100)} points" for gap in gaps[:, 0]])
    intervals = Intervals((at + 1).astype(np.float64), *gaps.T, method=_COLOURS[0], tips=tips)
    column = int(check.limits.columns[judged])
    title, what = "Confidence minus accuracy", "Mean confidence minus accuracy"
    if column >= 0:
        name = check.class_names[column]
        title, what = f"P({name}) minus the share of {name}", f"Mean P({name}) minus its share of the labels"
    return Chart(
        title,
        f"{what}, in percentage points, with 95% intervals for the rows of each check. Above 0, predictions "
        "are too high.",
        _dates(check),
        Axis("gap, points", robust_limits(*gaps.T, keep=[*gaps[:, 0], 1.5 * low, 1.5 * high])),
        [Rule(low, label="allowed"), Rule(high), intervals],
        _SIZE,
    )


def confidence_chart(check: Check) -> Chart:
    """Return the mean confidence of the checks, and that at the fit."""
    said = np.array([100 * record.predictions.said / record.predictions.rows for record in check.records])
    at = np.flatnonzero(np.isfinite(said))  # the first histories do not have it
    fit = 100 * check.limits.baseline.mean_confidence
    said = said[at]
    words = [f"{value:.1f}%" for value in said]
    return Chart(
        "Confidence",
        "Mean confidence of the rows of each check, and at the fit. This needs no labels.",
        _dates(check),
        Axis("mean confidence, %", robust_limits(said, keep=[*said, fit - 2, fit + 2])),
        [Rule(fit, label="at the fit"), _line(check, at, said, "mean confidence", words)],
        _SIZE,
    )


def shares_chart(check: Check) -> Chart:
    """Return the share of rows by predicted class, for the classes that are predicted most."""
    counts = np.array([record.predictions.predicted for record in check.records])
    rows = counts.sum(axis=1, keepdims=True)
    largest = np.argsort(-counts.sum(axis=0), kind="stable")[:MAX_SHARES]
    at, marks = np.arange(len(counts)), []
    for k, colour in zip(largest, _COLOURS, strict=False):
        share, name = 100 * counts[:, k] / rows[:, 0], check.class_names[k]
        words = [f"{name} {value:.1f}%" for value in share]
        marks.append(_line(check, at, share, name, words, colour))
    top = max(float(100 * (counts / rows)[:, largest].max()) * 1.1, 1.0)
    which = "" if len(largest) == counts.shape[1] else f", of the {len(largest)} most frequent ones"
    return Chart(
        "Predicted classes",
        f"Share of the rows of each check by predicted class{which}. This needs no labels.",
        _dates(check),
        Axis("share, %", (0.0, top)),
        marks,
        _SIZE,
    )


def _line(
    check: Check, at: Indices, values: Vector, label: str, words: list[str], colour: str = _COLOURS[0]
) -> Line:
    """Return a line through a number of some checks, whose tooltips are `words` with the date."""
    return Line((at + 1).astype(np.float64), values, method=colour, label=label, tips=_tips(check, at, words))


def _tips(check: Check, at: Indices, words: list[str]) -> list[str]:
    """Return tooltips with the date and the name of each check."""
    records = [check.records[i] for i in at]
    return [
        f"{f'{one.date[:10]} {one.name}'.strip()}: {said}" for one, said in zip(records, words, strict=True)
    ]


def _dates(check: Check) -> Axis:
    """Return an axis with one position per check, and the dates of some; their numbers if dates repeat."""
    number = len(check.records)
    shown = range(0, number, -(-number // MAX_DATES))
    dates = [check.records[i].date[:10] for i in shown]
    names = dates if len(set(dates)) == len(dates) else [str(i + 1) for i in shown]
    ticks = tuple((float(i + 1), name) for i, name in zip(shown, names, strict=True))
    margin = 0.5 + 0.05 * number  # room for the first and the last date
    return Axis("check", (1 - margin, number + margin), ticks=ticks)
