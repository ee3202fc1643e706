"""The temperature by the entropy of a row, and by true class: the best temperature, and each method's.

With h = log(H / log K), H the entropy of softmax(z), the rows are split into bins by h, of equal count or of
equal width. A temperature that depends on the entropy should follow the best single temperature of each bin.
If that temperature is constant, TS is enough.

The interval of a best temperature is normal on log T, with the Fisher information of the group's rows. If all
rows are correct, or the labels are no better than chance, the likelihood has no maximum. A weak prior then
determines the temperature: it is not identified, and the interval is the whole range of temperatures.

Rows are also grouped by their label, which no method sees. A method can approach the best temperature of a
class only as far as the logits predict the class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temperance.calibrators import UNCALIBRATED, Calibrator, TemperatureCalibrator, method_style
from temperance.calibrators.hnlts import log_normalised_entropy
from temperance.calibrators.single_temperature import fit_single_temperature
from temperance.comparison import Comparison
from temperance.comparison.rows import LabelledRows, widened
from temperance.core.arrays import Indices, Matrix, Vector
from temperance.core.logit_rows import LogitRows
from temperance.core.objective import FitData
from temperance.core.predictors import TEMPERATURE_MAX, TEMPERATURE_MIN
from temperance.display.base import Display, fitted_calibrators, with_temperature
from temperance.display.chart import (
    WIDE,
    Axis,
    Chart,
    Dots,
    Intervals,
    Line,
    Mark,
    Rule,
    outside,
    robust_limits,
    shorten,
)
from temperance.display.map import has_map
from temperance.inputs.containers import open_labelled
from temperance.inputs.validation import check_labelled_rows
from temperance.metrics.bins import check_bins
from temperance.metrics.predictions import check_fraction, check_integer

MIN_ROWS = 10  # per group: fewer hardly constrain a temperature
_COPIED_ROWS = 4096  # at a time
_MAX_POINTS = 400
_RARE = 0.01  # largest share of the rows, or of a method's temperatures, outside the axes
_NEAR = 2.3  # in log T, a factor of 10: values this close to the best temperatures are always shown
_MAX_OUTSIDE = 0.05  # largest share of a method's values beyond the edges that needs no mention
MAX_LETTERS = 72  # of all class names that fit below the axis; tooltips have the full names
_MAX_NAME = 20  # letters of a class name beside the axis
IDENTIFIED_RATIO = 10.0
"""Ratio of the ends of an interval above which a best temperature is not identified.

