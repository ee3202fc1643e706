"""Scores and calibration errors of predicted probabilities.

Every metric is a function of `(probs, labels)` that returns a float in natural units: an ECE of 2% is
0.02. `probs` is an (N, K) array, or (N,) for the second of two classes; `labels` are column indices.
Smaller is better, except for `accuracy`, and for `overconfidence`, which is best at 0.

================= ===================================================================================
scores            `accuracy`, `nll`, `brier`, `aurc`, `overconfidence`
calibration       `ece`, `mce`, `classwise_ece`, `debiased_ece`, `smooth_ece`
tests             `spiegelhalter`, `cox`, `cumulative_differences`, `cox_classes`: is it calibrated? A
                  `CalibrationTest` with a p-value
figures           `reliability`: the bins of a reliability diagram
all at once       `evaluate`: a `Finding` in one sentence, the metrics with their intervals, and the tests
table             `METRICS`: label, unit, range and meaning of each metric, by name
================= ===================================================================================

Other libraries have some of these. relplot requires pandas, seaborn and matplotlib. probmetrics, netcal and
torchmetrics require torch. uncertainty-calibration has only the binned errors and no weights. Each is a large
dependency for a few sums, and none has weights and intervals for all metrics, so we require none of them. If
they are installed, the tests use them as second implementations.
"""

from __future__ import annotations

from temperance.metrics.bins import Reliability, reliability
from temperance.metrics.calibration_tests import (
    cox,
    cox_classes,
    cumulative_differences,
    spiegelhalter,
)
from temperance.metrics.evaluation import Evaluation, evaluate
from temperance.metrics.finding import Finding
from temperance.metrics.table import (
    METRICS,
    accuracy,
    aurc,
    brier,
    classwise_ece,
    debiased_ece,
    ece,
    mce,
    nll,
    overconfidence,
    smooth_ece,
)

__all__ = [
    "METRICS",
    "Evaluation",
    "Finding",
    "Reliability",
    "accuracy",
    "aurc",
    "brier",
    "classwise_ece",
    "cox",
    "cox_classes",
    "cumulative_differences",
    "debiased_ece",
    "ece",
    "evaluate",
    "mce",
    "nll",
    "overconfidence",
    "reliability",
    "smooth_ece",
    "spiegelhalter",
]
