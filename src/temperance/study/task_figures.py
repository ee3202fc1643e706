"""The figures of one task: the paper's four figures of temperatures.

The store of a study has only scores, so the methods are fitted again with the study's rows and random seed:
to all validation rows, or to small subsamples. The best temperatures come from TS fitted to groups of test
rows.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from temperance.calibrators import method_style
from temperance.calibrators.external_methods import find_methods, fit
from temperance.calibrators.hnlts import log_normalised_entropy
from temperance.core.arrays import Vector
from temperance.display import TemperatureDisplay
from temperance.display.chart import WIDE, Axis, Chart, Dots, Line, Mark, Rule, outside
from temperance.display.temperature import (
    MIN_ROWS,
    BestTemperatures,
    best_temperatures,
    fit_best,
    temperatures,
)
from temperance.errors import InputError
from temperance.study.paper import SIZES
from temperance.study.protocol import WorkUnit
from temperance.study.results import Results
from temperance.study.tasks import TaskFile, load_task

LINES = 10  # draws of few rows to show, for a method whose T is a line
MAX_DOTS = 20_000
MAX_CLASSES = 30  # those that differ most from the best single temperature
RARE = 0.01  # largest share of dots outside the axes: outliers would flatten everything else


def class_temperatures(results: Results, task: TaskFile) -> Chart:
    """Return the mean T of LTS by true class, and the best T of the test rows of each class.

    No method sees the class: it can approach these temperatures only as far as the logits predict the class.
    """
    test = load_task(task).test
    rows_of = [np.flatnonzero(test.labels == k) for k in np.unique(test.labels)]
    groups = [rows for rows in rows_of if len(rows) >= MIN_ROWS]
    known, found = best_temperatures(test, groups)
    if not len(known):
        raise InputError(
            f"no class of {task.name} has {MIN_ROWS} test rows, some of them wrong, as a figure by class "
            "needs. Choose another task."
        )
    single = fit_best(test).temperature
    shown = np.argsort(-np.abs(np.log(found[0] / single)), kind="stable")[:MAX_CLASSES]
    shown = shown[np.argsort(found[0, shown], kind="stable")]
    groups = [groups[i] for i in known[shown]]
    optimum, low, high = found[:, shown]
    best = BestTemperatures(optimum, low, high, single)
    lts = _fitted(results, task, "lts")
    mean = np.array([temperatures(lts, test, group).mean() for group in groups])
    ts = temperatures(_fitted(results, task, "ts"), test, np.arange(1))
    limits, at = best.limits([mean, ts]), np.arange(len(groups), dtype=np.float64)
    names = [str(test.labels[group[0]]) for group in groups]
    rows = [f"class {name}, {len(group)} rows" for name, group in zip(names, groups, strict=True)]
    marks = [*best.rules(limits, upright=True), best.best(at, "class", rows, flat=True)]
    marks.append(Rule(float(ts[0]), upright=True, method="ts", label=f"TS: T = {ts[0]:.3g}"))
    marks.append(Dots(mean, at, method="lts", label=method_style("lts").label))
    return Chart(
        "Temperature by true class",
        "Circles: the best temperature of the rows of each class; dots: the mean temperature of LTS.",
        Axis("temperature T", limits, log=True),
        Axis.of_names(f"true class ({len(groups)} of {test.logits.shape[1]})", names),
        marks,
        (WIDE, 1.2 + 0.3 * max(len(groups), 3)),
    )


def entropy_temperatures(results: Results, task: TaskFile, method: str) -> Chart:
    """Return T by log normalised entropy: of a method, light for few rows, dark for all; the best T on top.

    The method is fitted to all validation rows and to few. A bad draw to few rows does not stretch the axis.
    """
    test = load_task(task).test
    entropy = log_normalised_entropy(test.checked())
    index = np.argsort(entropy, kind="stable")
    if method == "hts":  # a line: rows at about equal steps of entropy
        steps = np.linspace(entropy.min(), entropy.max(), 200)
        at = np.searchsorted(entropy[index], steps)
        index = index[np.unique(np.minimum(at, len(index) - 1))]
    elif len(index) > MAX_DOTS:
        index = index[np.linspace(0, len(index) - 1, MAX_DOTS).astype(np.intp)]
    few = SIZES[0] if SIZES[0] in results.sizes else results.sizes[0]  # as in the paper
    draws = 0 if few >= task.rows else LINES if method == "hts" else 1
    by_few = [temperatures(_fitted(results, task, method, few, i), test, index) for i in range(draws)]
    by_all = temperatures(_fitted(results, task, method), test, index)
    ts = temperatures(_fitted(results, task, "ts"), test, np.arange(1))
    best = TemperatureDisplay.from_calibrators({}, test.logits, test.labels, bins=20, strategy="width")
    limits = best.limits([by_all, ts])
    marks: list[Mark] = []
    several = f", {draws} draws" if draws > 1 else ""
    for fits, rows, faint in (
        (by_few, f"{few} rows{several}", True),
        ([by_all], f"all {task.rows} rows", False),
    ):
        label, beyond = f"{method_style(method).label}, {rows}", outside(np.array(fits), limits)
        if beyond.any() and method == "hts":
            label += f"\n({beyond.any(axis=1).sum()} of {len(fits)} leave the axes)"
        elif beyond.any():
            label += f"\n({100 * beyond.mean():.1f}% outside the axes)"
        kind = Line if method == "hts" else partial(Dots, fine=True)
        for i, line in enumerate(fits):  # one in the legend
            marks.append(kind(entropy[index], line, method=method, label="" if i else label, faint=faint))
    marks.append(Rule(float(ts[0]), method="ts", label=f"TS: T = {ts[0]:.3g}"))
    return best.chart_of(marks, [by_all, ts])


def two_temperatures(results: Results, task: TaskFile) -> Chart:
    """Return T of all test rows by PTS against T by HTS, both fitted to all validation rows."""
    test = load_task(task).test
    every = np.arange(len(test))
    return compare_temperatures(
        *(temperatures(_fitted(results, task, key), test, every) for key in ("hts", "pts"))
    )


def compare_temperatures(hts: Vector, pts: Vector) -> Chart:
    """Return T of PTS against T of HTS, one dot per row, with the diagonal; the limits leave out outliers."""
    low, high = np.quantile(np.concatenate([hts, pts]), [RARE / 2, 1 - RARE / 2])
    margin = 0.06 * (high - low) + 0.01
    limits = float(low - margin), float(high + margin)
    beyond = (outside(hts, limits) | outside(pts, limits)).mean()
    words = f"{100 * beyond:.1f}% of {len(hts)} rows lie outside"
    correlation = pd.DataFrame({"hts": hts, "pts": pts}).corr("spearman").at["hts", "pts"]
    if not np.isnan(correlation):  # if both T depend on the row
        words = f"correlation of ranks: {correlation:.2f}\n{words}"
    return Chart(
        "PTS against HTS",
        words,
        Axis("temperature T of HTS", limits),
        Axis("temperature T of PTS", limits),
        [Dots(hts, pts, fine=True, method="pts"), Line(np.array(limits), np.array(limits))],
        (3.4, 3.7),
    )


def _fitted(results: Results, task: TaskFile, method: str, n: int | None = None, draw: int = 0) -> Any:
    """Fit a method as the study does, with the same rows and random seed; by default to all rows."""
    size = task.rows if n is None else min(n, task.rows)
    unit = WorkUnit(task, size, draw, results.seed, find_methods([method]))
    rows, calibrator = load_task(task).val.take(unit.rows()), unit.calibrator(method)
    try:
        with warnings.catch_warnings():
            # Every fit to few rows would warn; here the figure shows it.
            warnings.simplefilter("ignore")
            fit(calibrator, rows.logits, rows.labels, positions=rows.positions)
    except InputError as error:
        raise InputError(
            f"{method_style(method).label} cannot be fitted to {len(rows)} rows of {task.name}: {error}"
        ) from error
    return calibrator
