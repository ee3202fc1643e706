"""How wrong a calibrator may be and still count as unchanged.

Every fitted calibrator is slightly wrong: its method cannot express everything, which its own rows show, and
it was fitted to a finite sample. The allowed mean of a residual ranges from

    min(0, residual at the fit) - tolerance - MARGIN standard errors of the fit

to the same on the other side. The user sets the tolerance. For a class rarer than 10 % it shrinks with the
frequency of the class. Otherwise a class of 1 % could become three times as frequent unnoticed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from temperance.core.arrays import Indices, Vector
from temperance.errors import InputError
from temperance.formulas.fit_record import Baseline
from temperance.formulas.model import Model
from temperance.inputs.validation import check_number

TOLERANCE = 0.02
"""Default tolerance of the gap between confidence and accuracy, and of the frequency of a class."""

MARGIN = 2.0  # standard errors of the fit
RARE = 0.1  # frequency of a class below which its tolerance shrinks
MAX_GROUPS = 32
"""Largest number of groups of classes whose joint change is estimated; rarer classes form the last group."""


@dataclass(frozen=True, eq=False)
class Limits:
    """The allowed means of the residuals: the gap first, then the classes, (1 + K,) each."""

    tolerance: float
    low: Vector
    high: Vector
    at_fit: Vector
    """The means of the residuals at the fit."""
    fit_rows: float
    """The number of rows of the fit; the effective number, if their weights differ."""
    groups: Indices
    """The group of each class: one for each of the most frequent at the fit, one for all others."""


def baseline_of(model: Model) -> Baseline:
    """Return the predictions at the fit, with which later ones are compared."""
    if model.record.baseline is None or model.class_counts is None:
        raise InputError(
            f"check needs the predictions at the fit; found a {model.name} from a file that does not "
            "have them. Fit it again with this version."
        )
    return model.record.baseline


def allowed(model: Model, tolerance: float = TOLERANCE) -> Limits:
    """Return the limits of a calibrator, from the record of its fit."""
    check_number("tolerance", tolerance, "between 0 and 0.5, such as 0.02", lambda t: 0 <= t <= 0.5)
    baseline = baseline_of(model)
    assert model.class_counts is not None  # checked by `baseline_of`
    fit_rows = model.n_rows * baseline.effective_rows / baseline.rows
    counts = model.class_counts * (fit_rows / model.class_counts.sum())
    frequencies = (counts + 0.5) / (counts.sum() + 0.5 * len(counts))  # none of them 0
    predicted = frequencies if baseline.mean_probabilities is None else baseline.mean_probabilities
    at_fit = np.append(baseline.accuracy - baseline.mean_confidence, frequencies - predicted)

    # The variance of a row's gap is c (1 - c), c its confidence. The variances of the classes are not
    # recorded. They sum to 1 - sum p^2, at most 1 - c^2, and are divided in proportion to those of the
    # frequencies.
    c = baseline.confidence_quantiles
    left = min(1.0, _mean_of(1 - c**2) / (1 - np.sum(frequencies**2)))
    variances = np.append(_mean_of(c * (1 - c)), left * frequencies * (1 - frequencies))
    errors = np.sqrt(variances / fit_rows)

    ratio = np.ones(model.n_classes) if model.log_prior_ratio is None else np.exp(model.log_prior_ratio)
    at_fit[1:] *= ratio
    errors[1:] *= ratio
    if model.frequency_errors is not None:
        errors[1:] = np.hypot(errors[1:], model.frequency_errors)
    own = np.append(1.0, np.minimum(1.0, frequencies * ratio / RARE)) * tolerance + MARGIN * errors
    groups = np.empty(model.n_classes, np.intp)
    order = np.argsort(-model.class_counts, kind="stable")
    groups[order] = np.minimum(np.arange(model.n_classes), MAX_GROUPS - 1)
    return Limits(
        tolerance,
        np.maximum(np.minimum(at_fit, 0.0) - own, -1.0),
        np.minimum(np.maximum(at_fit, 0.0) + own, 1.0),
        at_fit,
        fit_rows,
        groups,
    )


def _mean_of(at_quantiles: Vector) -> float:
    return float((at_quantiles[1:] + at_quantiles[:-1]).mean() / 2)
