"""The temperature by true class: the best one, and that of each method.

Rows are grouped by their label, which no method knows. A method can approach the best temperature of a class
only as far as the logits predict the class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from temperance.calibrators import Calibrator, TemperatureCalibrator, method_style
from temperance.comparison import Comparison, LabelledRows
from temperance.core.arrays import Indices, Vector
from temperance.display import optima
from temperance.display.best_temperatures import BestTemperatures
from temperance.display.chart import WIDE, Axis, Chart, Dots, Mark, Rule, Text
from temperance.display.methods import temperature_calibrators, with_temperature
from temperance.metrics.predictions import check_fraction, check_integer

AXIS_SIGNS = 72  # letters that fit below the axis; tooltips and tables have the full names
_LONGEST_NAME = 20  # beside it
_CLASS_HEIGHT = 0.3  # inches


@dataclass(frozen=True, eq=False)
class ClassTemperatureDisplay(BestTemperatures):
    """T by true class: the best single temperature of its rows, and the mean T of each method.

    Attributes
    ----------
    classes, count : arrays of shape (C,)
        Classes with at least 10 rows, in the order of their best temperature, and their number of rows. Of
        more than `most` classes, those that differ most from the best single temperature.
    optimum, low, high : arrays of shape (C,)
        Best single temperature of the rows of the class, and its interval: from 1e-6 to 1e6 if it is not
        identified, as when all rows are right; nan if the solver failed.
    mean : dict from name to array of shape (C,)
        Mean T of those rows by each method.
    single : float
        Best single temperature of all rows.
    n_classes : int
        K; if it is larger than C, some classes are left out.
    names : sequence of str
        Names of all K classes; None where they have none.

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
        calibrators : mapping from name to Calibrator
            Those without a temperature T(z) (ETS) are left out.
        logits, labels, sample_weight
            As for `Calibrator.fit`.
        most : int
            Classes to show.
        level : float
            Level of the intervals, for each class separately.
        """
        rows = LabelledRows.open(logits, labels, sample_weight)
        names = next((c.class_names_ for c in calibrators.values() if hasattr(c, "class_names_")), None)
        return cls._of(with_temperature(calibrators), rows, most, level, names)

    @classmethod
    def from_comparison(
        cls,
        comparison: Comparison,
        methods: Sequence[str] | None = None,
        *,
        most: int = 30,
        level: float = 0.95,
    ) -> Self:
        """Compute from the test rows and the calibrators of some methods, by default of all with a T."""
        calibrators = temperature_calibrators(comparison, methods)
        return cls._of(calibrators, comparison.judged, most, level, comparison.class_names)

    @classmethod
    def _of(
        cls,
        calibrators: dict[str, TemperatureCalibrator],
        labelled: LabelledRows,
        most: int,
        level: float,
        names: Sequence[str] | None,
    ) -> Self:
        most, level = check_integer("most", most, 1), check_fraction("level", level)
        index, rows = optima.weighted_rows(labelled), optima.as_rows(labelled)
        single = optima.single_temperature(rows, labelled.weights)
        groups = _by_class(labelled.labels, index, rows.n_classes)
        best = optima.best_temperatures(labelled, list(groups.values()), level)
        shown = np.argsort(-np.abs(np.log(best[0] / single)), kind="stable")[:most]
        shown = shown[np.argsort(best[0, shown], kind="stable")]
        classes = np.array(list(groups), np.intp)[shown]
        return cls(
            classes,
            np.array([len(groups[k]) for k in classes], np.intp),
            best[0, shown],
            best[1, shown],
            best[2, shown],
            _means(calibrators, labelled, [groups[k] for k in classes]),
            single,
            rows.n_classes,
            names,
        )

    def chart(self, *, flat: bool = True) -> Chart:
        """Return the best temperature of each class with its interval, and the methods' means.

        The classes are along y, or along x if not `flat`.
        """
        at = np.arange(len(self.classes), dtype=np.float64)
        asides = np.linspace(-0.3, 0.3, len(self.mean)) if len(self.mean) > 1 else [0.0]
        columns = zip(self.classes, self.count, strict=True)
        tips = [
            f"class {self.name(k)}, {n} rows: best T {self.interval(i)}" for i, (k, n) in enumerate(columns)
        ]
        limits = self.limits(list(self.mean.values()))
        marks = [*self.rules(limits, upright=flat), self.best(at, ("class", "classes"), tips, flat=flat)]
        marks += [self._means(name, at + aside, flat) for name, aside in zip(self.mean, asides, strict=False)]
        temperature, classes = Axis("temperature T", limits, log=True), self._class_axis(flat)
        if not len(at):
            place = (self.single, 0.5) if flat else (0.4, self.single)
            marks.append(Text(*place, f"no class has {optima.LEAST_ROWS} rows"))
        x, y = (temperature, classes) if flat else (classes, temperature)
        size = (WIDE, 1.2 + _CLASS_HEIGHT * max(len(at), 3)) if flat else (WIDE, 4.0)
        return Chart("Temperature by true class", self._in_words(), x, y, marks, size)

    def _class_axis(self, flat: bool) -> Axis:
        count = len(self.classes)
        label = "true class" if count == self.n_classes else f"true class ({count} of {self.n_classes})"
        if not count:
            return Axis(label, (0.0, 1.0), ticks=())
        most = _LONGEST_NAME if flat else max(3, AXIS_SIGNS // count)
        return Axis.of_names(label, [_short(self.name(k), most) for k in self.classes], downwards=flat)

    def _means(self, name: str, at: Vector, flat: bool) -> Mark:
        """Return a dot for each class, or a line if the method has one temperature for all of them."""
        label, values = method_style(name).label, self.mean[name]
        if len(values) and np.ptp(values) < 1e-9 * values[0]:
            return Rule(float(values[0]), upright=flat, method=name, label=f"{label}: T = {values[0]:.3g}")
        tips = [
            f"{label}, class {self.name(k)}: mean T {t:.3g}"
            for k, t in zip(self.classes, values, strict=True)
        ]
        x, y = (values, at) if flat else (at, values)
        return Dots(x, y, method=name, label=label, tips=tips)

    def _in_words(self) -> str:
        known = np.flatnonzero(self.identified)
        words = f"The best single temperature is {self.single:.3g}."
        if len(known) > 1:
            (k, low), (most, high) = ((self.classes[i], self.optimum[i]) for i in (known[0], known[-1]))
            words = (
                f"Class {self.name(most)} needs the highest temperature, {high:.3g}, "
                f"class {self.name(k)} the lowest, {low:.3g}."
            )
        words += (
            " Circles: the best temperature of the rows of each class, with its interval; coloured dots: the "
            f"mean temperature of a method.{self.left_out('classes')}"
        )
        if len(self.classes) < self.n_classes:
            words += (
                f" {len(self.classes)} of {self.n_classes} classes are shown: of those with at least "
                f"{optima.LEAST_ROWS} rows, the ones that differ most from the rest."
            )
        return words + self.beyond_the_edges(self.mean, self.limits(list(self.mean.values())))


def _short(name: str, most: int) -> str:
    """Shorten a name in its middle: long names often differ at their ends."""
    if len(name) <= most:
        return name
    kept = (most - 1) // 3
    return f"{name[: most - 1 - kept]}\u2026{name[len(name) - kept :]}"


def _by_class(labels: Indices, index: Indices, n_classes: int) -> dict[int, Indices]:
    """Return the rows of each class that has enough."""
    order = index[np.argsort(labels[index], kind="stable")]
    ends = np.bincount(labels[index], minlength=n_classes).cumsum()
    groups = np.split(order, ends[:-1])
    return {k: group for k, group in enumerate(groups) if len(group) >= optima.LEAST_ROWS}


def _means(
    calibrators: dict[str, TemperatureCalibrator], labelled: LabelledRows, groups: list[Indices]
) -> dict[str, Vector]:
    """Return the mean T of each group by each method."""
    means = {name: np.empty(len(groups)) for name in calibrators}
    for at, group in enumerate(groups):
        weights = None if labelled.weights is None else labelled.weights[group]
        for name, calibrator in calibrators.items():
            means[name][at] = np.average(optima.temperatures(calibrator, labelled, group), weights=weights)
    return means
