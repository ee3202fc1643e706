"""What can be seen of predictions without labels: confidence, entropy and predicted classes, as counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from temperance.calibrators.recording import confidence_and_entropy
from temperance.core.arrays import Floats, Vector
from temperance.formulas.fit_record import Baseline
from temperance.monitoring.sums import Sums

SLACK = 1e-6  # relative: a value that exceeds a quantile by rounding still counts as tied with it


@dataclass(frozen=True, eq=False)
class PredictionSums(Sums):
    """Counts over rows.

    Attributes
    ----------
    rows : int
        Number of rows.
    predicted : (K,) array
        Rows by predicted class.
    confidence, entropy : (21,) arrays
        Rows whose confidence or entropy is at most each quantile of the baseline.
    """

    rows: int
    predicted: Vector
    confidence: Vector
    entropy: Vector


def sum_predictions(probs: Floats, baseline: Baseline) -> PredictionSums:
    """Return the counts of a block of rows."""
    confidence, entropy = confidence_and_entropy(probs)
    return PredictionSums(
        rows=len(probs),
        predicted=np.bincount(probs.argmax(axis=1), minlength=probs.shape[1]).astype(np.float64),
        confidence=_up_to(confidence, baseline.confidence_quantiles),
        entropy=_up_to(entropy, baseline.entropy_quantiles),
    )


def _up_to(values: Vector, quantiles: Vector) -> Vector:
    return np.searchsorted(np.sort(values), quantiles * (1 + SLACK), side="right").astype(np.float64)
