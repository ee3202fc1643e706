"""Fit many methods, evaluate them on rows that they were not fitted to, and recommend one.

With a test set the methods are evaluated there; without one, by cross-validation on the validation set.
`recommendation` defines what "better" means, and when a simpler method is preferred.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temperance.calibrators import CALIBRATORS, UNCALIBRATED, Method
from temperance.calibrators.estimator import Calibrator
from temperance.calibrators.external_methods import Methods, find_methods
from temperance.calibrators.recording import record_source
from temperance.comparison import rows
from temperance.comparison.class_reliability import class_reliability
from temperance.comparison.decisions import changed_share
from temperance.comparison.difference import Difference
from temperance.comparison.learning_curve import LearningCurve, learning_curve
from temperance.comparison.method_result import MethodResult
from temperance.comparison.recommendation import Recommendation, recommend
from temperance.comparison.result import Comparison
from temperance.comparison.rows import LabelledRows
from temperance.comparison.same_rows import check_apart
from temperance.comparison.verdict import Outcome, Verdict
from temperance.core.arrays import Vector
from temperance.core.logit_rows import LogitRows
from temperance.errors import InputError, InputWarning
from temperance.inputs.containers import names_of
from temperance.inputs.frames import check_column_names, column_names
from temperance.inputs.validation import check_number, warn_of_probabilities
from temperance.metrics import Evaluation
from temperance.metrics.evaluation import Scorer
from temperance.metrics.outside import Metric, Metrics, named_metrics, with_metrics
from temperance.metrics.predictions import check_rows
from temperance.metrics.resamples import DRAWS
from temperance.progress import Progress, Report, reporting

__all__ = [
    "UNCALIBRATED",
    "Comparison",
    "Difference",
    "LabelledRows",
    "LearningCurve",
    "MethodResult",
    "Outcome",
    "Recommendation",
    "Verdict",
    "compare",
    "learning_curve",
]


NEEDS_ALL = "it weighs every logit, and some are -inf, which marks impossible classes"


def compare(
    val_logits: Any,
    val_labels: ArrayLike,
    test_logits: Any = None,
    test_labels: ArrayLike | None = None,
    methods: Methods | None = None,
    metrics: Metrics | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    classes: Sequence[str] | Sequence[int] | None = None,
    folds: int = 5,
    bins: int = 15,
    confidence: float = 0.95,
    draws: int = DRAWS,
    random_state: int = 0,
    metric_intervals: bool = False,
    progress: Progress = True,
) -> Comparison:
    """Fit each method to the validation rows and evaluate it on the test rows.

    Parameters
    ----------
    val_logits, val_labels
        Rows to fit to.
    test_logits, test_labels : optional
        Rows to evaluate on. Without them, cross-validation on the validation rows is used.
    methods : sequence or mapping, optional
        Keys of `CALIBRATORS`, `package.module:Class`, calibrators, or any objects with `fit(logits, labels)`
        and `predict_proba(logits)`; or a mapping of names to these. By default all methods that support
        the logits. The uncalibrated classifier is always included. `failures` has the methods that were left
        out, with the reason: a method from outside that raises; LTS, HnLTS and PTS if a class is masked by
        -inf; bayes-bias if it was not named and does not support so many classes.
    metrics : sequence or mapping, optional
        Functions of (probs, labels), or a mapping of names to these, in addition to the built-in metrics.
    sample_weight : (N,) numbers >= 0, optional
        Weights of the validation rows.
    classes : sequence of str or int, optional
        Names of the columns, in their order, if labels are names. A DataFrame has its own.
    folds : int
        Number of folds of the cross-validation.
    bins, confidence, draws, random_state
        As for `metrics.evaluate`; the seed also assigns the folds.
    metric_intervals : bool
        Whether to compute bootstrap intervals of `metrics`: each is then called once for each draw.
    progress : bool, or function of (what, fraction done)
        By default a line on standard error, if that is a terminal or a notebook and the call takes longer
        than two seconds; False turns it off. A function is called before each method.

    Examples
    --------
    >>> from temperance import compare
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=3000, n_classes=4, class_spread=0.0, entropy_slope=0.0)
    >>> result = compare(task.logits, task.labels, methods=["ts", "hts"])
    >>> result.recommended
    'ts'
    """
    check_number("random_state", random_state, ">= 0", lambda seed: seed >= 0, whole=True)
    usual = [key for key, method in CALIBRATORS.items() if method.in_comparison]
    chosen = find_methods(usual if methods is None else methods)
    if (test_logits is None) != (test_labels is None):
        raise InputError("test_logits and test_labels must be given together; found one of them.")
    val = LabelledRows.open(val_logits, val_labels, sample_weight, classes=classes)
    if test_labels is not None:
        test, fold = _open_test(val, val_logits, test_logits, test_labels, classes), None
        judged_on = "the test set"
    else:
        test, fold = val, rows.deal_folds(len(val), folds, random_state)
        judged_on = f"{folds}-fold cross-validation"
    if not warn_of_probabilities(val.logits):
        warn_of_probabilities(test.logits)
    masked = val.has_masks() | (test is not val and test.has_masks())  # invalid logits raise here
    failures: dict[str, str] = {}
    if methods is None and masked:
        failures = {key: NEEDS_ALL for key, method in chosen.items() if not method.supports_masked_classes}
        chosen = {key: method for key, method in chosen.items() if key not in failures}
    scoring = {"bins": bins, "confidence": confidence, "draws": draws, "random_state": random_state}
    own_class = LogitRows(test.logits).top
    scorer = Scorer(bins, confidence, draws, random_state)
    judge = _Judge(
        *(val, test, fold, masked, own_class, random_state, scorer, named_metrics(metrics), metric_intervals)
    )
    with reporting("Comparing", progress) as report:
        results = judge.results({UNCALIBRATED: None, **chosen}, methods, failures, report)
    settings = scoring | ({} if fold is None else {"folds": folds})
    recommendation = recommend(results, test.weights)
    names = _record_names(results, val_logits, classes, val.logits.shape[1])
    return Comparison(results, recommendation, judged_on, val, test, settings, chosen, failures, names)


def _record_names(
    results: Mapping[str, MethodResult], logits: Any, given: Any, n_classes: int
) -> tuple[str, ...] | None:
    """Pass the class names, if there are any, to our calibrators, and return them."""
    known = names_of(logits, given, n_classes)
    if known is None:
        return None
    names = tuple(map(str, known))
    for result in results.values():
        if isinstance(result.calibrator, Calibrator):
            result.calibrator.model_ = record_source(result.calibrator.model_, None, names)
    return names


def _open_test(
    val: LabelledRows, val_logits: Any, test_logits: Any, test_labels: Any, classes: Any
) -> LabelledRows:
    """Open the test rows, which must have the classes of the validation rows and differ from these rows."""
    names = column_names(val_logits)
    if names is not None:
        columns = "val_logits.column_names" if hasattr(val_logits, "column_names") else "val_logits.columns"
        check_column_names(names, test_logits, argument="test_logits", names=columns)
    test = LabelledRows.open(test_logits, test_labels, classes=classes)
    if test.logits.shape[1] != val.logits.shape[1]:
        raise InputError(
            "val_logits and test_logits must have the same classes, a column for each; found "
            f"{val.logits.shape[1]} and {test.logits.shape[1]}. Pass the rows of one classifier."
        )
    check_apart(val.logits, test.logits)
    return test


def _is_optional(method: Method, error: Exception, named: Methods | None) -> bool:
    """Say whether a comparison continues without a method: a class bias has limits that others do not."""
    return named is None and not method.keeps_class and isinstance(error, InputError)


@dataclass(frozen=True)
class _Judge:
    """What all methods of a comparison are fitted to and evaluated on."""

    val: LabelledRows
    test: LabelledRows
    fold: NDArray[np.intp] | None
    masked: bool
    own_class: NDArray[np.intp]
    random_state: int
    scorer: Scorer
    metrics: Mapping[str, Metric]
    metric_intervals: bool

    def results(
        self,
        chosen: Mapping[str, Method | None],
        named: Methods | None,
        failures: dict[str, str],
        report: Report,
    ) -> dict[str, MethodResult]:
        """Evaluate each method; add to `failures` why one was left out."""
        results = {}
        for done, (key, method) in enumerate(chosen.items()):
            report(key, done / len(chosen))
            try:
                results[key] = self.result(key, method)
            except Exception as error:
                if method is None or (method.is_ours and not _is_optional(method, error, named)):
                    raise
                failures[key] = str(error) if method.is_ours else f"{type(error).__name__}: {error}"
        return results

    def result(self, name: str, method: Method | None) -> MethodResult:
        """Fit to all validation rows; score on the test rows, or fold by fold with separate fits."""
        if method is not None and self.masked and not method.is_ours and not method.supports_masked_classes:
            raise InputError(
                "rows with masked classes (-inf) need a method whose supports_masked_classes is true"
            )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", InputWarning)  # the comparison has already warned once
            began = time.perf_counter()
            calibrator = None if method is None else rows.fit_method(method, self.val)
            seconds = time.perf_counter() - began
            if self.fold is None:
                probs = rows.predict(calibrator, self.test.logits, self._probs)
            else:
                probs = rows.predict_folds(method, self.val, self.fold, self._probs)
        top = probs.argmax(axis=1)
        return MethodResult(
            name,
            calibrator,
            n_parameters=0.0 if calibrator is None else Method.complexity(calibrator),
            scores=self._scores(probs),
            row_nll=rows.label_nll(probs, self.test.labels),
            confidence=probs[np.arange(len(probs)), top],
            correct=top == self.test.labels,
            changed_share=self._changed_share(method, top),
            seconds=seconds,
            warnings=tuple(dict.fromkeys(str(warning.message) for warning in caught)),
            class_reliability=class_reliability(probs, self.test, self.scorer.bins),
        )

    @cached_property
    def _probs(self) -> NDArray[np.float64]:
        """The probabilities of one method after the other: new memory takes as long as the softmax."""
        return np.empty(self.test.logits.shape)

    def _changed_share(self, method: Method | None, top: NDArray[np.intp]) -> float:
        # A method that keeps the class changes no decision, even if two probabilities round to the same
        # number.
        if method is None or method.keeps_class:
            return 0.0
        return changed_share(self.own_class, top, self.test.weights)

    def _scores(self, probs: Vector) -> Evaluation:
        ours = self.scorer.evaluate(check_rows(probs, self.test.labels, self.test.weights))
        if self.metrics:  # which may keep what they are given, and the buffer is used again
            probs = probs.copy()
        return with_metrics(
            ours, self.metrics, probs, self.test.labels, self.random_state, self.metric_intervals
        )
