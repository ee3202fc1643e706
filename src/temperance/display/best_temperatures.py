"""The best single temperature of groups of rows, and what displays of them share: a logarithmic axis.

A method's temperatures should approach the best ones. The interval is normal on log T, with the Fisher
information of the group's rows. If all rows are right, or the labels are no better than chance, the
likelihood has no maximum. A weak prior then determines the temperature: it is not identified, and the
interval is the whole range of temperatures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from temperance.calibrators import UNCALIBRATED, TemperatureCalibrator, method_style
from temperance.calibrators.single_temperature import fit_single_temperature
from temperance.comparison import LabelledRows
from temperance.core.arrays import Matrix, Vector
from temperance.core.blocks import BFloat16
from temperance.core.logit_rows import LogitRows
from temperance.core.objective import InMemoryFitData
from temperance.core.predictors import TEMPERATURE_MAX, TEMPERATURE_MIN
from temperance.display.base import Display
from temperance.display.chart import Intervals, Mark, Rule
from temperance.display.limits import outside, robust_limits
from temperance.inputs.validation import check_labelled_rows

_COPIED_ROWS = 4096  # at a time
_RARE = 0.01  # of the temperatures of a method may be outside the axes
_NEAR = 2.3  # of log T, a factor of 10: a method may differ so much from the best temperatures
_FEW_VALUES = 0.05  # the share of a method's values beyond the edges that needs no mention
MIN_ROWS = 10  # of a group: fewer say almost nothing about a temperature
IDENTIFIED_RATIO = 10.0
"""Ratio of the ends of an interval above which a best temperature is not identified.

