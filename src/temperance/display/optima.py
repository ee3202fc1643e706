"""The best single temperature of groups of rows, which a method's temperatures should approach.

The interval is normal on log T, with the Fisher information of the group's rows. If all rows are right, or
the labels are no better than chance, the likelihood has no maximum. A weak prior then determines the
temperature: it is not identified, and the interval is the whole range of temperatures.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.calibrators import TemperatureCalibrator
from temperance.calibrators.single_temperature import fit_single_temperature
from temperance.comparison import LabelledRows
from temperance.core.arrays import Matrix, Vector
from temperance.core.blocks import BFloat16
from temperance.core.fit_data import InMemoryFitData
from temperance.core.links import TEMPERATURE_MAX, TEMPERATURE_MIN
from temperance.core.logit_rows import LogitRows
from temperance.inputs.validation import InputError, check_labelled_rows

_COPIED_ROWS = 4096  # at a time
LEAST_ROWS = 10  # of a group: fewer say almost nothing about a temperature
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
    if len(rows) == 0:
        raise InputError(
            "a figure of temperatures needs labelled rows; found none. Pass those of a test set."
        )
    if rows.weights is None:
        return np.arange(len(rows))
    return np.flatnonzero(rows.weights)


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
    parts = np.array_split(index, -(-len(index) // _COPIED_ROWS))
    return np.concatenate([np.asarray(calibrator.temperature(_wide(rows.logits[part]))) for part in parts])


def _wide(logits: NDArray[Any] | BFloat16) -> NDArray[Any]:
    return logits.widened() if isinstance(logits, BFloat16) else logits
