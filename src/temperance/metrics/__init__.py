"""Scores and calibration errors of predicted probabilities.

Every metric is a function of `(probs, labels)` that returns a float in natural units: an ECE of 2 % is
0.02. `probs` is an (N, K) array, or (N,) for the second of two classes; `labels` are column indices.
Smaller is better, except for `accuracy`, and for `overconfidence`, which is best at 0.

================= ===================================================================================
scores            `accuracy`, `nll`, `brier`, `aurc`, `overconfidence`
calibration       `ece`, `mce`, `classwise_ece`, `debiased_ece`, `smooth_ece`
decomposition     `decompose`, and `nll_calibration`, `nll_refinement`, `brier_calibration`,
                  `brier_refinement`
tests             `spiegelhalter`, `cox`, `cumulative_differences`: is it calibrated? A `CalibrationTest`
                  with a p-value
figures           `reliability`: the bins of a reliability diagram
all at once       `evaluate`: the metrics with their intervals, and the tests
================= ===================================================================================

Other libraries have some of these. relplot requires pandas, seaborn and matplotlib; probmetrics, netcal and
torchmetrics need torch; uncertainty-calibration has only the binned errors and no weights. Each is a large
dependency for a few sums, and none has weights and intervals for all metrics, so none is required. If they
are installed, the tests use them as second implementations.
"""

from __future__ import annotations

from temperance.metrics.binned import classwise_ece, debiased_ece, ece, mce
from temperance.metrics.calibration_tests import cumulative_differences, spiegelhalter
from temperance.metrics.cox import CoxTest, cox
from temperance.metrics.decomposition import (
    Decomposition,
    brier_calibration,
    brier_refinement,
    decompose,
    nll_calibration,
    nll_refinement,
)
from temperance.metrics.diagram import Reliability, reliability
from temperance.metrics.estimates import CalibrationTest, Estimate, Evaluation
from temperance.metrics.evaluation import METRICS, evaluate
from temperance.metrics.scores import accuracy, brier, nll, overconfidence
from temperance.metrics.selective import aurc
from temperance.metrics.smooth import smooth_ece

__all__ = [
    "METRICS",
    "CalibrationTest",
    "CoxTest",
    "Decomposition",
    "Estimate",
    "Evaluation",
    "Reliability",
    "accuracy",
    "aurc",
    "brier",
    "brier_calibration",
    "brier_refinement",
    "classwise_ece",
    "cox",
    "cumulative_differences",
    "debiased_ece",
    "decompose",
    "ece",
    "evaluate",
    "mce",
    "nll",
    "nll_calibration",
    "nll_refinement",
    "overconfidence",
    "reliability",
    "smooth_ece",
    "spiegelhalter",
]
