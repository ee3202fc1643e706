"""What the shape of a row tells of its temperature, alike for any number of classes in any order.

At a reference temperature T0, which makes classifiers of different scale alike:

    h = log(H / log K)      its square      log(1 + gap to the third logit)      log(1 + gap to the mean)

with H the entropy (h not below `LOG_ENTROPY_FLOOR`) and gaps measured from the largest logit.
"""

from __future__ import annotations

import numpy as np

from temperance.core.arrays import Matrix, Vector
from temperance.core.fit_data import FitData, weighted_sum
from temperance.core.logit_rows import LogitRows

__all__ = [
    "LOG_ENTROPY_FLOOR",
    "SHAPE_FEATURES",
    "mean_log_entropy",
    "shape_features",
    "standards",
    "sum_of_log_entropy",
]


SHAPE_FEATURES = ("log entropy", "its square", "gap to third", "gap to mean")
LOG_ENTROPY_FLOOR = -20.0
LEAST_SPREAD = 0.05  # added to a standard deviation, so that rows all alike are not blown up


def shape_features(rows: LogitRows, temperature: float) -> Matrix:
    """Return the features of each row, (N, 4), at the reference temperature."""
    shape = rows.row_shape(1 / temperature)
    entropy = np.maximum(shape.log_entropy - np.log(np.log(rows.n_classes)), LOG_ENTROPY_FLOOR)
    return np.column_stack(
        [entropy, entropy**2 / 10, np.log1p(shape.gap_to_third), np.log1p(shape.gap_to_mean)]
    )


def mean_log_entropy(sample: FitData) -> float:
    """Return the mean of the rows' log entropy: how sure the classifier is, by its own account."""
    return float(sample.total(sum_of_log_entropy)[0]) / sample.total_weight


def sum_of_log_entropy(rows: LogitRows, weights: Vector | None) -> tuple[Vector]:
    """Return the sum of the rows' log entropies, none below the floor."""
    return (weighted_sum(np.maximum(rows.uncertainty().log_entropy, LOG_ENTROPY_FLOOR), weights),)


def standards(sample: FitData, reference: float) -> tuple[Vector, Vector]:
    """Return what to take off the features and what to divide them by."""

    def sums(rows: LogitRows, weights: Vector | None) -> tuple[Vector]:
        return (weighted_sum(shape_features(rows, reference), weights),)

    def squares(rows: LogitRows, weights: Vector | None) -> tuple[Vector]:
        return (weighted_sum((shape_features(rows, reference) - centre) ** 2, weights),)

    centre = sample.total(sums)[0] / sample.total_weight
    variance = sample.total(squares)[0] / sample.total_weight
    return centre, np.sqrt(variance) + LEAST_SPREAD
