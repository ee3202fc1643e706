"""Results of methods with a given mean NLL and noise, without a fit."""

import numpy as np

from temperance.comparison.method_result import MethodResult
from temperance.metrics import Evaluation
from temperance.metrics.finding import Finding, State
from temperance.metrics.intervals import Estimate

N_ROWS = 900
NOISE = np.random.default_rng(0).standard_normal(N_ROWS // 2)
NOISE = np.concatenate([NOISE, -NOISE])  # without skewness
NOISE = NOISE / NOISE.std(ddof=1)


def finding(state=State.NONE, *, p_value=0.5, mean=0.02, rate=0.02, n_classes=3, said=0.97, right=0.9):
    """Return what rows would show: about P(yes) with two classes, otherwise about the confidence."""
    of_event, ratio = n_classes == 2, rate / mean
    gap = mean - rate if of_event else said - right
    shown = (Estimate(value, value - 0.01, value + 0.01) for value in (ratio, gap, 1.0))
    p_values, counted = (p_value, p_value, 0.5), (right, 0.5, int(rate * N_ROWS), True, 0)
    return Finding(state, *p_values, of_event, "yes", N_ROWS, mean, rate, *shown, *counted)


def method_result(
    nll, *, n_parameters=1, said=0.97, right=0.9, noise=0.0, changed_share=0.0, calibration_error=0.05,
    n_classes=3, **found,
):  # fmt: skip
    """Return a method whose mean NLL has a standard error of `noise` against one that has none."""
    scores = {"ece": Estimate(calibration_error, 0, 1), "accuracy": Estimate(right, 0, 1)}
    shown = finding(n_classes=n_classes, said=said, right=right, **found)
    return MethodResult(
        "a method",
        None,
        n_parameters=n_parameters,
        scores=Evaluation(scores, N_ROWS, n_classes, 15, 0.95, 100, finding=shown),
        row_nll=nll + noise * np.sqrt(N_ROWS) * NOISE,
        confidence=np.full(N_ROWS, said),
        correct=np.arange(N_ROWS) < right * N_ROWS,
        share=np.full(N_ROWS, 1 / N_ROWS),
        changed_share=changed_share,
        seconds=0.0,
        warnings=(),
    )
