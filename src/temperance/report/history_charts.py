"""The figures of a history: evidence, gap and predicted classes by check."""

from __future__ import annotations

import numpy as np

from temperance.calibrators import CALIBRATORS
from temperance.core.arrays import Indices, Vector
from temperance.display.chart import WIDE, Axis, Chart, Intervals, Line, Mark, Rule
from temperance.monitoring import Check
from temperance.monitoring.change import gap_interval
from temperance.monitoring.sums import LabelledSums
from temperance.monitoring.words import e_value, points

HIGH, LOW = 1e9, 1e-6  # of e-values in the figure
MOST_SHARES = 5  # classes in the figure
COLOURS = tuple(CALIBRATORS)  # whose colours can be distinguished with colour blindness
SIZE = (WIDE, 3.2)
MOST_DATES = 6  # on the axis


def gap_of(sums: LabelledSums) -> tuple[float, float, float]:
    """Return the gap of a check in its own rows, and its interval."""
    gap = float(sums.residuals[0]) / sums.rows
    return gap, *gap_interval(sums.rows, sums.residuals[0], sums.squares[0])


def evidence_chart(check: Check) -> Chart | None:
    """Return the e-value on a logarithmic axis, with the line of the alarm; None without labels."""
    at = _labelled(check)
    if not at.size:
        return None
    logs = np.array([check.records[i].log_e for i in at])
    values = np.exp(np.clip(logs, np.log(LOW), np.log(HIGH)))
    alarm = 1 / check.alpha
    tips = [f"{_told(check, i)}: e-value {e_value(log)}" for i, log in zip(at.tolist(), logs, strict=True)]
    marks: list[Mark] = [
        Rule(alarm, label=f"alarm at {alarm:.3g}"),
        Line(_places(at), values, method=COLOURS[0], label="e-value", tips=tips),
    ]
    state = "The alarm was raised" if check.alarm else "No alarm"
    ends = (min(float(values.min()), 0.1) / 1.5, max(float(values.max()), 2 * alarm) * 1.5)
    return Chart(
        "Evidence of a change",
        f"{state}: the alarm is at an e-value of {alarm:.3g}, which an unchanged calibrator reaches with a "
        f"probability of at most {100 * check.alpha:.3g} % over all checks.",
        _dates(check),
        Axis("e-value", ends, log=True),
        marks,
        SIZE,
    )


def gap_chart(check: Check) -> Chart | None:
    """Return accuracy minus confidence, with intervals and limits; None without labels."""
    at = _labelled(check)
    if not at.size:
        return None
    gaps = 100 * np.array([gap_of(sums) for i in at if (sums := check.records[i].labelled) is not None])
    low, high = (100 * limit for limit in check.gap_limits)
    tips = [
        f"{_told(check, i)}: {points(gap[0] / 100)} points" for i, gap in zip(at.tolist(), gaps, strict=True)
    ]
    marks: list[Mark] = [
        Rule(low, label="allowed"),
        Rule(high),
        Intervals(_places(at), gaps[:, 0], gaps[:, 1], gaps[:, 2], method=COLOURS[0], tips=tips),
    ]
    allowed, widest = max(-low, high), float(np.abs(gaps).max())
    limit = max(1.5 * allowed, min(1.1 * widest, 2 * max(allowed, float(np.abs(gaps[:, 0]).max())), 100.0))
    return Chart(
        "Right minus said",
        "Accuracy minus mean confidence, in percentage points, with 95 % "
        "intervals for the rows of each check. Below 0 the calibrator is overconfident.",
        _dates(check),
        Axis("gap, points", (-limit, limit)),
        marks,
        SIZE,
    )


def shares_chart(check: Check) -> Chart:
    """Return the share of rows by predicted class, for the classes that are predicted most."""
    counts = np.array([record.predictions.predicted for record in check.records])
    rows = counts.sum(axis=1, keepdims=True)
    largest = np.argsort(-counts.sum(axis=0), kind="stable")[:MOST_SHARES]
    at = np.arange(1.0, len(counts) + 1)
    marks: list[Mark] = []
    for k, colour in zip(largest, COLOURS, strict=False):
        share: Vector = 100 * counts[:, k] / rows[:, 0]
        name = check.class_names[k]
        tips = [f"{_told(check, i)}: {name} {value:.1f} %" for i, value in enumerate(share)]
        marks.append(Line(at, share, method=colour, label=name, tips=tips))
    top = max(float(100 * (counts / rows)[:, largest].max()) * 1.1, 1.0)
    which = "" if len(largest) == counts.shape[1] else f", of the {len(largest)} most frequent ones"
    return Chart(
        "Predicted classes",
        f"Share of the rows of each check by predicted class{which}. This needs no labels.",
        _dates(check),
        Axis("share, %", (0.0, top)),
        marks,
        SIZE,
    )


def _labelled(check: Check) -> Indices:
    return np.flatnonzero([record.labelled is not None for record in check.records])


def _places(at: Indices) -> Vector:
    return at.astype(np.float64) + 1


def _told(check: Check, number: int) -> str:
    record = check.records[number]
    return f"{record.date[:10]} {record.name}".strip()


def _dates(check: Check) -> Axis:
    """Return an axis with a position for each check, and the dates of some; their numbers if dates repeat."""
    number = len(check.records)
    shown = range(0, number, -(-number // MOST_DATES))
    dates = [check.records[i].date[:10] for i in shown]
    names = dates if len(set(dates)) == len(dates) else [str(i + 1) for i in shown]
    ticks = tuple((float(i + 1), name) for i, name in zip(shown, names, strict=True))
    margin = 0.5 + 0.05 * number  # room for the first and the last date
    return Axis("check", (1 - margin, number + margin), ticks=ticks)
