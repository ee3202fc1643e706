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
from functools import cached_property

import numpy as np

from temperance.core.arrays import Indices, Vector
from temperance.metrics.bins import Reliability, assign_bins, bin_rows, debiased_interval, equal_width_edges
from temperance.metrics.bootstrap import (
    Resamples,
    Residuals,
    Single,
    bootstrap,
    expected_noise,
    group_sums,
    norm_interval,
)
from temperance.metrics.decomposition import Recalibrations, part_estimates
from temperance.metrics.intervals import Estimate, SamplingError, mean_interval, proportion_interval
from temperance.metrics.predictions import Predictions, RiskCurve
from temperance.metrics.smooth import smooth_parts


@dataclass(frozen=True, eq=False)
class Assessment:
    """Some rows with the settings of their evaluation: `confidence` is the level of the intervals."""

    rows: Predictions
    bins: int
    confidence: float
    fold: Indices
    resamples: Resamples
    progress: Callable[[float], None] | None = None

    def proportion(self, values: Vector) -> Estimate:
        """Return the mean of zeros and ones."""
        return proportion_interval(values, self.rows.weight, self.confidence)

    def mean(self, values: Vector, low: float = 0.0, high: float = np.inf) -> Estimate:
        """Return the mean of one number for each row, with an interval within [low, high]."""
        return mean_interval(values, self.rows.weight, self.confidence, low, high)

    def risk_area(self) -> Estimate:
        """Return the area under the risk-coverage curve, to first order the mean of what each row adds."""
        curve, share = RiskCurve(self.rows), self.rows.weight / self.rows.total
        error = SamplingError.of(share * curve.influence, share)
        return error.interval(curve.area, self.confidence, 0, 1)

    @cached_property
    def parts(self) -> dict[str, Estimate]:
        """The calibration and the refinement part of each loss."""
        return part_estimates(self._recalibrations, self.fold, self.confidence)

    @cached_property
    def diagram(self) -> Reliability:
        """The bins of the top label."""
        return bin_rows(self.rows, self.bins)

    def binned_error(self) -> Estimate:
        """Return the norm of the mean residuals in bins."""
        value = float(np.abs(self._in_bins.mean).sum())
        return norm_interval(value, self._in_bins, self._noise["bins"], self.confidence)

    def debiased_error(self) -> Estimate:
        """Return that norm without the bias of its noise."""
        return debiased_interval(self.diagram, self._in_bins.fitted, self._noise["bins"], self.confidence)

    def smooth_error(self) -> Estimate:
        """Return the norm of the smoothed residuals."""
        value, residuals = self._smoothed
        return norm_interval(value, residuals, self._noise["smooth"], self.confidence)

    @cached_property
    def _recalibrations(self) -> Recalibrations:
        return Recalibrations(self.rows)

    @cached_property
    def _change(self) -> Vector:
        """What recalibration adds to the confidence of each row."""
        return self._recalibrations.confidence() - self.rows.confidence

    @cached_property
    def _in_bins(self) -> Residuals:
        """The residuals of the top label in bins of equal width, and the change by recalibration."""
        rows, bins, n_rows = self.rows, self.bins, len(self.rows.probs)
        index = assign_bins(rows.confidence, equal_width_edges(bins, rows.confidence.dtype))
        mean, fitted, sure, count = (
            np.bincount(index, weights=rows.weight * values, minlength=bins).astype(np.float64)
            for values in (rows.residual, self._change, rows.confidence.astype(np.float64), np.ones(n_rows))
        )
        return Residuals(
            mean / rows.total,
            group_sums(rows.residual, index, np.arange(n_rows), (bins, n_rows)),
            fitted / rows.total,
            expected=expected_noise(count, sure, fitted, rows.weight),
        )

    @cached_property
    def _smoothed(self) -> tuple[float, Residuals]:
        return smooth_parts(self.rows, self._change)

    @cached_property
    def _noise(self) -> dict[str, Single]:
        """The noise of the residuals in bins and of the smoothed ones, from one pass over the resamples."""
        residuals = {"bins": self._in_bins, "smooth": self._smoothed[1]}
        return bootstrap(self.rows.weight, residuals, self.resamples, self.progress)
