"""Intervals of the two parts of a loss: calibration and refinement.

A temperature with class biases is fitted to all rows. With d_i the loss of row i before less that after, D
their mean, and s the standard error of D: the fit makes D too large, by Wilks' theorem like a chi-squared
variable with as many degrees of freedom as parameters, if the classifier is calibrated. If it is not, the
variable is noncentral, and the truth is its noncentrality:

    D / c  ~  chi-squared with nu degrees of freedom and noncentrality truth / c

For the negative log-likelihood close to the truth c = 1 / 2N, and nu is the number of parameters. Further
away the rows tell: the variance of the right side at truth + nu c = D is about 4 c D, which must be s^2. What
the fit adds, nu c, stays parameters / 2N. The Brier score has no theorem of its own, because the fit does not
minimise it. Cross-validation shows the proportion: how much lower each loss is on the rows of the fit than
out of fold. The interval holds the truths that an equal-tailed test does not reject. By chance D may be so
small that it rejects all of them; the upper end is at least that of D = nu c, the mean for a calibrated
classifier.

What the fit adds to the calibration part it takes from the refinement part. The interval of that one is the
interval of the mean loss after the fit, moved up by as much.

References
----------
.. [1] Wilks (1938). The large-sample distribution of the likelihood ratio for testing composite hypotheses.
   doi:10.1214/aoms/1177732360
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from temperance.core.arrays import Vector
from temperance.metrics.estimates import Estimate
from temperance.metrics.mean_intervals import mean_interval

_HALVINGS = 40
# Of what a fit adds to the Brier score to what it adds to the negative log-likelihood: 2 at most, by
# Pinsker's inequality.
_RATIOS = (0.05, 2.0)


@dataclass(frozen=True, eq=False)
class FittedLosses:
    """One loss of each row, before and after a recalibration that was fitted to these rows.

    `added` is what the fit adds to the difference of their means.
    """

    before: Vector
    after: Vector
    weight: Vector
    added: float

    @property
    def gain(self) -> float:
        """By how much the mean loss falls, too much by `added`."""
        return float(self.weight @ (self.before - self.after)) / float(self.weight.sum())

    def calibration(self, value: float, confidence: float) -> Estimate:
        """Return the interval of the calibration part, widened to contain its value.

        No part is larger than the whole: it ends at most where that of the mean loss does.
        """
        share = self.weight / self.weight.sum()
        if len(share) == 1:
            return Estimate(value, np.nan, np.nan)
        rows, gain = self.before - self.after, self.gain
        if not np.isfinite(gain):
            return Estimate(value, 0.0, np.inf)
        variance = float(np.sum((share * (rows - gain)) ** 2))
        unit = variance / (4 * (gain if gain > 0 else self.added))
        low, high = noncentral_interval(gain, self.added, unit, confidence)
        whole = mean_interval(self.before, self.weight, confidence)
        return Estimate(value, min(low, value), max(min(high, whole.high), value))

    def refinement(self, value: float, confidence: float) -> Estimate:
        """Return the interval of the refinement part, widened to contain its value."""
        found = mean_interval(self.after, self.weight, confidence)
        return Estimate(
            value,
            float(np.minimum(found.low + self.added, value)),
            float(np.maximum(found.high + self.added, value)),
        )


def fitted_losses(
    before: dict[str, Vector],
    after: dict[str, Vector],
    out_of_fold: dict[str, Vector],
    weight: Vector,
    parameters: float,
) -> dict[str, FittedLosses]:
    """Return the losses "nll" and "brier" with what a fit of so many parameters adds to each.

    `out_of_fold` has the losses of the same recalibrator, fitted without the row's fold.
    """
    share = weight / weight.sum()
    of_nll = FittedLosses(before["nll"], after["nll"], weight, parameters * float(share @ share) / 2)
    nll, brier = (float(share @ (out_of_fold[name] - after[name])) for name in ("nll", "brier"))
    low, high = _RATIOS
    ratio = min(max(brier / nll, low), high) if 0 < nll < np.inf else low
    of_brier = FittedLosses(before["brier"], after["brier"], weight, of_nll.added * ratio)
    return {"nll": of_nll, "brier": of_brier}


def noncentral_interval(
    observed: float, optimism: float, unit: float, confidence: float
) -> tuple[float, float]:
    """Return the equal-tailed interval of the truth if observed / unit is noncentral chi-squared."""
    from scipy.special import chndtr

    if unit <= 0:
        return max(observed, 0.0), max(observed, 0.0)
    freedom = optimism / unit

    def noncentrality(statistic: float, tail: float) -> float:
        """Return the one at which the statistic has this lower tail, which falls as it grows."""
        low, high = 0.0, 2 * statistic + 100.0
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if chndtr(statistic, freedom, middle) > tail else (low, middle)
        return low

    low = noncentrality(max(observed, 0.0) / unit, (1 + confidence) / 2)
    return unit * low, unit * noncentrality(max(observed, optimism) / unit, (1 - confidence) / 2)
