"""Fit many methods, judge them on rows that they were not fitted to, and say which one to take.

The judge is the NLL: a proper score, so it rewards true probabilities and nothing else. With a test set the
methods are judged there; without one, by cross-validation on the validation set. A simpler method is
preferred unless a more complex one is better by more than one standard error of the difference.
"""

from __future__ import annotations

import textwrap
import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from temperance._validation import InputError, check_labels, check_number, check_sample_weight, inspector
from temperance.calibrators import CALIBRATORS, Calibrator, make_calibrator
from temperance.containers import as_numpy, open_logits
from temperance.core.blocks import BFloat16
from temperance.core.rows import Rows
from temperance.metrics import Evaluation, evaluate

__all__ = ["UNCALIBRATED", "Comparison", "MethodResult", "compare"]

Vector = NDArray[np.float64]

UNCALIBRATED = "none"
"""The name under which the classifier's own softmax is compared."""


@dataclass(frozen=True)
class MethodResult:
    """One method: the calibrator fitted to all validation rows, and how it was judged."""

    method: str
    calibrator: Calibrator | None
    n_parameters: int
    scores: Evaluation
    row_nll: Vector
    seconds: float
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class Comparison:
    """Methods side by side: `print` it, or read `results`, `recommended` and `reason`."""

    results: dict[str, MethodResult]
    recommended: str
    reason: str
    judged_on: str

    @property
    def calibrator(self) -> Calibrator | None:
        """The recommended calibrator, fitted to all validation rows; None if none is needed."""
        return self.results[self.recommended].calibrator

    def __str__(self) -> str:
        first = next(iter(self.results.values())).scores
        title = (
            f"{first.n_rows} rows, {first.n_classes} classes, judged on {self.judged_on}, {first.bins} bins"
        )
        interval = f"{100 * first.confidence:g} % interval"
        head = f"{'method':<9}{'NLL':>9}{interval:>19}{'Brier':>9}{'ECE %':>8}{'smECE %':>9}{'fit s':>8}"
        lines = [_line(result, name == self.recommended) for name, result in self.results.items()]
        verdict = textwrap.fill(f"Recommended: {self.recommended}. {self.reason}", 80)
        return "\n".join([title, "", head, *lines, "", verdict])

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, ready for JSON."""
        methods = {
            name: {
                "parameters": result.n_parameters,
                "seconds": result.seconds,
                "warnings": list(result.warnings),
                "scores": result.scores.to_dict(),
            }
            for name, result in self.results.items()
        }
        return {
            "methods": methods,
            "recommended": self.recommended,
            "reason": self.reason,
            "judged_on": self.judged_on,
        }


def _line(result: MethodResult, chosen: bool) -> str:
    s = result.scores
    interval = f"{s['nll'].low:.4f} .. {s['nll'].high:.4f}"
    numbers = f"{s['brier'].value:>9.4f}{100 * s['ece'].value:>8.2f}{100 * s['smooth_ece'].value:>9.2f}"
    mark = "*" if chosen else ""
    return f"{result.method + mark:<9}{s['nll'].value:>9.4f}{interval:>19}{numbers}{result.seconds:>8.2f}"


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
    keys = list(CALIBRATORS) if methods is None else methods
    calibrators = {key: make_calibrator(key) for key in keys}
    if (test_logits is None) != (test_labels is None):
        raise InputError("test_logits and test_labels must be given together; got one of them.")
    val = _Data.open(val_logits, val_labels, sample_weight)
    if test_labels is not None:
        test, fold, judged_on = _Data.open(test_logits, test_labels), None, "the test set"
    else:
        test, fold, judged_on = val, _deal(val, folds, random_state), f"{folds}-fold cross-validation"
    if methods is None and (val.has_masks() or test.has_masks()):
        calibrators = {key: c for key, c in calibrators.items() if c.takes_masks}
    scoring = {"bins": bins, "confidence": confidence, "draws": draws, "random_state": random_state}
    results = {
        key: _judge(key, calibrator, val, test, fold, scoring)
        for key, calibrator in ({UNCALIBRATED: None} | calibrators).items()
    }
    recommended, reason = _recommend(results, test.weights)
    return Comparison(results, recommended, reason, judged_on)


@dataclass(frozen=True)
class _Data:
    logits: NDArray[Any] | BFloat16
    labels: NDArray[np.intp]
    weights: Vector | None

    @classmethod
    def open(cls, logits: Any, labels: ArrayLike, sample_weight: ArrayLike | None = None) -> _Data:
        values = open_logits(logits).values
        columns = check_labels(as_numpy(labels), *values.shape)
        return cls(values, columns, check_sample_weight(sample_weight, len(values)))

    def has_masks(self) -> bool:
        """Say whether any logit is -inf; raise if one is not allowed at all."""
        rows = Rows(self.logits, self.labels, inspect=inspector(self.logits))
        return not bool(np.isfinite(rows.mean()).all())


def _deal(data: _Data, folds: int, random_state: int) -> NDArray[np.intp]:
    """Deal the rows to folds at random."""
    n_rows = len(data.labels)
    wanted = f"from 2 to the number of rows, {n_rows}"
    check_number("folds", folds, wanted, lambda folds: 2 <= folds <= n_rows, whole=True)
    return np.random.default_rng(random_state).permutation(n_rows) % folds


def _judge(
    method: str,
    calibrator: Calibrator | None,
    val: _Data,
    test: _Data,
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
        probs = _predict(calibrator, test.logits) if fold is None else _predict_folds(calibrator, val, fold)
    scores = evaluate(probs, test.labels, sample_weight=test.weights, **scoring)
    # Beyond the range of float64 a label's probability counts as its smallest number, not as 0.
    at_label = np.maximum(probs[np.arange(len(probs)), test.labels], np.finfo(np.float64).tiny)
    n_parameters = 0 if calibrator is None else calibrator.solution_.parameters.size
    messages = tuple(dict.fromkeys(str(warning.message) for warning in caught))
    return MethodResult(method, calibrator, n_parameters, scores, -np.log(at_label), seconds, messages)


def _predict(calibrator: Calibrator | None, logits: NDArray[Any] | BFloat16) -> Vector:
    """Return probabilities in float64: in float32 those of a confident classifier's errors may be 0."""
    wide = Rows(logits).scaled(1.0) if isinstance(logits, BFloat16) else logits
    wide = np.asarray(wide, np.float64)
    return np.asarray(Rows(wide).softmax(1.0) if calibrator is None else calibrator.predict_proba(wide))