Classifiers need temperatures between about 0.5 and 5; an interval of a decade excludes none of them. A
smaller ratio would hide groups of 10 to 30 rows, whose intervals still separate over- from underconfidence.
"""


def as_rows(rows: LabelledRows) -> LogitRows:
    """Return the rows, checked in one pass over all of them."""
    found = LogitRows(rows.logits, rows.labels)
    check_labelled_rows(found)
    return found


def weighted_rows(rows: LabelledRows) -> NDArray[np.intp]:
    """Return the indices of the rows whose weight is not 0."""
    return np.arange(len(rows)) if rows.weights is None else np.flatnonzero(rows.weights)


def best_temperatures(rows: LabelledRows, groups: Sequence[NDArray[np.intp]], level: float) -> Matrix:
    """Return the best temperature of each group, and the ends of its interval; nan where unknown."""
    parts = (_part(rows, group) for group in groups)
    fits = [_log_temperature(LogitRows(part.logits, part.labels), part.weights) for part in parts]
    centre, error = np.array(fits).reshape(-1, 2).T
    half = NormalDist().inv_cdf((1 + level) / 2) * error
    bounds = np.log([TEMPERATURE_MIN, TEMPERATURE_MAX])
    return np.exp(np.stack([centre, *np.clip([centre - half, centre + half], *bounds)]))


def single_temperature(rows: LogitRows, weights: Vector | None) -> float:
    """Return the best temperature of all rows."""
    return fit_single_temperature(InMemoryFitData(rows, weights), exact=True).temperature


def _part(rows: LabelledRows, group: NDArray[np.intp]) -> LabelledRows:
    """Return a copy of the rows of a group; if they are most rows, all with weight 0 for the others."""
    if len(group) <= len(rows) // 2:
        return rows.take(np.sort(group))  # sorted: a memory map is read in order
    weights = np.zeros(len(rows))
    weights[group] = 1.0 if rows.weights is None else rows.weights[group]
    return LabelledRows(rows.logits, rows.labels, weights)


def _log_temperature(rows: LogitRows, weights: Vector | None) -> tuple[float, float]:
    """Return the best log T and its standard error: infinite if not identified, nan if unknown."""
    anchor = fit_single_temperature(InMemoryFitData(rows, weights), exact=True)
    covariance = anchor.solution.covariance
    if anchor.degeneracy is not None:
        return float(np.log(anchor.temperature)), np.inf
    variance = 0.0 if covariance is None else float(covariance[0, 0])
    # At a bound the solver keeps T fixed and returns a variance of 0, which says nothing.
    return float(np.log(anchor.temperature)), float(np.sqrt(variance or np.nan))


def temperatures(calibrator: TemperatureCalibrator, rows: LabelledRows, index: NDArray[np.intp]) -> Vector:
    """Return T of some of the rows, copying few at a time."""
    found = []
    for part in np.array_split(index, -(-len(index) // _COPIED_ROWS)):
        logits = rows.logits[part]
        wide = logits.widened() if isinstance(logits, BFloat16) else logits
        found.append(np.asarray(calibrator.temperature(wide)))
    return np.concatenate(found)


class BestTemperatures(Display):
    """The best temperatures of groups of rows; `single` is that of all rows."""

    optimum: Vector
    low: Vector
    high: Vector
    single: float
    mapped: tuple[str, ...]

    @property
    def identified(self) -> NDArray[np.bool_]:
        """Which of them are identified; the others are left out of figures."""
        identified: NDArray[np.bool_] = self.high < IDENTIFIED_RATIO * self.low
        return identified

    def interval(self, group: int) -> str:
        """Return the best temperature of a group in words."""
        return f"{self.optimum[group]:.3g} ({self.ends(group)})"

    def ends(self, group: int) -> str:
        """Return the interval of a group in words."""
        if self.identified[group]:
            return f"{self.low[group]:.3g} to {self.high[group]:.3g}"
        return "not identified"

    def left_out(self, group: tuple[str, str]) -> str:
        """Return a sentence about the groups that are not drawn, if there are any."""
        missing, groups = int((~self.identified).sum()), len(self.optimum)
        name = group[groups != 1]
        return f" Not identified, and not drawn: {missing} of {groups} {name}." if missing else ""

    def beyond_the_edges(self, values: Mapping[str, Vector], limits: tuple[float, float]) -> str:
        """Return a sentence about the methods of which more than a few temperatures are not drawn."""
        labels = [
            method_style(name).label
            for name, temperatures in values.items()
            if len(temperatures) and outside(temperatures, limits).mean() > _FEW_VALUES
        ]
        return f" Partly beyond the edges: {', '.join(labels)}." if labels else ""

    def after_a_map(self) -> str:
        """Return a sentence about the methods whose T acts after a map of probabilities, if there are any."""
        labels = ", ".join(method_style(name).label for name in self.mapped)
        words = f" T acts after a map of probabilities, so dots need not follow the circles: {labels}."
        return words if labels else ""

    def best(
        self, at: Vector, group: tuple[str, str], tips: Sequence[str], *, flat: bool = False
    ) -> Intervals:
        """Return those that are identified, at some places of x; of y, if their intervals are `flat`."""
        known, label = self.identified, f"best T of a {group[0]}"
        if not known.all():
            label += f"\n({(~known).sum()} of {len(known)} {group[1]} not identified)"
        shown = [tip for tip, drawn in zip(tips, known, strict=True) if drawn]
        at, value, low, high = (column[known] for column in (at, self.optimum, self.low, self.high))
        return Intervals(at, value, low, high, flat, label=label, tips=shown)

    def limits(self, values: Sequence[Vector]) -> tuple[float, float]:
        """Return limits that contain the best temperatures, most whiskers, and most rows of most methods."""
        known = self.identified
        best = np.log([[self.single, *column[known]] for column in (self.optimum, self.low, self.high)])
        ends = [np.log(np.quantile(one, [0.5, _RARE / 2, 1 - _RARE / 2])) for one in values if len(one)]
        low, high = robust_limits(*np.column_stack([best, *ends]), near=_NEAR, keep=best[0])
        return float(np.exp(low)), float(np.exp(high))

    def rules(self, limits: tuple[float, float], *, upright: bool = False) -> list[Mark]:
        """Return the best single temperature, and T = 1 if it is within the limits."""
        single = Rule(self.single, upright=upright, label=f"best single T = {self.single:.3g}")
        if not limits[0] < 1 < limits[1]:
            return [single]
        return [Rule(1.0, upright=upright, label="T = 1: uncalibrated", method=UNCALIBRATED), single]
