"""Every metric at once, with intervals.

    means         nll, brier and overconfidence are weighted means of one number for each row; so is, to
                  first order, aurc: intervals from variance and skewness, `mean_intervals`
    proportions   accuracy: Wilson's interval
    norms         ece and smooth_ece are norms of mean residuals: `bootstrap`
    parts         what a fit of recalibrators takes from a loss, and what it leaves: `calibration_part`

The numbers of a row are computed once, and resampling needs no probabilities: `resamples` has the factors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from temperance.core.arrays import Vector
from temperance.inputs.labels import Names
from temperance.inputs.validation import random_generator
from temperance.metrics.binned import debiased_interval
from temperance.metrics.bins import assign, bin_edges, check_bins
from temperance.metrics.bootstrap import Residuals, bootstrap, expected_noise, norm_interval
from temperance.metrics.calibration_part import fitted_losses
from temperance.metrics.calibration_tests import Event, cumulative_of, spiegelhalter_of
from temperance.metrics.class_bins import classwise_error
from temperance.metrics.cox import cox_of
from temperance.metrics.decomposition import Recalibrations, refined
from temperance.metrics.diagram import bin_rows
from temperance.metrics.estimates import CalibrationTest, Estimate, Evaluation
from temperance.metrics.mean_intervals import SamplingError, mean_interval, proportion_interval
from temperance.metrics.predictions import Predictions, check_fraction, check_integer, check_rows
from temperance.metrics.resamples import DRAWS, Resamples
from temperance.metrics.selective import RiskCurve
from temperance.metrics.smooth import smooth_parts
from temperance.metrics.sums import group_sums
from temperance.progress import reporting

_FOLDS = 5  # of the recalibrators
METRICS = (
    "accuracy",
    *("nll", "nll_calibration", "nll_refinement"),
    *("brier", "brier_calibration", "brier_refinement"),
    *("ece", "debiased_ece", "mce", "classwise_ece", "smooth_ece"),
    *("overconfidence", "aurc"),
)


def evaluate(
    probs: ArrayLike,
    labels: ArrayLike,
    *,
    bins: int = 15,
    confidence: float = 0.95,
    random_state: int | np.random.Generator | None = 0,
    draws: int = DRAWS,
    sample_weight: ArrayLike | None = None,
    classes: Names | None = None,
    progress: Callable[[float], None] | bool | None = True,
) -> Evaluation:
    """Compute all metrics, with intervals.

    Intervals of means take the skewness of the rows into account; that of the accuracy is Wilson's.
    Calibration errors are biased upwards. Their intervals invert a test that accounts for the noise of the
    rows, from resamples with random factors, and for which probabilities a fitted recalibrator would correct,
    see `metrics.bootstrap`. They cover the error of the same bins in the population, also if that is 0, and
    contain the estimate. `debiased_ece` estimates the same number as `ece`, with an interval from its own
    distribution.

    `mce` and `classwise_ece` have no interval: its ends are nan. The worst bin of `mce` is often the one with
    the fewest rows, whose noise resampling cannot show. Most bins of `classwise_ece` have few events, and
    intervals of the kind of `ece`, tried before, contained its true value in 87 to 99.7 % of simulations.

    The intervals of the calibration and refinement parts come from a likelihood ratio, which accounts for the
    fit of the recalibrators. They are about the best temperature with class biases, and may end well above
    the value if the rows are too few to show what that recalibrator could correct. A single row has no
    intervals except that of the accuracy. docs/coverage.md has the coverage of each interval, measured on
    simulated data.

    `tests` of the result has tests of calibration with p-values: `spiegelhalter`, `cox`, and
    `cumulative_differences` with both of its statistics, all for the top label.

    Parameters
    ----------
    probs : array of shape (N, K), or (N,) for the second of two classes
    labels : integer array of shape (N,)
    bins : int
        Bins of equal width for `ece`, `debiased_ece`, `mce` and `classwise_ece`.
    confidence : float
        Level of the intervals.
    random_state : int, numpy Generator or None
        The same integer gives the same numbers.
    draws : int
        Number of resamples behind the intervals of calibration errors.
    sample_weight : array of shape (N,), optional
        In values, a row of weight k counts as k rows. Intervals resample the rows with their weights: a row
        of weight k is one observation.
    classes : sequence of str or int, optional
        The names of the columns, as for `accuracy`.
    progress : bool, or function of the share done
        By default a line on standard error, if that is a terminal or a notebook and the call takes longer
        than two seconds; False turns it off. A function is called after each block of resamples.

    Returns
    -------
    Evaluation
        A mapping from the name of each metric to its `Estimate`; `print` shows a table.

    References
    ----------
    .. [1] Mammen (1993). Bootstrap and wild bootstrap for high dimensional linear models.
       doi:10.1214/aos/1176349025
    .. [2] Hall (1992). On the removal of skewness by transformation.
       doi:10.1111/j.2517-6161.1992.tb01876.x
    .. [3] Wilks (1938). The large-sample distribution of the likelihood ratio for testing composite
       hypotheses. doi:10.1214/aoms/1177732360

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=500)
    >>> result = evaluate(p, rng.uniform(size=500) < p, draws=200)
    >>> result["ece"].low, round(result["accuracy"].value, 2)
    (0.0, 0.76)
    """
    rows = check_rows(probs, labels, sample_weight, classes)
    scorer = Scorer(bins, confidence, draws, random_state)
    if callable(progress):
        return scorer.evaluate(rows, progress)
    with reporting("Evaluating", progress) as report:
        return scorer.evaluate(rows, lambda share: report("intervals", share))


@dataclass
class Scorer:
    """The settings of an evaluation; evaluations with the same seed and number of rows share resamples."""

    bins: int
    confidence: float
    draws: int
    random_state: int | np.random.Generator | None
    _resamples: Resamples | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.bins, self.draws = check_bins(self.bins), check_integer("draws", self.draws, 1)
        check_fraction("confidence", self.confidence)

    def evaluate(self, rows: Predictions, progress: Callable[[float], None] | None = None) -> Evaluation:
        """Return all metrics of the rows, and the tests."""
        generator = random_generator("random_state", self.random_state)
        recalibrations = Recalibrations(rows)
        estimates = _means(rows, self.confidence) | _parts(recalibrations, self.confidence, generator)
        n_rows, n_classes = rows.probs.shape
        resamples = Resamples(n_rows, self.draws, int(generator.integers(2**63)))
        if self._resamples != resamples:
            self._resamples = resamples
        change = recalibrations.confidence() - rows.confidence
        estimates |= self._norms(rows, change, self._resamples, progress)
        return Evaluation(
            {name: estimates[name] for name in METRICS},
            *(n_rows, n_classes, self.bins, self.confidence, self.draws),
            _tests(rows, self.confidence),
        )

    def _norms(
        self,
        rows: Predictions,
        change: Vector,
        resamples: Resamples,
        progress: Callable[[float], None] | None,
    ) -> dict[str, Estimate]:
        """Return the calibration errors, given what recalibration adds to the confidence of each row."""
        diagram, in_bins = bin_rows(rows, self.bins), _in_bins(rows, change, self.bins)
        smooth, on_grid = smooth_parts(rows, change)
        residuals = {"ece": in_bins, "smooth_ece": on_grid}
        noise = bootstrap(rows.weight, residuals, resamples, progress)
        values = {"ece": float(np.abs(in_bins.mean).sum()), "smooth_ece": smooth}
        found = {
            name: norm_interval(value, residuals[name], noise[name], self.confidence)
            for name, value in values.items()
        }
        found["debiased_ece"] = debiased_interval(diagram, in_bins.fitted, noise["ece"], self.confidence)
        found["classwise_ece"] = Estimate(classwise_error(rows, self.bins), np.nan, np.nan)
        found["mce"] = Estimate(float(np.abs(diagram.gap).max()), np.nan, np.nan)
        return found


def _means(rows: Predictions, confidence: float) -> dict[str, Estimate]:
    """Return what is a mean of one number for each row, or nearly so."""
    curve, share = RiskCurve(rows), rows.weight / rows.total
    of_area = SamplingError.of(share * curve.influence, share)
    return {
        "accuracy": proportion_interval(rows.correct, rows.weight, confidence),
        "nll": mean_interval(rows.nll, rows.weight, confidence),
        "brier": mean_interval(rows.brier, rows.weight, confidence),
        "overconfidence": mean_interval(-rows.residual, rows.weight, confidence, -1, 1),
        "aurc": of_area.interval(curve.area, confidence, 0, 1),
    }


def _parts(
    recalibrations: Recalibrations, confidence: float, generator: np.random.Generator
) -> dict[str, Estimate]:
    """Return the refinement and the calibration part of each loss."""
    rows = recalibrations.rows
    after, parameters = recalibrations.in_sample()
    losses = recalibrations.out_of_fold(_FOLDS, generator)
    found = {}
    before = {"nll": rows.nll, "brier": rows.brier}
    of_biases = {name: of_models[-1] for name, of_models in losses.items()}
    for name, fitted in fitted_losses(before, after, of_biases, rows.weight, parameters).items():
        total, refinement = rows.mean(before[name]), rows.mean(refined(rows, losses[name]))
        found[f"{name}_refinement"] = fitted.refinement(refinement, confidence)
        found[f"{name}_calibration"] = fitted.calibration(total - refinement, confidence)
    return found


def _in_bins(rows: Predictions, change: Vector, bins: int) -> Residuals:
    """Return the residuals of the top label in bins of equal width, and the change by recalibration."""
    index = assign(rows.confidence, bin_edges(rows.confidence, rows.weight, bins, "width"))
    n_rows = len(index)
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


def _tests(rows: Predictions, confidence: float) -> dict[str, CalibrationTest]:
    """Return each test of the top label, by name."""
    event = Event.of(rows)
    return {
        "spiegelhalter": spiegelhalter_of(event),
        "cox": cox_of(event, confidence),
        "kuiper": cumulative_of(event, "kuiper"),
        "kolmogorov_smirnov": cumulative_of(event, "ks"),
    }