def _predict_folds(calibrator: Calibrator | None, val: _Data, fold: NDArray[np.intp]) -> Vector:
    if calibrator is None:
        return _predict(None, val.logits)
    weights = np.ones(len(fold)) if val.weights is None else val.weights
    probs = np.empty(val.logits.shape)
    for held in range(fold.max() + 1):
        # Rows of weight 0 are not seen by the fit, and none need be copied.
        fitted = clone(calibrator).fit(val.logits, val.labels, np.where(fold == held, 0.0, weights))
        rows = np.flatnonzero(fold == held)
        probs[rows] = _predict(fitted, val.logits[rows])
    return probs


def _recommend(results: dict[str, MethodResult], weights: Vector | None) -> tuple[str, str]:
    """Choose the simplest method that is within one standard error of the lowest NLL."""
    share = np.ones(len(next(iter(results.values())).row_nll)) if weights is None else weights
    share = share / share.sum()
    means = {name: float(result.row_nll @ share) for name, result in results.items()}
    best = min(means, key=lambda name: means[name])
    within = {}
    for name, result in results.items():
        difference = result.row_nll - results[best].row_nll
        spread = float(((difference - difference @ share) ** 2) @ share)
        error = np.sqrt(spread * (share @ share))
        if means[name] - means[best] <= error:
            within[name] = error
    chosen = min(within, key=lambda name: (results[name].n_parameters, means[name]))
    if chosen == best:
        return (
            chosen,
            f"Its NLL, {means[best]:.4f}, is the lowest; no simpler method is within one standard error.",
        )
    return chosen, (
        f"It is the simplest method whose NLL, {means[chosen]:.4f}, is within one standard error "
        f"({within[chosen]:.4f}) of the lowest, {means[best]:.4f} ({best})."
    )
