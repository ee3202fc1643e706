"""Every metric at once, with intervals.

    means   accuracy, nll, brier, overconfidence and the parts of the losses are weighted means of one number
            for each row; aurc is a mean of running means
    norms   ece, mce, classwise_ece and smooth_ece are norms of mean residuals

What belongs to a row is computed once; each block of resamples is then a few matrix products.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from temperance.core.arrays import Vector
from temperance.labels import Names
from temperance.metrics.binned import debiased
from temperance.metrics.bins import assign, bin_edges, check_bins
from temperance.metrics.bootstrap import Norm, bootstrap, mean_interval, norm_interval
from temperance.metrics.class_bins import ClassBins
from temperance.metrics.decomposition import recalibrated_losses, refined
from temperance.metrics.diagram import bin_rows
from temperance.metrics.estimates import Estimate, Evaluation
from temperance.metrics.predictions import Predictions, check_fraction, check_integer, check_rows
from temperance.metrics.selective import RiskCurve
from temperance.metrics.smooth import fixed_point, grid_sums
from temperance.metrics.sums import group_sums
from temperance.validation import random_generator

_RANGES = {"accuracy": (0, 1), "aurc": (0, 1), "overconfidence": (-1, 1)}  # others: from 0 up
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
    draws: int = 1000,
    sample_weight: ArrayLike | None = None,
    classes: Names | None = None,
    progress: Callable[[float], None] | None = None,
) -> Evaluation:
    """Compute all metrics, each with a bootstrap interval over rows.

    Means have percentile intervals. Calibration errors are biased upward, and their percentiles are even
    more so; their intervals allow for a bias anywhere between 0 and that of a perfectly calibrated
    classifier. They contain the estimate and cover the error of the same bins in the population, also when
    that is 0, at the price of some width. `debiased_ece` estimates the same number as `ece`, and shares its
    interval. The worst bin is at least as bad as the mean, so the interval of `mce` starts no lower than that
    of `ece`.

    The intervals of the calibration and refinement parts hold the recalibrators fixed: they show the noise
    of the rows judged, not of the fits, and are about what these recalibrators can mend. A bin with one row
    has no noise that a bootstrap could see, so that the interval of `mce` is too narrow when such a bin is
    the worst: use fewer bins then.

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
        Number of resamples.
    sample_weight : array of shape (N,), optional
        Values are as if a row of weight k were k rows. Intervals resample rows as given, with their
        weights: k copies of a row are not k observations.
    classes : sequence of str or int, optional
        The names of the columns, as for `accuracy`.
    progress : function of the share done, optional
        Called after each block of resamples.

    Returns
    -------
    Evaluation
        A mapping from the name of each metric to its `Estimate`; `print` shows a table.

    References
    ----------
    .. [1] Efron (1979). Bootstrap methods: Another look at the jackknife. doi:10.1214/aos/1176344552

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=500)
    >>> result = evaluate(p, rng.uniform(size=500) < p, draws=200)
    >>> result["ece"].low, round(result["accuracy"].value, 2)
    (0.0, 0.76)
    """
    bins, draws = check_bins(bins), check_integer("draws", draws, 1)
    check_fraction("confidence", confidence)
    rows = check_rows(probs, labels, sample_weight, classes)
    estimates = _estimates(
        rows, bins, confidence, draws, random_generator("random_state", random_state), progress
    )
    n_rows, n_classes = rows.probs.shape
    return Evaluation({name: estimates[name] for name in METRICS}, n_rows, n_classes, bins, confidence, draws)


def _estimates(
    rows: Predictions,
    bins: int,
    confidence: float,
    draws: int,
    generator: np.random.Generator,
    progress: Callable[[float], None] | None,
) -> dict[str, Estimate]:
    """Return the estimate of each metric, by name."""
    per_row, norms, area = _per_row(rows, generator), _norms(rows, bins), RiskCurve(rows).area
    drawn = bootstrap(
        rows.weight, {"means": _means(per_row), "aurc": area}, norms, draws, generator, progress
    )
    estimates = {
        name: mean_interval(rows.mean(values), sample, confidence, *_RANGES.get(name, (0, np.inf)))
        for (name, values), sample in zip(per_row.items(), drawn["means"], strict=True)
    }
    whole = float(area(rows.weight[:, None])[0])
    estimates["aurc"] = mean_interval(whole, drawn["aurc"], confidence, 0, 1)
    for name, norm in norms.items():
        estimates[name] = norm_interval(norm.value(rows.weight), drawn[name], confidence)
    return estimates | _tied_to_ece(rows, bins, estimates)


def _per_row(rows: Predictions, generator: np.random.Generator) -> dict[str, Vector]:
    """Return what is averaged, by name."""
    values = {"accuracy": rows.correct, "overconfidence": -rows.residual}
    losses = recalibrated_losses(rows, 5, generator)
    for name in ("nll", "brier"):
        values[name] = losses[name][0]
        values[f"{name}_refinement"] = refined(rows, losses[name])
        # Where no recalibrator beats the identity the mean is below 0 and counts as 0; its draws still tell
        # how much calibration error may have been missed, which a difference of 0 would not.
        values[f"{name}_calibration"] = values[name] - refined(rows, losses[name][1:])
    return values


def _means(per_row: dict[str, Vector]) -> Callable[[Vector], Vector]:
    """Return the function from (N, B) weights to the (metrics, B) means."""
    stacked = np.stack(list(per_row.values()))
    infinite = np.isinf(stacked)
    finite = np.where(infinite, 0.0, stacked)

    def means(weights: Vector) -> Vector:
        result: Vector = (finite @ weights) / weights.sum(axis=0)
        if infinite.any():  # 0 * inf is nan: a resample without the infinite rows has a finite mean
            result[(infinite.astype(np.float64) @ weights) > 0] = np.inf
        return result

    return means


def _norms(rows: Predictions, bins: int) -> dict[str, Norm]:
    """Return the calibration errors as norms."""
    index = assign(rows.confidence, bin_edges(rows.confidence, rows.weight, bins, "width"))
    n_rows, n_classes = rows.probs.shape
    row, shape = np.arange(n_rows), (bins, n_rows)
    residuals, counts = (group_sums(v, index, row, shape) for v in (rows.residual, np.ones(n_rows)))
    classes, grid = ClassBins(rows, bins), grid_sums(rows)

    def gaps(weights: Vector) -> Vector:
        count = counts(weights)
        return np.divide(residuals(weights), count, out=np.zeros_like(count), where=count > 0)

    return {
        "ece": Norm(lambda w: residuals(w) / w.sum(axis=0)),
        "mce": Norm(gaps, lambda g: np.abs(g).max(axis=0)),
        "classwise_ece": Norm(lambda w: classes.residuals(w) / (n_classes * w.sum(axis=0))),
        "smooth_ece": Norm(lambda w: grid(w) / w.sum(axis=0), fixed_point),
    }


def _tied_to_ece(rows: Predictions, bins: int, estimates: dict[str, Estimate]) -> dict[str, Estimate]:
    """Return the estimates whose intervals follow from that of the ECE, as `evaluate` explains."""
    plain, worst = estimates["ece"], estimates["mce"]
    value = debiased(bin_rows(rows, bins))
    return {
        "debiased_ece": replace(plain, value=value, low=min(plain.low, value)),
        "mce": replace(worst, low=max(worst.low, plain.low)),
    }