Classifiers need temperatures between about 0.5 and 5; an interval of a decade excludes none of them. A
smaller ratio would hide groups of 10 to 30 rows, whose intervals still separate over- from underconfidence.
"""


def as_rows(rows: LabelledRows) -> LogitRows:
    """Return the rows, after checking all of them in one pass."""
    found = LogitRows(rows.logits, rows.labels)
    check_labelled_rows(found)
    return found


def weighted_rows(rows: LabelledRows) -> NDArray[np.intp]:
    """Return the indices of the rows whose weight is not 0."""
    return np.arange(len(rows)) if rows.weights is None else np.flatnonzero(rows.weights)


def best_temperatures(
    rows: LabelledRows, groups: Sequence[NDArray[np.intp]], level: float
) -> tuple[NDArray[np.intp], Matrix]:
    """Return which groups identify their best temperature, and these temperatures with their intervals."""
    fits = []
    for group in groups:
        if len(group) <= len(rows) // 2:
            part = rows.take(np.sort(group))  # sorted: a memory map is read in order
        else:  # a large group is not copied: all rows, with weight 0 for the others
            weights = np.zeros(len(rows))
            weights[group] = 1.0 if rows.weights is None else rows.weights[group]
            part = LabelledRows(rows.logits, rows.labels, weights)
        data = FitData(LogitRows(part.logits, part.labels), part.weights)
        fit = fit_single_temperature(data, exact=True)
        covariance = fit.solution.covariance
        # At a bound the solver keeps T fixed and returns a variance of 0, which means: not identified.
        error = np.sqrt((0.0 if covariance is None else float(covariance[0, 0])) or np.nan)
        fits.append((np.log(fit.temperature), np.inf if fit.degeneracy is not None else error))
    centre, error = np.array(fits).reshape(-1, 2).T
    half = NormalDist().inv_cdf((1 + level) / 2) * error
    bounds = np.log([TEMPERATURE_MIN, TEMPERATURE_MAX])
    best = np.exp(np.stack([centre, *np.clip([centre - half, centre + half], *bounds)]))
    known = np.flatnonzero(best[2] < IDENTIFIED_RATIO * best[1])
    return known, best[:, known]


def single_temperature(rows: LogitRows, weights: Vector | None) -> float:
    """Return the best temperature of all rows."""
    return fit_single_temperature(FitData(rows, weights), exact=True).temperature


def temperatures(calibrator: TemperatureCalibrator, rows: LabelledRows, index: NDArray[np.intp]) -> Vector:
    """Return T of some of the rows, copying few at a time."""
    parts = np.array_split(index, -(-len(index) // _COPIED_ROWS))
    return np.concatenate([np.asarray(calibrator.temperature(widened(rows.logits[part]))) for part in parts])


class BestTemperatures(Display):
    """The best temperatures of groups of rows that identify them, and `single` for all rows."""

    optimum: Vector
    low: Vector
    high: Vector
    single: float
    mapped: tuple[str, ...]

    def after_a_map(self) -> str:
        """Return a sentence about the methods whose T acts after a map of probabilities."""
        labels = ", ".join(method_style(name).label for name in self.mapped)
        if not labels:
            return ""
        return f" T acts after a map of probabilities, so dots need not follow the circles: {labels}."

    def beyond_the_edges(self, values: Mapping[str, Vector], limits: tuple[float, float]) -> str:
        """Return a sentence about methods with more than a few temperatures outside the figure."""
        labels = [
            method_style(name).label
            for name, temperatures in values.items()
            if len(temperatures) and outside(temperatures, limits).mean() > _MAX_OUTSIDE
        ]
        return f" Partly beyond the edges: {', '.join(labels)}." if labels else ""

    def best(self, at: Vector, group: str, rows: Sequence[str], *, flat: bool = False) -> Intervals:
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
    log_entropy : array of shape (P,)
        log(H / log K), at least -20, of at most 400 rows, evenly spaced in rank and ascending.
    temperature : dict from name to array of shape (P,)
        T of those rows by each method.
    centre, count : arrays of shape (B,)
        Mean log entropy and number of rows of each bin whose best temperature is identified.
    optimum, low, high : arrays of shape (B,)
        Best single temperature of the bin's rows, and its interval.
    single : float
        Best single temperature of all rows.
    mapped : tuple of str
        The methods whose T acts after a map of probabilities.
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
    optimum: Vector
    low: Vector
    high: Vector
    single: float
    mapped: tuple[str, ...] = ()
    unidentified: int = 0

    @classmethod
    def from_calibrators(
        cls,
        calibrators: Mapping[str, Calibrator],
        logits: Any,
        labels: ArrayLike,
        *,
        bins: int = 20,
        strategy: str = "mass",
        level: float = 0.95,
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
        level : float
            Level of the intervals, per bin.
        """
        bins, level = check_bins(bins, strategy), check_fraction("level", level)
        fits = with_temperature(calibrators)
        labelled = LabelledRows.of(open_labelled(logits, labels, sample_weight))
        index, rows = weighted_rows(labelled), as_rows(labelled)
        entropy = log_normalised_entropy(rows)
        order = index[np.argsort(entropy[index], kind="stable")]
        sample = order[np.linspace(0, len(order) - 1, min(len(order), _MAX_POINTS)).astype(np.intp)]
        groups = _entropy_groups(order, entropy[order], bins, strategy)
        known, (optimum, low, high) = best_temperatures(labelled, groups, level)
        shown = [groups[i] for i in known]
        w = labelled.weights
        return cls(
            entropy[sample],
            {name: temperatures(cal, labelled, sample) for name, cal in fits.items()},
            np.array([np.average(entropy[g], weights=None if w is None else w[g]) for g in shown]),
            np.array([len(group) for group in shown], np.intp),
            optimum,
            low,
            high,
            single_temperature(rows, w),
            tuple(name for name, calibrator in fits.items() if has_map(calibrator)),
            len(groups) - len(shown),
        )

    @classmethod
    def from_comparison(
        cls, comparison: Comparison, methods: Sequence[str] | None = None, *, bins: int = 20
    ) -> Self:
        """Compute from the test rows and the calibrators of some methods, by default of all with a T."""
        fits, rows = fitted_calibrators(comparison, methods), comparison.judged
        return cls.from_calibrators(fits, rows.logits, rows.labels, bins=bins, sample_weight=rows.weights)

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
        limits = self.limits(values)
        return Chart(
            "Temperature by entropy",
            self._in_words(limits),
            Axis("sure ← log entropy, log(H / log K) → unsure", self._entropy_limits()),
            Axis("temperature T", limits, log=True),
            [*marks, self.best(self.centre, "bin", [f"{n:,} rows" for n in self.count])],
        )

    def _entropy_limits(self) -> tuple[float, float]:
        """Return limits that contain all bins, and all rows except a few that are far from the others."""
        return robust_limits(self.log_entropy, rare=_RARE, reach=0.5, keep=self.centre)

    def _in_words(self, limits: tuple[float, float]) -> str:
        words = f"The best single temperature of these rows is {self.single:.3g}."
        if len(self.optimum) > 1:
            low, high = f"{self.optimum[0]:.3g}", f"{self.optimum[-1]:.3g}"
            words += f" By entropy it goes from {low} (confident rows) to {high} (uncertain rows)."
        words += (
            " Circles: the best temperature of each bin of rows, with its interval. A method whose dots "
            f"follow the circles has learned the dependence on the entropy.{self.after_a_map()}"
        )
        if self.unidentified:
            words += f" Bins without an identified best temperature are not drawn: {self.unidentified}."
        beyond = int(outside(self.log_entropy, self._entropy_limits()).sum())
        if beyond:
            words += f" Rows beyond the edges: {beyond} of {len(self.log_entropy)}."
        return words + self.beyond_the_edges(self.temperature, limits)


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


