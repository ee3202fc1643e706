"""The figures of one task: the paper's four figures of temperatures.

The store of a study has only scores, so the methods are fitted again with the study's rows and random seed:
to all validation rows, or to small subsamples. The best temperatures come from TS fitted to groups of test
rows.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
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
from temperance.display.chart import Axis, Chart, Dots, Line, Mark, Rule, Text, outside, robust_limits
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

    @property
    def limits(self) -> tuple[float, float]:
        """Limits of T: a bad draw, or the best T of a bin with few rows, must not flatten everything else.

        They contain TS and the fit to all rows, and the best temperatures that are not far from the others.
        """
        best = np.log([self.best.optimum, self.best.low, self.best.high])
        fitted = np.log([self.ts, *np.quantile(self.by_all, [RARE / 2, 1 - RARE / 2])])
        low, high = robust_limits(*best, reach=0.8, keep=fitted)
        return float(np.exp(low)), float(np.exp(high))

    def chart(self) -> Chart:
        """Return the best T of bins on top of the method's T: light for few rows, dark for all."""
        draws = f", {len(self.by_few)} draws" if len(self.by_few) > 1 else ""
        marks = self._marks(self.by_few, f"{self.few} rows{draws}", faint=True)
        marks += self._marks(self.by_all[None], f"all {self.rows} rows", faint=False)
        marks.append(Rule(self.ts, method="ts", label=f"TS: T = {self.ts:.3g}"))
        chart = self.best.chart_of(marks, [self.by_all])
        # An arrow with the value marks every best T outside the axes.
        low, high = self.limits
        inset, far = (high / low) ** 0.04, outside(self.best.optimum, self.limits)
        arrows = [
            Text(x, high / inset, f" ↑ {t:.2g} ") if t > high else Text(x, low * inset, f" ↓ {t:.2g} ")
            for x, t in zip(self.best.centre[far].tolist(), self.best.optimum[far].tolist(), strict=True)
        ]
        return replace(chart, y=replace(chart.y, limits=(low, high)), marks=[*chart.marks, *arrows])

    def _marks(self, values: Matrix, words: str, *, faint: bool) -> list[Mark]:
        """Return one line per fit if T is a function of the entropy, or else dots."""
        kind = Line if self.method == "hts" else partial(Dots, fine=True)
        words, beyond = f"{method_style(self.method).label}, {words}", outside(values, self.limits)
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
    rows: int

    @property
    def rank_correlation(self) -> float:
        """Spearman's correlation; nan if one of the two is constant."""
        return float(pd.DataFrame([self.hts, self.pts]).T.corr("spearman").iat[0, 1])

    @property
    def correlation(self) -> float:
        """Pearson's correlation; nan if one of the two is constant."""
        return float(pd.DataFrame([self.hts, self.pts]).T.corr().iat[0, 1])

    @property
    def limits(self) -> tuple[float, float]:
        """Limits for both axes, which leave out outliers."""
        both = np.concatenate([self.hts, self.pts])
        low, high = np.quantile(both, [RARE / 2, 1 - RARE / 2])
        margin = 0.06 * (high - low) + 0.01
        return float(low - margin), float(high + margin)

    @property
    def outside(self) -> float:
        """The share of rows that these limits leave out."""
        return float((outside(self.hts, self.limits) | outside(self.pts, self.limits)).mean())

    def chart(self) -> Chart:
        """Return T of PTS against T of HTS, one dot per test row, with the diagonal."""
        ends = np.array(self.limits)
        return Chart(
            "PTS against HTS",
            self._in_words(),
            Axis("temperature T of HTS", self.limits),
            Axis("temperature T of PTS", self.limits),
            [Dots(self.hts, self.pts, fine=True, method="pts"), Line(ends, ends)],
            (3.4, 3.7),
        )

    def _in_words(self) -> str:
        spearman, pearson = self.rank_correlation, self.correlation
        if np.isnan(spearman):
            return "no correlation: one of them has the same T for all rows"
        words = f"correlation: of ranks {spearman:.2f}, Pearson's {pearson:.2f}"
        return f"{words}\n{100 * self.outside:.1f}% of {len(self.hts)} rows lie outside"


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
    return TwoTemperatures(hts, pts, task.rows)


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
