"""The temperature by the entropy of a row: the best temperature, and each method's.

With h = log(H / log K), H the entropy of softmax(z), the rows are split into bins by h, of equal count or of
equal width. A temperature that depends on the entropy should follow the best single temperature of each bin.
If that temperature is constant, TS is enough.

The interval of a best temperature is normal on log T, with the Fisher information of the group's rows. If all
rows are correct, or the labels are no better than chance, the likelihood has no maximum. A weak prior then
determines the temperature: it is not identified, and the interval is the whole range of temperatures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temperance.calibrators import UNCALIBRATED, Calibrator, method_style
from temperance.calibrators.estimator import model_of
from temperance.calibrators.hnlts import log_normalised_entropy
from temperance.calibrators.single_temperature import SingleTemperatureFit, fit_single_temperature
from temperance.comparison import Comparison
from temperance.core.arrays import Matrix, Vector
from temperance.core.logit_rows import LogitRows
from temperance.core.objective import FitData
from temperance.core.predictors import TEMPERATURE_MAX, TEMPERATURE_MIN
from temperance.display.base import Display, chosen
from temperance.display.chart import (
    Axis,
    Chart,
    Dots,
    Intervals,
    Line,
    Mark,
    Rule,
    robust_limits,
)
from temperance.inputs.containers import LabelledRows, open_labelled
from temperance.metrics.bins import check_bins

MIN_ROWS = 10  # per group: fewer hardly constrain a temperature
_MAX_POINTS = 400
_RARE = 0.01  # largest share of the rows, or of a method's temperatures, outside the axes
_NEAR = 2.3  # in log T, a factor of 10: values this close to the best temperatures are always shown
IDENTIFIED_RATIO = 10.0
"""Ratio of the ends of an interval above which a best temperature is not identified.

