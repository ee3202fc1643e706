"""The temperature by true class: what would be best, and what each method gives.

Rows are grouped by their label, which no method knows: a method comes near the best temperature of a class as
far as the logits tell the class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from temperance.calibrators import Calibrator, TemperatureCalibrator
from temperance.calibrators.single_temperature import fit_single_temperature
from temperance.comparison import Comparison, LabelledRows
from temperance.core.arrays import Indices, Vector
from temperance.core.fit_data import InMemoryFitData
from temperance.display.axes import axes_or_new, method_style
from temperance.display.methods import temperature_calibrators, with_temperature
from temperance.display.optima import LEAST_ROWS, as_rows, best_temperatures, temperatures, weighted_rows
from temperance.display.temperature_axes import Whiskers, finish
from temperance.metrics.predictions import check_fraction, check_integer

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class ClassTemperatureDisplay:
    """T by true class: the best single temperature of its rows, and the mean T that each method gives them.

    Attributes
    ----------
    classes, count : arrays of shape (C,)
        Classes with at least 10 rows, in the order of their best temperature, and their number of rows. Of
        more than `most` classes, those that differ most from the best single temperature.
    optimum, low, high : arrays of shape (C,)
        Best single temperature of the rows of the class, and its interval: all from 1e-6 to 1e6
        where the rows cannot tell, as when all are right; nan where the solver failed.
    mean : dict from name to array of shape (C,)
        Mean T of those rows by each method.
    single : float
        Best single temperature of all rows.
    n_classes : int
        K: if it is more than C, some classes are left out.

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
        """Compute from fitted calibrators and labelled rows, best those of a test set.

        Parameters
        ----------
        calibrators : mapping from name to Calibrator
            Those without a temperature of a row (ETS) are left out.
        logits, labels, sample_weight
            As for `Calibrator.fit`.
        most : int
            Classes to show.
        level : float
            Of the intervals, each for its class alone.
        """
        rows = LabelledRows.open(logits, labels, sample_weight)
        return cls._of(with_temperature(calibrators), rows, most, level)

    @classmethod
    def from_comparison(
        cls,
        comparison: Comparison,
        methods: Sequence[str] | None = None,
        *,
        most: int = 30,
        level: float = 0.95,
    ) -> Self:
        """Compute from the judged rows and the calibrators of some methods, by default of all with a T."""
        return cls._of(temperature_calibrators(comparison, methods), comparison.judged, most, level)

    @classmethod
    def _of(
        cls, calibrators: dict[str, TemperatureCalibrator], labelled: LabelledRows, most: int, level: float
    ) -> Self:
        most, level = check_integer("most", most, 1), check_fraction("level", level)
        index, rows = weighted_rows(labelled), as_rows(labelled)
        single = fit_single_temperature(InMemoryFitData(rows, labelled.weights), exact=True).temperature
        groups = _by_class(labelled.labels, index, rows.n_classes)
        best = best_temperatures(labelled, list(groups.values()), level)
        shown = np.argsort(-np.abs(np.log(best.optimum / single)), kind="stable")[:most]
        shown = shown[np.argsort(best.optimum[shown], kind="stable")]
        classes = np.array(list(groups), np.intp)[shown]
        return cls(
            classes,
            np.array([len(groups[k]) for k in classes], np.intp),
            best.optimum[shown],
            best.low[shown],
            best.high[shown],
            _means(calibrators, labelled, [groups[k] for k in classes]),
            single,
            rows.n_classes,
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the best temperature of each class with its interval, and the methods' means beside it."""
        ax = axes_or_new(ax, max(6.4, 0.32 * len(self.classes)))
        at = np.arange(len(self.classes), dtype=np.float64)
        best = Whiskers(self.optimum, self.low, self.high)
        best.draw(ax, at, "best T of the class", fmt="_", markersize=14)
        aside = np.linspace(-0.3, 0.3, len(self.mean)) if len(self.mean) > 1 else [0.0]
        for shift, (name, values) in zip(aside, self.mean.items(), strict=False):
            ax.plot(at + shift, values, linestyle="", **method_style(name, size=4))
        ax.set_xticks(at, [str(k) for k in self.classes], rotation=90 if len(at) > 15 else 0)
        ax.set(xlabel=self._x_label(), title="Temperature by true class")
        finish(ax, self.single, best.limits(self.single, list(self.mean.values())))
        if not len(at):
            ax.text(0.5, 0.3, f"no class has {LEAST_ROWS} rows", transform=ax.transAxes, ha="center")
        return ax

    def _x_label(self) -> str:
        if len(self.classes) == self.n_classes:
            return "true class"
        return f"true class ({len(self.classes)} of {self.n_classes})"


def _by_class(labels: Indices, index: Indices, n_classes: int) -> dict[int, Indices]:
    """Return the rows of each class that has enough."""
    order = index[np.argsort(labels[index], kind="stable")]
    ends = np.bincount(labels[index], minlength=n_classes).cumsum()
    groups = np.split(order, ends[:-1])
    return {k: group for k, group in enumerate(groups) if len(group) >= LEAST_ROWS}


def _means(
    calibrators: dict[str, TemperatureCalibrator], labelled: LabelledRows, groups: list[Indices]
) -> dict[str, Vector]:
    """Return the mean T of each group by each method."""
    means = {name: np.empty(len(groups)) for name in calibrators}
    for at, group in enumerate(groups):
        weights = None if labelled.weights is None else labelled.weights[group]
        for name, calibrator in calibrators.items():
            means[name][at] = np.average(temperatures(calibrator, labelled, group), weights=weights)
    return means
