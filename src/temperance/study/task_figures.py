"""The figures of one task: the paper's four figures of temperatures.

The store of a study has only scores, so the methods are fitted again with the study's rows and random seed:
to all validation rows, or to small subsamples. The best temperatures come from TS fitted to groups of test
rows.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from temperance.calibrators import method_style
from temperance.calibrators.external_methods import find_methods, fit
from temperance.calibrators.hnlts import log_normalised_entropy
from temperance.core.arrays import Matrix, Vector
from temperance.display import ClassTemperatureDisplay, TemperatureDisplay
from temperance.display.base import Display
from temperance.display.chart import Axis, Chart, Dots, Line, Mark, Rule, outside
from temperance.display.temperature import MIN_ROWS, as_rows, temperatures
from temperance.errors import InputError
from temperance.study.paper import SIZES
from temperance.study.protocol import WorkUnit
from temperance.study.results import Results
from temperance.study.tasks import TaskFile, load_task

LINES = 10  # draws of few rows to show, for a method whose T is a line
MAX_DOTS = 20_000
RARE = 0.01  # largest share of dots outside the axes: outliers would flatten everything else


@dataclass(frozen=True, eq=False)
class EntropyTemperatures(Display):
    """T of one method against the log normalised entropy of test rows, fitted to all rows and to few.

    Attributes
    ----------
    method : str
        Its key.
    log_entropy : array of shape (P,)
        Log entropy of test rows, ascending.
    by_all : array of shape (P,)
        T of the method fitted to all validation rows.
    by_few : array of shape (D, P)
        T fitted to each of D subsamples; None if the task has only few rows.
    best : TemperatureDisplay
        Best temperatures of bins of equal width.
    ts : float
        T of TS, fitted to all validation rows.
    rows, few : int
        Numbers of rows of the fits.
    """

    method: str
    log_entropy: Vector
    by_all: Vector
    by_few: Matrix
    best: TemperatureDisplay
    ts: float
    rows: int
    few: int

    def chart(self) -> Chart:
        """Return the best T of bins on top of the method's T: light for few rows, dark for all.

        A bad draw to few rows does not stretch the axis.
        """
        draws = f", {len(self.by_few)} draws" if len(self.by_few) > 1 else ""
        shown = [self.by_all, np.array([self.ts])]
        limits = self.best.limits(shown)
        marks = self._marks(self.by_few, f"{self.few} rows{draws}", limits, faint=True)
        marks += self._marks(self.by_all[None], f"all {self.rows} rows", limits, faint=False)
        marks.append(Rule(self.ts, method="ts", label=f"TS: T = {self.ts:.3g}"))
        return self.best.chart_of(marks, shown)

    def _marks(self, values: Matrix, words: str, limits: tuple[float, float], *, faint: bool) -> list[Mark]:
        """Return one line per fit if T is a function of the entropy, or else dots."""
        kind = Line if self.method == "hts" else partial(Dots, fine=True)
        words, beyond = f"{method_style(self.method).label}, {words}", outside(values, limits)
        if beyond.any() and self.method == "hts":
            words += f"\n({beyond.any(axis=1).sum()} of {len(values)} leave the axes)"
        elif beyond.any():
            words += f"\n({100 * beyond.mean():.1f}% outside the axes)"
        labels = [words] + [""] * len(values)  # one in the legend
        return [
            kind(self.log_entropy, line, method=self.method, label=label, faint=faint)
            for line, label in zip(values, labels, strict=False)
        ]


@dataclass(frozen=True, eq=False)
class TwoTemperatures(Display):
    """T of all test rows by HTS and by PTS, both fitted to all validation rows."""

    hts: Vector
    pts: Vector

    @property
    def rank_correlation(self) -> float:
        """Spearman's correlation; nan if one of the two is constant."""
        return float(pd.DataFrame([self.hts, self.pts]).T.corr("spearman").iat[0, 1])

    @property
    def limits(self) -> tuple[float, float]:
        """Limits for both axes, which leave out outliers."""
        both = np.concatenate([self.hts, self.pts])
        low, high = np.quantile(both, [RARE / 2, 1 - RARE / 2])
        margin = 0.06 * (high - low) + 0.01
        return float(low - margin), float(high + margin)

    def chart(self) -> Chart:
        """Return T of PTS against T of HTS, one dot per test row, with the diagonal."""
        limits, ends = self.limits, np.array(self.limits)
        beyond = (outside(self.hts, limits) | outside(self.pts, limits)).mean()
        words = f"{100 * beyond:.1f}% of {len(self.hts)} rows lie outside"
        if not np.isnan(self.rank_correlation):
            words = f"correlation of ranks: {self.rank_correlation:.2f}\n{words}"
        return Chart(
            "PTS against HTS",
            words,
            Axis("temperature T of HTS", limits),
            Axis("temperature T of PTS", limits),
            [Dots(self.hts, self.pts, fine=True, method="pts"), Line(ends, ends)],
            (3.4, 3.7),
        )


# ---- computing


def class_temperatures(results: Results, task: TaskFile) -> ClassTemperatureDisplay:
    """Fit LTS and TS to all validation rows, and one temperature to the test rows of each class."""
    test = load_task(task).test
    fits = {key: _fitted(results, task, key) for key in ("ts", "lts")}
    shown = ClassTemperatureDisplay.from_calibrators(fits, test.logits, test.labels)
    if not len(shown.classes):
        raise InputError(
            f"no class of {task.name} has {MIN_ROWS} test rows, some of them wrong, as a figure by class "
            "needs. Choose another task."
        )
    return shown


def entropy_temperatures(results: Results, task: TaskFile, method: str) -> EntropyTemperatures:
    """Fit a method to all validation rows and to few, and TS to the test rows of each bin of entropy."""
    test = load_task(task).test
    entropy = log_normalised_entropy(as_rows(test))
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
    return EntropyTemperatures(
        method,
        entropy[index],
        temperatures(_fitted(results, task, method), test, index),
        np.reshape(by_few, (draws, len(index))),
        TemperatureDisplay.from_calibrators({}, test.logits, test.labels, bins=20, strategy="width"),
        float(temperatures(_fitted(results, task, "ts"), test, np.arange(1))[0]),
        task.rows,
        few,
    )


def two_temperatures(results: Results, task: TaskFile) -> TwoTemperatures:
    """Fit HTS and PTS to all validation rows."""
    test = load_task(task).test
    every = np.arange(len(test))
    hts, pts = (temperatures(_fitted(results, task, key), test, every) for key in ("hts", "pts"))
    return TwoTemperatures(hts, pts)


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
