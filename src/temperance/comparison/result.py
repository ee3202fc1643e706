"""What a comparison gives: each method's fit and scores, and which one to take."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from temperance import loaders
from temperance.calibrators import UNCALIBRATED, Method
from temperance.comparison.decisions import accuracy_in_words, share_in_words
from temperance.comparison.rows import LabelledRows
from temperance.core.arrays import Vector
from temperance.files import check_writable
from temperance.metrics import METRICS, Estimate, Evaluation

if TYPE_CHECKING:
    from temperance.comparison.recommendation import Recommendation


@dataclass(frozen=True, eq=False)
class MethodResult:
    """One method: the calibrator fitted to all validation rows, and how it was judged.

    No (N, K) array is kept: figures and paired comparisons need three numbers of each judged row.

    Attributes
    ----------
    method : str
        Its name.
    calibrator : Calibrator, or None
        Fitted to all validation rows; None for the classifier itself.
    n_parameters : float
        How many parameters the rows have determined.
    scores : Evaluation
        All metrics on the judged rows.
    row_nll, confidence, correct : arrays of shape (N,)
        Of the judged rows.
    changed_share : float
        Share of the judged rows, by weight, whose predicted class is not the classifier's own.
    seconds : float
        Time of the fit.
    warnings : tuple of str
        Of the fit.

    Examples
    --------
    >>> from temperance import compare
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=400, n_classes=3)
    >>> comparison = compare(task.logits, task.labels, methods=["ts"], folds=2, draws=5)
    >>> result = comparison.results["ts"]
    >>> result.changes_decisions, result.row_nll.shape
    (False, (400,))
    """

    method: str
    calibrator: Any
    n_parameters: float
    scores: Evaluation
    row_nll: Vector
    confidence: Vector
    correct: NDArray[np.bool_]
    changed_share: float
    seconds: float
    warnings: tuple[str, ...]

    @property
    def accuracy(self) -> float:
        """The share of the judged rows, by weight, whose predicted class is the label."""
        return self.scores["accuracy"].value

    @property
    def changes_decisions(self) -> bool:
        """Whether the predicted class of any judged row is not the classifier's own."""
        return self.changed_share > 0


