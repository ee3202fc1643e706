"""Rows under assessment: what the estimates of several metrics share, each computed once.

The numbers of a row are computed once, and resampling needs no probabilities. Kinds of estimates:

    means         a weighted mean of one number for each row, exactly or to first order: intervals from
                  variance and skewness, `intervals`
    norms         ece and smooth_ece are norms of mean residuals: `bootstrap`
    parts         what a fit of recalibrators takes from a loss, and what it leaves: `decomposition`
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from temperance.core.arrays import Indices, Vector
from temperance.core.ece_loss import assign_bins, equal_width_edges
from temperance.metrics.bins import Reliability, bin_rows, debiased_interval
from temperance.metrics.bootstrap import (
    Resamples,
    Residuals,
    bootstrap,
    expected_noise,
    group_sums,
    norm_interval,
)
from temperance.metrics.decomposition import Recalibrations, part_estimates
from temperance.metrics.intervals import Estimate, mean_interval
from temperance.metrics.predictions import Predictions
from temperance.metrics.smooth import smooth_parts


@dataclass(frozen=True, eq=False)
class Assessment:
    """Some rows, the level of their intervals, their bins, and estimates that were made together, by name."""

    rows: Predictions
    confidence: float
    bins: int
    diagram: Reliability
    estimates: dict[str, Estimate]

    def mean(self, values: Vector, low: float = 0.0, high: float = np.inf) -> Estimate:
        """Return the mean of one number for each row, with an interval within [low, high]."""
        return mean_interval(values, self.rows.weight, self.confidence, low, high)


def assess(
    rows: Predictions,
    bins: int,
    confidence: float,
    fold: Indices,
    resamples: Resamples,
    progress: Callable[[float], None] | None = None,
) -> Assessment:
    """Fit the recalibrators and resample the rows, once for all metrics."""
    recalibrations = Recalibrations(rows)
    estimates = part_estimates(recalibrations, fold, confidence)
    diagram, change = bin_rows(rows, bins), recalibrations.confidence() - rows.confidence
    in_bins, (smooth, on_grid) = _in_bins(rows, change, bins), smooth_parts(rows, change)
    noise = bootstrap(rows.weight, {"bins": in_bins, "grid": on_grid}, resamples, progress)
    estimates["ece"] = norm_interval(float(np.abs(in_bins.mean).sum()), in_bins, noise["bins"], confidence)
    estimates["smooth_ece"] = norm_interval(smooth, on_grid, noise["grid"], confidence)
    estimates["debiased_ece"] = debiased_interval(diagram, in_bins.fitted, noise["bins"], confidence)
    return Assessment(rows, confidence, bins, diagram, estimates)


def _in_bins(rows: Predictions, change: Vector, bins: int) -> Residuals:
    """Return the residuals of the top label in bins of equal width.

    `change` is what recalibration adds to the confidence of each row.
    """
    index, n_rows = assign_bins(rows.confidence, equal_width_edges(bins, rows.confidence.dtype)), len(change)
    mean, fitted, sure, count = (
        np.bincount(index, weights=rows.weight * values, minlength=bins).astype(np.float64)
        for values in (rows.residual, change, rows.confidence.astype(np.float64), np.ones(n_rows))
    )
    return Residuals(
        mean / rows.total,
        group_sums(rows.residual, index, np.arange(n_rows), (bins, n_rows)),
        fitted / rows.total,
        expected=expected_noise(count, sure, fitted, rows.weight),
    )
