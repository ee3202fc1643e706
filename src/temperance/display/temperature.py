"""The temperature of a row against its entropy: the best one, and that of each method.

With h = log(H / log K), H the entropy of softmax(z), the rows are split into bins by h, of equal count or of
equal width. A temperature that depends on the entropy should follow the best single temperature of each bin.
If that is constant, TS is enough.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temperance.calibrators import Calibrator, method_style
from temperance.calibrators.hnlts import log_normalised_entropy
from temperance.comparison import Comparison
from temperance.comparison.rows import LabelledRows
from temperance.core.arrays import Vector
from temperance.display.base import focused, temperature_calibrators, with_temperature
from temperance.display.best_temperatures import (
    MIN_ROWS,
    BestTemperatures,
    as_rows,
    best_temperatures,
    single_temperature,
    temperatures,
    weighted_rows,
)
from temperance.display.chart import Axis, Chart, Dots, Line, Mark
from temperance.display.limits import outside, robust_limits
from temperance.display.map import has_map
from temperance.metrics.bins import check_bins
from temperance.metrics.predictions import check_fraction

_MAX_POINTS = 400
_LINE_POINTS = 12
_RARE = 0.01  # of the rows at either end may be outside the axes


@dataclass(frozen=True, eq=False)
class TemperatureDisplay(BestTemperatures):
    """T against log entropy: of some rows by each method, and the best of each bin of all rows.

    Attributes
    ----------
    log_entropy : array of shape (P,)
        log(H / log K), not below -20, of at most 400 rows, evenly spaced in its rank and ascending.
    temperature : dict from name to array of shape (P,)
        T of those rows by each method.
    centre, count : arrays of shape (B,)
        Mean log entropy and number of rows of each bin.
    optimum, low, high : arrays of shape (B,)
        Best single temperature of the bin's rows, and its interval: from 1e-6 to 1e6 if it is not
        identified, as when all rows are right; nan if the solver failed.
    single : float
        Best single temperature of all rows.
    mapped : tuple of str
        The methods whose T acts after a map of probabilities.

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
            Those without a temperature T(z) (ETS) are left out.
        logits, labels, sample_weight
            As for `Calibrator.fit`.
        bins : int
            Largest number of bins: each has at least 10 rows, and rows of equal entropy are not split.
        strategy : "mass" or "width"
            Bins with about the same number of rows, or of equal width in log entropy, as in the paper; then
            bins with fewer than 10 rows are left out.
        level : float
            Level of the intervals, for each bin separately.
        """
        bins, level = check_bins(bins, strategy), check_fraction("level", level)
        fits = with_temperature(calibrators)
        labelled = LabelledRows.open(logits, labels, sample_weight)
        index, rows = weighted_rows(labelled), as_rows(labelled)
        entropy = log_normalised_entropy(rows)
        order = index[np.argsort(entropy[index], kind="stable")]
        sample = order[np.linspace(0, len(order) - 1, min(len(order), _MAX_POINTS)).astype(np.intp)]
        cut = _equal_parts if strategy == "mass" else _equal_steps
        groups = cut(order, entropy, bins)
        optimum, low, high = best_temperatures(labelled, groups, level)
        w = labelled.weights
        return cls(
            entropy[sample],
            {name: temperatures(cal, labelled, sample) for name, cal in fits.items()},
            np.array([np.average(entropy[g], weights=None if w is None else w[g]) for g in groups]),
            np.array([len(group) for group in groups], np.intp),
            optimum,
            low,
            high,
            single_temperature(rows, w),
            tuple(name for name, calibrator in fits.items() if has_map(calibrator)),
        )

    @classmethod
    def from_comparison(
        cls,
        comparison: Comparison,
        methods: Sequence[str] | None = None,
        *,
        bins: int = 20,
        strategy: str = "mass",
        level: float = 0.95,
    ) -> Self:
        """Compute from the test rows and the calibrators of some methods, by default of all with a T."""
        fits, rows = temperature_calibrators(comparison, methods), comparison.judged
        return cls.from_calibrators(
            fits,
            rows.logits,
            rows.labels,
            bins=bins,
            strategy=strategy,
            level=level,
            sample_weight=rows.weights,
        )

    def chart(self, focus: Collection[str] | None = None) -> Chart:
        """Return the rows' temperatures as dots with a line through them, and the best of each bin on top.

        The methods in focus set the limits, by default all.
        """
        values, faint = list(focused(self.temperature, focus).values()), len(self.temperature) > 3
        marks = self.rules(self.limits(values))
        for name, dots in self.temperature.items():
            marks += _method_marks(name, self.log_entropy, dots, faint=faint)
        return self.chart_of(marks, values)

    def chart_of(self, marks: Sequence[Mark], values: Sequence[Vector]) -> Chart:
        """Return a chart with the best temperatures on top of some marks, whose temperatures are `values`."""
        tips = [f"{n} rows: best T {self.interval(i)}" for i, n in enumerate(self.count)]
        limits = self.limits(values)
        return Chart(
            "Temperature by entropy",
            self._in_words(limits),
            Axis("sure ← log entropy, log(H / log K) → unsure", self._entropy_limits()),
            Axis("temperature T", limits, log=True),
            [*marks, self.best(self.centre, ("bin", "bins"), tips)],
        )

    def _entropy_limits(self) -> tuple[float, float]:
        """Return limits that contain all bins, and all rows except a few that are far from the others."""
        return robust_limits(self.log_entropy, rare=_RARE, reach=0.5, keep=self.centre[self.identified])

    def _rows_outside(self) -> str:
        """Return a sentence about the rows outside the axis, if there are any."""
        beyond = self.log_entropy[outside(self.log_entropy, self._entropy_limits())]
        if not len(beyond):
            return ""
        rows = "row has" if len(beyond) == 1 else "rows have"
        ends = f"{beyond.min():.1f}" if np.ptp(beyond) < 0.05 else f"{beyond.min():.1f} to {beyond.max():.1f}"
        return (
            f" Not shown: of the {len(self.log_entropy)} rows drawn, {len(beyond)} {rows} a log entropy of "
            f"{ends}."
        )

    def _in_words(self, limits: tuple[float, float]) -> str:
        known = self.optimum[self.identified]
        words = f"The best single temperature of these rows is {self.single:.3g}."
        if len(known) > 1:
            low, high = f"{known[0]:.3g}", f"{known[-1]:.3g}"
            words += f" By entropy it goes from {low} (confident rows) to {high} (uncertain rows)."
        return (
            f"{words} Circles: the best temperature of each bin of rows, with its interval. A method whose "
            "dots follow the circles has learnt the dependence on the entropy."
            f"{self.after_a_map()}{self.left_out(('bin', 'bins'))}{self._rows_outside()}"
            f"{self.beyond_the_edges(self.temperature, limits)}"
        )


def _equal_parts(order: NDArray[np.intp], entropy: Vector, bins: int) -> list[NDArray[np.intp]]:
    """Split the ordered rows into parts of equal count, but keep rows of equal entropy together.

    A very confident classifier has many rows at the floor: they are one bin, not several at the same place.
    """
    ascending = entropy[order]
    parts = max(1, min(bins, len(order) // MIN_ROWS))
    cuts = np.arange(1, parts) * len(order) // parts
    moved = np.unique(np.searchsorted(ascending, ascending[cuts]))
    return np.split(order, moved[moved > 0])


def _equal_steps(order: NDArray[np.intp], entropy: Vector, bins: int) -> list[NDArray[np.intp]]:
    """Split the ordered rows at equal steps of the entropy, and leave out parts of few rows."""
    ascending = entropy[order]
    steps = np.linspace(ascending[0], ascending[-1], bins + 1)[1:-1]
    parts = np.split(order, np.searchsorted(ascending, steps, side="right"))
    return [part for part in parts if len(part) >= MIN_ROWS]


def _method_marks(name: str, x: Vector, values: Vector, *, faint: bool) -> list[Mark]:
    """Return a dot for each row, and a line through the means of neighbouring rows on the axis."""
    parts = np.array_split(np.arange(len(x)), min(len(x), _LINE_POINTS))
    places, heights = (np.array([array[part].mean() for part in parts]) for array in (x, np.log(values)))
    return [
        Dots(x, values, fine=True, method=name, faint=faint),
        Line(places, np.exp(heights), method=name, label=method_style(name).label),
    ]