@dataclass(frozen=True, eq=False)
class Comparison:
    """Methods side by side: `print` it, or read `results`, `recommended`, `reason` and `verdict`.

    Attributes
    ----------
    results : dict from name to MethodResult
        The classifier itself, "none", and each method.
    recommendation : Recommendation
        What to take, and why.
    judged_on : str
        The test set or cross-validation, in words.
    fitted, judged : LabelledRows
        The rows, by reference; without a test set they are the same.
    settings : dict
        Of the scores: bins, level of intervals, draws, random seed.
    methods : mapping from name to Method
        What was compared.
    failures : mapping from name to str
        Why methods are missing from the results.
    class_names : tuple of str, or None
        Names of the columns.

    Examples
    --------
    >>> from temperance import compare
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=400, n_classes=3)
    >>> comparison = compare(task.logits, task.labels, methods=["ts"], folds=2, draws=5)
    >>> comparison.recommended, comparison.judged_on
    ('ts', '2-fold cross-validation')
    >>> bool(comparison.gain.low > 0)
    True
    """

    results: dict[str, MethodResult]
    recommendation: Recommendation
    judged_on: str
    fitted: LabelledRows
    judged: LabelledRows
    settings: dict[str, Any]
    methods: Mapping[str, Method] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)
    """Why methods are missing from the results, by name."""
    class_names: tuple[str, ...] | None = None

    @property
    def recommended(self) -> str:
        """The key of the method to take; "none" if none is needed."""
        return self.recommendation.method

    @property
    def reason(self) -> str:
        """Why this method."""
        return self.recommendation.reason

    @property
    def calibrator(self) -> Any:
        """The recommended calibrator, fitted to all validation rows; None if none is needed."""
        return self.results[self.recommended].calibrator

    @property
    def confidence(self) -> float:
        """Level of all intervals."""
        return self.results[self.recommended].scores.confidence

    @property
    def gain(self) -> Estimate:
        """How much the recommended method takes off the NLL, with its interval."""
        return self.recommendation.gain.interval(self.confidence)

    @property
    def verdict(self) -> str:
        """What to do, and what it brings, in a sentence."""
        before, after = (self.results[name].scores for name in (UNCALIBRATED, self.recommended))
        if self.recommended == UNCALIBRATED:
            return (
                f"Leave the classifier as it is: its NLL is {before['nll'].value:.4f}, its calibration error "
                f"(ECE) {_percent(before['ece'])}, and no method is better by more than one standard error."
            )
        gain = self.gain
        return (
            f"Calibrate with {self.recommended}: it lowers the NLL by {gain.value:.4f} "
            f"({100 * self.confidence:g} % interval {gain.low:.4f} to {gain.high:.4f}), from "
            f"{before['nll'].value:.4f} to {after['nll'].value:.4f}, and the calibration error (ECE) from "
            f"{_percent(before['ece'])} to {_percent(after['ece'])}."
        )

    @property
    def decision_changes(self) -> list[str]:
        """A sentence for each method that changes decisions: how many, and what becomes of the accuracy."""
        before = self.results[UNCALIBRATED].accuracy
        return [
            f"{name} changes {share_in_words(result.changed_share)}; "
            f"{accuracy_in_words(before, result.accuracy)}."
            for name, result in self.results.items()
            if result.changes_decisions
        ]

    @property
    def outside_metrics(self) -> list[str]:
        """The names of the metrics that were handed in."""
        return [name for name in self.results[UNCALIBRATED].scores if name not in METRICS]

    def __str__(self) -> str:
        base = self.results[UNCALIBRATED].scores
        title = f"{base.n_rows} rows, {base.n_classes} classes, judged on {self.judged_on}, {base.bins} bins"
        width = max(9, *(len(name) + 2 for name in (*self.results, *self.failures)))
        widths = [9, 19, 9, 8, 9, 8, *(max(9, 2 + len(name)) for name in self.outside_metrics)]
        rows = [["method", *self.shown(UNCALIBRATED)]]
        rows += [[key + "*" * (key == self.recommended), *self.shown(key).values()] for key in self.results]
        head, *lines = [name.ljust(width) + "".join(map(str.rjust, cells, widths)) for name, *cells in rows]
        lines += [_wrapped(f"{name:<{width}}failed: {why}", width) for name, why in self.failures.items()]
        notes = [*map(_wrapped, self.decision_changes), ""] if self.decision_changes else []
        recommended = _wrapped(f"Recommended: {self.recommended}. {self.reason}")
        return "\n".join([title, "", head, *lines, "", *notes, recommended, _wrapped(self.verdict)])

    def shown(self, name: str) -> dict[str, str]:
        """Return the numbers of a method as a table shows them, by their headings."""
        scores = self.results[name].scores
        nll = scores["nll"]
        return {
            "NLL": f"{nll.value:.4f}",
            f"{100 * scores.confidence:g} % interval": f"{nll.low:.4f} .. {nll.high:.4f}",
            "Brier": f"{scores['brier'].value:.4f}",
            "ECE %": f"{100 * scores['ece'].value:.2f}",
            "smECE %": f"{100 * scores['smooth_ece'].value:.2f}",
            "fit s": f"{self.results[name].seconds:.2f}",
            **{metric: f"{scores[metric].value:.4g}" for metric in self.outside_metrics},
        }

    def _repr_html_(self) -> str:
        return loaders.load("comparison html")(self)

    def save_report(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the whole comparison as one HTML page that opens offline."""
        from temperance.comparison.learning_curve import learning_curve  # which rests on this module

        check_writable(path, overwrite=overwrite)  # before the fits of the curve
        curve = learning_curve(self, random_state=self.settings["random_state"])
        loaders.load("report")(self, path, curve, overwrite=overwrite)

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, ready for JSON."""
        methods = {
            name: {
                "parameters": result.n_parameters,
                "changed_share": result.changed_share,
                "seconds": result.seconds,
                "warnings": list(result.warnings),
                "scores": result.scores.to_dict(),
            }
            for name, result in self.results.items()
        }
        first, gain = self.results[UNCALIBRATED].scores, self.gain
        return {
            "rows_fitted": len(self.fitted),
            "rows_judged": first.n_rows,
            "classes": first.n_classes,
            "judged_on": self.judged_on,
            "bins": first.bins,
            "confidence": first.confidence,
            "recommended": self.recommended,
            "alternative": self.recommendation.alternative,
            "reason": self.reason,
            "verdict": self.verdict,
            "nll_gain": {"value": gain.value, "low": gain.low, "high": gain.high},
            "methods": methods,
            "failures": dict(self.failures),
        }


def _wrapped(words: str, indent: int = 0) -> str:
    return textwrap.fill(words, 80, subsequent_indent=" " * indent)


def _percent(estimate: Estimate) -> str:
    return f"{100 * estimate.value:.2f} %"