Classifiers need temperatures between about 0.5 and 5; an interval of a decade excludes none of them. A
smaller ratio would hide groups of 10 to 30 rows, whose intervals still separate over- from underconfidence.
"""


def checked_rows(logits: Any, labels: ArrayLike, sample_weight: ArrayLike | None) -> LabelledRows:
    """Open labelled rows and check them."""
    rows = open_labelled(logits, labels, sample_weight)
    rows.checked()
    return rows


def fit_best(rows: LabelledRows) -> SingleTemperatureFit:
    """Fit the best single temperature of all rows."""
    data = FitData(LogitRows(rows.logits, rows.labels), rows.weights)
    return fit_single_temperature(data, exact=True)


def best_temperatures(
    rows: LabelledRows, groups: Sequence[NDArray[np.intp]]
) -> tuple[NDArray[np.intp], Matrix]:
    """Return which groups identify their best temperature, and these temperatures with their intervals."""
    fits = []
    for group in groups:
        fit = fit_best(rows.take(np.sort(group)))  # sorted: a memory map is read in order
        covariance = fit.solution.covariance
        # At a bound the solver keeps T fixed and returns a variance of 0, which means: not identified.
        error = np.sqrt((0.0 if covariance is None else float(covariance[0, 0])) or np.nan)
        fits.append((np.log(fit.temperature), np.inf if fit.degeneracy is not None else error))
    centre, error = np.array(fits).reshape(-1, 2).T
    half = NormalDist().inv_cdf(0.975) * error
    bounds = np.log([TEMPERATURE_MIN, TEMPERATURE_MAX])
    best = np.exp(np.stack([centre, *np.clip([centre - half, centre + half], *bounds)]))
    known = np.flatnonzero(best[2] < IDENTIFIED_RATIO * best[1])
    return known, best[:, known]


def temperatures(calibrator: Calibrator, rows: LabelledRows, index: NDArray[np.intp]) -> Vector:
    """Return T of some of the rows."""
    return np.asarray(calibrator.temperature(rows.logits[index]))


def _calibrators(comparison: Comparison, methods: Sequence[str] | None) -> dict[str, Any]:
    return {name: comparison.results[name].calibrator for name in chosen(methods, comparison.results)}


def _with_temperature(calibrators: Mapping[str, Calibrator]) -> dict[str, Calibrator]:
    """Leave out methods without T(z): ETS, and the classifier itself."""
    return {
        name: calibrator
        for name, calibrator in calibrators.items()
        if isinstance(calibrator, Calibrator) and model_of(calibrator).temperature_quantiles is not None
    }


@dataclass(frozen=True, eq=False)
class BestTemperatures(Display):
    """The best temperatures of groups of rows that identify them, and `single` for all rows."""

    optimum: Vector
    low: Vector
    high: Vector
    single: float

    def best(self, at: Vector, group: str, rows: Sequence[str], *, flat: bool) -> Intervals:
        """Return the best temperatures at positions along x, or along y if their intervals are `flat`."""
        ends = zip(rows, self.optimum, self.low, self.high, strict=True)
        tips = [f"{words}: best T {t:.3g} ({low:.3g} to {high:.3g})" for words, t, low, high in ends]
        return Intervals(at, self.optimum, self.low, self.high, flat, label=f"best T of a {group}", tips=tips)

    def limits(self, values: Sequence[Vector]) -> tuple[float, float]:
        """Return limits that contain the best temperatures, most whiskers, and most rows of most methods."""
        best = np.log([[self.single, *column] for column in (self.optimum, self.low, self.high)])
        ends = [np.log(np.quantile(one, [0.5, _RARE / 2, 1 - _RARE / 2])) for one in values if len(one)]
        low, high = robust_limits(*np.column_stack([best, *ends]), near=_NEAR, keep=best[0])
        return float(np.exp(low)), float(np.exp(high))

    def rules(self, limits: tuple[float, float], *, upright: bool = False) -> list[Mark]:
        """Return the best single temperature, and T = 1 if it is within the limits."""
        single = Rule(self.single, upright=upright, label=f"best single T = {self.single:.3g}")
        if not limits[0] < 1 < limits[1]:
            return [single]
        return [Rule(1.0, upright=upright, label="T = 1: uncalibrated", method=UNCALIBRATED), single]


@dataclass(frozen=True, eq=False)
class TemperatureDisplay(BestTemperatures):
    """T against log entropy: each method's T of some rows, and the best T of each bin of all rows.

    Attributes
    ----------
    optimum, low, high : arrays of shape (B,)
        Best single temperature of the rows of each bin that identifies it, and its interval.
    single : float
        Best single temperature of all rows.
    log_entropy : array of shape (P,)
        log(H / log K), at least -20, of at most 400 rows, evenly spaced in rank and ascending.
    temperature : dict from name to array of shape (P,)
        T of those rows by each method.
    centre, count : arrays of shape (B,)
        Mean log entropy and number of rows of each of these bins.
    unidentified : int
        Number of bins that are left out, such as those whose rows are all correct.

    Examples
    --------
    >>> import temperance
    >>> from temperance.data import simulate
    >>> task = simulate(4000, 4, entropy_slope=0.2, random_state=1)
    >>> hts = temperance.EntropyTemperatureScaling().fit(task.logits, task.labels)
    >>> display = TemperatureDisplay.from_calibrators({"hts": hts}, task.logits, task.labels, bins=4)
    >>> display.count, display.optimum.shape, display.temperature["hts"].shape
    (array([1000, 1000, 1000, 1000]), (4,), (400,))
    >>> bool(display.optimum[0] < display.single < display.optimum[-1])  # unsure rows claim too much
    True
    """

    log_entropy: Vector
    temperature: dict[str, Vector]
    centre: Vector
    count: NDArray[np.intp]
    unidentified: int = 0

    @classmethod
    def from_calibrators(
        cls,
        calibrators: Mapping[str, Calibrator],
        logits: Any,
        labels: ArrayLike,
        *,
        bins: int = 10,
        strategy: str = "mass",
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Compute from fitted calibrators and labelled rows, preferably of a test set.

        Parameters
        ----------
        calibrators : mapping from name to Calibrator
            Calibrators without a temperature T(z), such as ETS, are left out.
        logits, labels, sample_weight
            As for `Calibrator.fit`.
        bins : int
            Largest number of bins: each has at least 10 rows, and rows of equal entropy are not split.
        strategy : "mass" or "width"
            Bins with about the same number of rows, or of equal width in log entropy, as in the paper. Of the
            latter, bins with fewer than 10 rows are left out.
        """
        bins = check_bins(bins, strategy)
        fits, rows = _with_temperature(calibrators), checked_rows(logits, labels, sample_weight)
        entropy = log_normalised_entropy(LogitRows(rows.logits, rows.labels))
        order = np.argsort(entropy, kind="stable")
        sample = order[np.linspace(0, len(order) - 1, min(len(order), _MAX_POINTS)).astype(np.intp)]
        groups = _entropy_groups(order, entropy[order], bins, strategy)
        known, (optimum, low, high) = best_temperatures(rows, groups)
        shown = [groups[i] for i in known]
        w = rows.weights
        return cls(
            optimum,
            low,
            high,
            fit_best(rows).temperature,
            entropy[sample],
            {name: temperatures(calibrator, rows, sample) for name, calibrator in fits.items()},
            np.array(
                [np.average(entropy[group], weights=None if w is None else w[group]) for group in shown]
            ),
            np.array([len(group) for group in shown], np.intp),
            len(groups) - len(shown),
        )

    @classmethod
    def from_comparison(cls, comparison: Comparison, methods: Sequence[str] | None = None) -> Self:
        """Compute from the test rows and the calibrators of some methods, by default of all with a T."""
        fits, rows = _calibrators(comparison, methods), comparison.judged
        return cls.from_calibrators(fits, rows.logits, rows.labels, sample_weight=rows.weights)

    def chart(self) -> Chart:
        """Return the rows' temperatures as dots with a line through them, and the best of each bin on top."""
        values, faint = list(self.temperature.values()), len(self.temperature) > 3
        x, marks = self.log_entropy, self.rules(self.limits(values))
        parts = np.array_split(np.arange(len(x)), min(len(x), 12))
        places = np.array([x[part].mean() for part in parts])
        for name, dots in self.temperature.items():
            heights = np.exp([np.log(dots[part]).mean() for part in parts])  # means of neighbouring rows
            marks.append(Dots(x, dots, fine=True, method=name, faint=faint))
            marks.append(Line(places, heights, method=name, label=method_style(name).label))
        return self.chart_of(marks, values)

    def chart_of(self, marks: Sequence[Mark], values: Sequence[Vector]) -> Chart:
        """Return a chart with the best temperatures on top of some marks, whose temperatures are `values`."""
        # All bins, and all rows except a few that are far from the others.
        entropies = robust_limits(self.log_entropy, rare=_RARE, reach=0.5, keep=self.centre)
        return Chart(
            "Temperature by entropy",
            self._in_words(),
            Axis("sure ← log entropy, log(H / log K) → unsure", entropies),
            Axis("temperature T", self.limits(values), log=True),
            [*marks, self.best(self.centre, "bin", [f"{n:,} rows" for n in self.count], flat=False)],
        )

    def _in_words(self) -> str:
        words = f"The best single temperature of these rows is {self.single:.3g}."
        if len(self.optimum) > 1:
            low, high = f"{self.optimum[0]:.3g}", f"{self.optimum[-1]:.3g}"
            words += f" By entropy it goes from {low} (confident rows) to {high} (uncertain rows)."
        words += (
            " Circles: the best temperature of each bin of rows, with its interval. A method whose dots "
            "follow the circles has learned the dependence on the entropy. A T that acts after a map of "
            "probabilities, as in bayes, need not follow the circles."
        )
        if self.unidentified:
            words += f" Bins without an identified best temperature are not drawn: {self.unidentified}."
        return words


def _entropy_groups(
    order: NDArray[np.intp], ascending: Vector, bins: int, strategy: str
) -> list[NDArray[np.intp]]:
    """Split the ordered rows, whose entropies ascend, into parts of equal count or at equal steps."""
    if strategy == "width":
        steps = np.linspace(ascending[0], ascending[-1], bins + 1)[1:-1]
        parts = np.split(order, np.searchsorted(ascending, steps, side="right"))
        return [part for part in parts if len(part) >= MIN_ROWS]
    # Rows of equal entropy stay together: a very confident classifier has many rows at the floor, which must
    # be one bin, not several at the same place.
    number = max(1, min(bins, len(order) // MIN_ROWS))
    cuts = np.arange(1, number) * len(order) // number
    moved = np.unique(np.searchsorted(ascending, ascending[cuts]))
    return np.split(order, moved[moved > 0])
