"""The temperature by true class: the best one, and that of each method.

Rows are grouped by their label, which no method knows. A method can approach the best temperature of a class
only as far as the logits predict the class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from temperance.calibrators import Calibrator, TemperatureCalibrator, method_style
from temperance.comparison import Comparison
from temperance.comparison.rows import LabelledRows
from temperance.core.arrays import Indices, Vector
from temperance.display.base import fitted_calibrators, with_temperature
from temperance.display.chart import WIDE, Axis, Chart, Dots, Mark, Rule, shorten
from temperance.display.map import has_map
from temperance.display.temperature import (
    MIN_ROWS,
    BestTemperatures,
    as_rows,
    best_temperatures,
    single_temperature,
    temperatures,
    weighted_rows,
)
from temperance.metrics.predictions import check_fraction, check_integer

MAX_LETTERS = 72  # letters that fit below the axis; tooltips and tables have the full names
_MAX_NAME = 20  # beside it


@dataclass(frozen=True, eq=False)
class ClassTemperatureDisplay(BestTemperatures):
    """T by true class: the best single temperature of its rows, and the mean T of each method.

    Attributes
    ----------
    classes, count : arrays of shape (C,)
        Classes with at least 10 rows that identify a best temperature, in the order of that temperature, and
        their number of rows. Of more than `most` classes, those that differ most from the best single
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
        """Return what a class is called."""
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
            Classes to show.
        """
        most, level = check_integer("most", most, 1), check_fraction("level", level)
        fits, labelled = with_temperature(calibrators), LabelledRows.open(logits, labels, sample_weight)
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
        """Return a dot for each class, or a line if the method has one temperature for all of them."""
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
                "temperature, or one closer to that of all rows."
            )
        return words


def _mean_temperature(calibrator: TemperatureCalibrator, rows: LabelledRows, group: Indices) -> float:
    weights = None if rows.weights is None else rows.weights[group]
    return float(np.average(temperatures(calibrator, rows, group), weights=weights))
