"""Fit many methods, judge them on rows that they were not fitted to, and say which one to take.

With a test set the methods are judged there; without one, by cross-validation on the validation set. What
"better" means, and when a simpler method is preferred, is in `recommendation`.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temperance.calibrators import CALIBRATORS, UNCALIBRATED, Calibrator, Method, make_calibrator
from temperance.comparison.learning_curve import LearningCurve, learning_curve
from temperance.comparison.recommendation import Difference, Recommendation, recommend
from temperance.comparison.result import Comparison, MethodResult
from temperance.comparison.rows import LabelledRows, deal_folds, label_nll, predict, predict_folds
from temperance.metrics import evaluate
from temperance.validation import InputError

__all__ = [
    "UNCALIBRATED",
    "Comparison",
    "Difference",
    "LabelledRows",
    "LearningCurve",
    "MethodResult",
    "Recommendation",
    "compare",
    "learning_curve",
]


def compare(
    val_logits: Any,
    val_labels: ArrayLike,
    test_logits: Any = None,
    test_labels: ArrayLike | None = None,
    methods: Sequence[str] | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    folds: int = 5,
    bins: int = 15,
    confidence: float = 0.95,
    draws: int = 200,
    random_state: int = 0,
    progress: Callable[[str, float], None] | None = None,
) -> Comparison:
    """Fit each method to the validation rows and judge it on the test rows.

    Parameters
    ----------
    val_logits, val_labels
        Rows to fit to.
    test_logits, test_labels : optional
        Rows to judge on. Without them the judgement is by cross-validation on the validation rows.
    methods : sequence of str, optional
        Keys of `CALIBRATORS`; by default all that can take the logits, which leaves out LTS, HnLTS and PTS
        where a class is masked by -inf. The uncalibrated classifier always takes part.
    sample_weight : (N,) numbers >= 0, optional
        Of the validation rows.
    folds : int
        Of the cross-validation.
    bins, confidence, draws, random_state
        As for `metrics.evaluate`; the seed also deals the folds.
    progress : function of (what, fraction done), optional
        Called before each method.

    Examples
    --------
    >>> from temperance import compare
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=3000, n_classes=4, class_spread=0.0, entropy_slope=0.0)
    >>> result = compare(task.logits, task.labels, methods=["ts", "hts"])
    >>> result.recommended
    'ts'
    """
    if isinstance(methods, str):
        raise InputError(
            f"methods must be a list of keys, such as [{methods!r}]; got the string {methods!r}."
        )
    keys = [key for key, m in CALIBRATORS.items() if m.in_comparison] if methods is None else methods
    calibrators = {key: make_calibrator(key) for key in keys}
    if (test_logits is None) != (test_labels is None):
        raise InputError("test_logits and test_labels must be given together; got one of them.")
    val = LabelledRows.open(val_logits, val_labels, sample_weight)
    if test_labels is not None:
        test, fold, judged_on = LabelledRows.open(test_logits, test_labels), None, "the test set"
    else:
        test, fold = val, deal_folds(len(val), folds, random_state)
        judged_on = f"{folds}-fold cross-validation"
    masked = val.has_masks() | (test is not val and test.has_masks())  # bad logits are spoken of here
    if methods is None and masked:
        calibrators = {key: c for key, c in calibrators.items() if c.supports_masked_classes}
    scoring = {"bins": bins, "confidence": confidence, "draws": draws, "random_state": random_state}
    results = {}
    for done, (key, calibrator) in enumerate(({UNCALIBRATED: None} | calibrators).items()):
        if progress is not None:
            progress(key, done / (1 + len(calibrators)))
        results[key] = _judge(key, calibrator, val, test, fold, scoring)
    settings = scoring | ({} if fold is None else {"folds": folds})
    return Comparison(results, recommend(results, test.weights), judged_on, val, test, settings)


def _judge(
    method: str,
    calibrator: Calibrator | None,
    val: LabelledRows,
    test: LabelledRows,
    fold: NDArray[np.intp] | None,
    scoring: dict[str, Any],
) -> MethodResult:
    """Fit to all validation rows; score on the test rows, or fold by fold with fits of their own."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        began = time.perf_counter()
        if calibrator is not None:
            calibrator.fit(val.logits, val.labels, val.weights)
        seconds = time.perf_counter() - began
        probs = predict(calibrator, test.logits) if fold is None else predict_folds(calibrator, val, fold)
    top = probs.argmax(axis=1)
    return MethodResult(
        method,
        calibrator,
        n_parameters=0.0 if calibrator is None else Method.complexity(calibrator),
        scores=evaluate(probs, test.labels, sample_weight=test.weights, **scoring),
        row_nll=label_nll(probs, test.labels),
        confidence=probs[np.arange(len(probs)), top],
        correct=top == test.labels,
        seconds=seconds,
        warnings=tuple(dict.fromkeys(str(warning.message) for warning in caught)),
    )