# ---- by true class


@dataclass(frozen=True, eq=False)
class ClassTemperatureDisplay(BestTemperatures):
    """T by true class: the best single temperature of its rows, and the mean T of each method.

    Attributes
    ----------
    classes, count : arrays of shape (C,)
        Classes with at least 10 rows that identify a best temperature, in the order of that temperature, and
        their number of rows. With more than `most` classes, only those that differ most from the best single
        temperature.
    optimum, low, high : arrays of shape (C,)
        Best single temperature of the rows of the class, and its interval.
    mean : dict from name to array of shape (C,)
        Mean T of those rows by each method.
    single : float
        Best single temperature of all rows.
    n_classes : int
        K; if it is larger than C, some classes are left out.
    names : sequence of str
        Names of all K classes; None where they have none.
    mapped : tuple of str
        The methods whose T acts after a map of probabilities.

    Examples
    --------
    >>> import temperance
    >>> from temperance.data import simulate
    >>> task = simulate(3000, 4, random_state=1)
    >>> ts = temperance.TemperatureScaling().fit(task.logits, task.labels)
    >>> display = ClassTemperatureDisplay.from_calibrators({"ts": ts}, task.logits, task.labels)
    >>> sorted(display.classes.tolist()), int(display.count.sum()), display.n_classes
    ([0, 1, 2, 3], 3000, 4)
    """

    classes: Indices
    count: Indices
    optimum: Vector
    low: Vector
    high: Vector
    mean: dict[str, Vector]
    single: float
    n_classes: int
    names: Sequence[str] | None = None
    mapped: tuple[str, ...] = ()

    def name(self, column: int) -> str:
        """Return the name of a class."""
        return str(column) if self.names is None else self.names[column]

    @classmethod
    def from_calibrators(
        cls,
        calibrators: Mapping[str, Calibrator],
        logits: Any,
        labels: ArrayLike,
        *,
        most: int = 30,
        level: float = 0.95,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Compute from fitted calibrators and labelled rows, preferably of a test set.

        Parameters
        ----------
        calibrators, logits, labels, level, sample_weight
            As for `TemperatureDisplay.from_calibrators`.
        most : int
            Largest number of classes to show.
        """
        most, level = check_integer("most", most, 1), check_fraction("level", level)
        fits, labelled = (
            with_temperature(calibrators),
            LabelledRows.of(open_labelled(logits, labels, sample_weight)),
        )
        index, rows = weighted_rows(labelled), as_rows(labelled)
        single = single_temperature(rows, labelled.weights)
        own = labelled.labels[index]
        ends = np.bincount(own, minlength=rows.n_classes).cumsum()[:-1]
        parts = np.split(index[np.argsort(own, kind="stable")], ends)
        groups = {k: part for k, part in enumerate(parts) if len(part) >= MIN_ROWS}
        known, best = best_temperatures(labelled, list(groups.values()), level)
        shown = np.argsort(-np.abs(np.log(best[0] / single)), kind="stable")[:most]
        shown = shown[np.argsort(best[0, shown], kind="stable")]
        optimum, low, high = best[:, shown]
        classes = np.array(list(groups), np.intp)[known[shown]]
        return cls(
            classes,
            np.array([len(groups[k]) for k in classes], np.intp),
            optimum,
            low,
            high,
            {
                name: np.array([_mean_temperature(cal, labelled, groups[k]) for k in classes], np.float64)
                for name, cal in fits.items()
            },
            single,
            rows.n_classes,
            next((c.class_names_ for c in calibrators.values() if hasattr(c, "class_names_")), None),
            tuple(name for name, calibrator in fits.items() if has_map(calibrator)),
        )

    @classmethod
    def from_comparison(
        cls, comparison: Comparison, methods: Sequence[str] | None = None, *, most: int = 30
    ) -> Self:
        """Compute from the test rows and the calibrators of some methods, by default of all with a T."""
        fits, rows = fitted_calibrators(comparison, methods), comparison.judged
        found = cls.from_calibrators(fits, rows.logits, rows.labels, most=most, sample_weight=rows.weights)
        return replace(found, names=comparison.class_names)

    def chart(self, *, flat: bool = True) -> Chart:
        """Return the best temperature of each class with its interval, and the methods' means.

        The classes are along y, or along x if not `flat`.
        """
        at, count = np.arange(len(self.classes), dtype=np.float64), len(self.classes)
        limits = self.limits(list(self.mean.values()))
        rows = [f"class {self.name(k)}, {n} rows" for k, n in zip(self.classes, self.count, strict=True)]
        marks = [*self.rules(limits, upright=flat), self.best(at, "class", rows, flat=flat)]
        varying = [name for name in self.mean if not self._constant(name)]
        asides = dict(zip(varying, np.linspace(-0.3, 0.3, len(varying)), strict=True))  # side by side
        marks += [self._means(name, at + asides.get(name, 0.0), flat) for name in self.mean]
        letters = _MAX_NAME if flat else max(3, MAX_LETTERS // max(count, 1))
        names = [shorten(self.name(k), letters) for k in self.classes]
        label = "true class" if count == self.n_classes else f"true class ({count} of {self.n_classes})"
        classes = Axis.of_names(label, names, downwards=flat)
        temperature = Axis("temperature T", limits, log=True)
        x, y = (temperature, classes) if flat else (classes, temperature)
        size = (WIDE, 1.2 + 0.3 * max(count, 3) if flat else 4.0)
        caption = self._in_words() + self.beyond_the_edges(self.mean, limits)
        return Chart("Temperature by true class", caption, x, y, marks, size)

    def _means(self, name: str, at: Vector, flat: bool) -> Mark:
        """Return one dot per class, or a line if the method has one temperature for all of them."""
        label, values = method_style(name).label, self.mean[name]
        if self._constant(name):
            return Rule(float(values[0]), upright=flat, method=name, label=f"{label}: T = {values[0]:.3g}")
        tips = [
            f"{label}, class {self.name(k)}: mean T {t:.3g}"
            for k, t in zip(self.classes, values, strict=True)
        ]
        x, y = (values, at) if flat else (at, values)
        return Dots(x, y, method=name, label=label, tips=tips)

    def _constant(self, name: str) -> bool:
        """Say whether a method has one temperature for all classes."""
        values = self.mean[name]
        return len(values) > 1 and bool(np.ptp(values) < 1e-9 * values[0])

    def _in_words(self) -> str:
        words, count = f"The best single temperature of these rows is {self.single:.3g}.", len(self.classes)
        if count > 1:
            first, last = self.name(self.classes[0]), self.name(self.classes[-1])
            words = (
                f"Class {last} needs the highest temperature, {self.optimum[-1]:.3g}, class {first} the "
                f"lowest, {self.optimum[0]:.3g}."
            )
        words += (
            " Circles: the best temperature of the rows of each class, with its interval; coloured dots and "
            f"lines: the mean temperature of a method.{self.after_a_map()}"
        )
        if count < self.n_classes:
            words += (
                f" Shown: {count} of {self.n_classes} classes. The rows of the others identify no best "
                "temperature, or one closer to the best single temperature."
            )
        return words


def _mean_temperature(calibrator: TemperatureCalibrator, rows: LabelledRows, group: Indices) -> float:
    weights = None if rows.weights is None else rows.weights[group]
    return float(np.average(temperatures(calibrator, rows, group), weights=weights))
