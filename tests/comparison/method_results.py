"""Results of methods with a given mean NLL and noise, without a fit."""

import numpy as np

from temperance.comparison.method_result import MethodResult
from temperance.metrics import Evaluation
from temperance.metrics.calibration_tests import CalibrationTest
from temperance.metrics.intervals import Estimate

N_ROWS = 900
NOISE = np.random.default_rng(0).standard_normal(N_ROWS // 2)
NOISE = np.concatenate([NOISE, -NOISE])  # without skewness
NOISE = NOISE / NOISE.std(ddof=1)


def method_result(
    nll, *, n_parameters=1, said=0.97, right=0.9, noise=0.0, changed_share=0.0, calibration_error=0.05,
    cox=None,
):  # fmt: skip
    """Return a method whose mean NLL has a standard error of `noise` against one that has none.

    `cox` is the p-value of Cox's test.
    """
    tests = {} if cox is None else {"cox": CalibrationTest(1.0, cox, "")}
    scores = {"ece": Estimate(calibration_error, 0, 1), "accuracy": Estimate(right, 0, 1)}
    return MethodResult(
        "a method",
        None,
        n_parameters=n_parameters,
        scores=Evaluation(scores, N_ROWS, 3, 15, 0.95, 100, tests),
        row_nll=nll + noise * np.sqrt(N_ROWS) * NOISE,
        confidence=np.full(N_ROWS, said),
        correct=np.arange(N_ROWS) < right * N_ROWS,
        share=np.full(N_ROWS, 1 / N_ROWS),
        changed_share=changed_share,
        seconds=0.0,
        warnings=(),
    )
