"""The result of a comparison: each method's fit and scores, and which one to use."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from temperance import loaders
from temperance.calibrators import UNCALIBRATED, Method
from temperance.comparison import table
from temperance.comparison.learning_curve import LearningCurve
from temperance.comparison.method_result import MethodResult
from temperance.comparison.recommendation import Recommendation
from temperance.comparison.verdict import Verdict, give_verdict
from temperance.inputs.containers import LabelledRows
from temperance.metrics import METRICS


@dataclass(frozen=True, eq=False)
class Comparison:
    """Methods side by side: `print` it, or read `results`, `recommended`, `reason` and `verdict`.

    Attributes
    ----------
    results : dict from name to MethodResult
        The classifier itself, "none", and each method.
    recommendation : Recommendation
        Which method to use, and why.
    evaluated_on : str
        A description of the test set or the cross-validation.
    fitted, judged : LabelledRows
        The rows, by reference; without a test set they are the same.
    settings : dict
        Settings of the scores: bins, level of intervals, draws, random seed.
    methods : mapping from name to Method
        What was compared.
    failures : mapping from name to str
        Why methods are missing from the results.
    class_names : tuple of str, or None
        Names of the columns.
    floor : float or None
        The value to which smaller probabilities were raised before the comparison; None if none were.
    learning_curve : LearningCurve or None
        The NLL by the number of rows, if it was requested.

    Examples
    --------
    >>> from temperance import compare
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=400, n_classes=3)
    >>> comparison = compare(task.logits, task.labels, methods=["ts"], folds=2, draws=5)
    >>> comparison.recommended, comparison.evaluated_on
    ('ts', '2-fold cross-validation')
    >>> bool(comparison.verdict.nll_gain.low > 0)
    True
    """

    results: dict[str, MethodResult]
    recommendation: Recommendation
    evaluated_on: str
    fitted: LabelledRows
    judged: LabelledRows
    settings: dict[str, Any]
    methods: Mapping[str, Method] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)
    class_names: tuple[str, ...] | None = None
    floor: float | None = None
    learning_curve: LearningCurve | None = None

    @property
    def recommended(self) -> str:
        """The key of the method to use; "none" if none is needed."""
        return self.recommendation.method

    @property
    def reason(self) -> str:
        """Why this method."""
        return self.recommendation.reason

    @property
    def why(self) -> str:
        """The reason, with the name of the method."""
        return f"Why {self.recommended}: {self.reason}"

    @property
    def calibrator(self) -> Any:
        """The recommended calibrator, fitted to all validation rows; None if none is needed."""
        return self.results[self.recommended].calibrator

    @property
    def confidence(self) -> float:
        """Level of all intervals."""
        return self.results[self.recommended].scores.confidence

    @cached_property
    def verdict(self) -> Verdict:
        """What to do, and what it gains: an object that prints as sentences."""
        method = self.methods.get(self.recommended)
        return give_verdict(
            self.results,
            self.recommendation,
            keeps_class=method is None or method.keeps_class,
            floor=self.floor,
        )

    @property
    def outside_metrics(self) -> list[str]:
        """The names of the additional metrics."""
        return [name for name in self.results[UNCALIBRATED].scores if name not in METRICS]

    @property
    def heading(self) -> str:
        """What the numbers are from."""
        first = self.results[UNCALIBRATED].scores
        groups = "" if first.n_groups is None else f" in {first.n_groups:,} groups"
        size = f"{first.n_rows:,} rows{groups}, {first.n_classes:,} classes"
        return f"Evaluated on {self.evaluated_on}: {size}. ECE with {first.bins} bins."

    def __str__(self) -> str:
        """Return the answer, the table, and why."""
        verdict = self.verdict
        failed = [f"{name} failed: {why}" for name, why in self.failures.items()]
        below = map(_wrapped, (self.heading, *failed, *verdict.notes, self.why))
        return "\n".join([*map(_wrapped, verdict.answer), "", *table.to_text(self), "", *below])

    def to_frame(self) -> Any:
        """Return the numbers of all methods as a pandas DataFrame, lowest NLL first.

        Columns are `nll`, its `difference` from the lowest one with the standard `error` of this, `ece`,
        `accuracy`, `changed_share` (of predictions) and your own metrics; shares and ECE are fractions.

        Examples
        --------
        >>> from temperance import compare
        >>> from temperance.data import simulate
        >>> task = simulate(n_rows=400, n_classes=3)
        >>> frame = compare(task.logits, task.labels, methods=["ts"], folds=2, draws=5).to_frame()
        >>> list(frame.index), list(frame.columns)[:3]
        (['ts', 'none'], ['nll', 'difference', 'error'])
        """
        pandas = loaders.import_optional("pandas", "study", "Comparison.to_frame")
        frame = pandas.DataFrame.from_dict(table.numbers(self), orient="index")
        return frame.rename_axis("method")

    def to_markdown(self) -> str:
        """Return the table as Markdown, lowest NLL first, with the recommended method in bold.

        Examples
        --------
        >>> from temperance import compare
        >>> from temperance.data import simulate
        >>> task = simulate(n_rows=400, n_classes=3)
        >>> comparison = compare(task.logits, task.labels, methods=["ts"], folds=2, draws=5)
        >>> comparison.to_markdown().splitlines()[2].startswith("| **ts** |")
        True
        """
        return table.to_markdown(self)

    def to_latex(self) -> str:
        r"""Return the table as LaTeX, lowest NLL first, the recommended method in bold; it needs booktabs.

        Examples
        --------
        >>> from temperance import compare
        >>> from temperance.data import simulate
        >>> task = simulate(n_rows=400, n_classes=3)
        >>> comparison = compare(task.logits, task.labels, methods=["ts"], folds=2, draws=5)
        >>> print(comparison.to_latex().splitlines()[0])
        \begin{tabular}{lrrrr}
        """
        return table.to_latex(self)

    def _repr_html_(self) -> str:
        return loaders.load("comparison html")(self)

    def save_report(
        self, path: str | Path, *, overwrite: bool = False, title: str = "Calibration report"
    ) -> None:
        """Write the whole comparison as one HTML page that opens offline.

        Name the model and the data in the title, since the comparison does not know them.
        """
        loaders.load("report")(self, path, overwrite=overwrite, title=title)

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
        first = self.results[UNCALIBRATED].scores
        return {
            "rows_fitted": len(self.fitted),
            "rows_judged": first.n_rows,
            "groups_fitted": self.fitted.n_groups,
            "groups_judged": self.judged.n_groups,
            "classes": first.n_classes,
            "judged_on": self.evaluated_on,
            "bins": first.bins,
            "confidence": first.confidence,
            "recommended": self.recommended,
            "reason": self.reason,
            **self.verdict.to_dict(),
            "methods": methods,
            "failures": dict(self.failures),
        }


def _wrapped(words: str) -> str:
    return textwrap.fill(words, 80)
