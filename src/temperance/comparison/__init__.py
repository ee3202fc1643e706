"""Fit many methods, evaluate them on rows that they were not fitted to, and recommend one.

With a test set the methods are evaluated there; without one, by cross-validation on the validation set.
`recommendation` has the rule by which one is recommended.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temperance.calibrators import CALIBRATORS, UNCALIBRATED, Method
from temperance.calibrators.estimator import Calibrator
from temperance.calibrators.external_methods import Methods, find_methods
from temperance.calibrators.fit_record import hash_step, record_source, warn_of_absent
from temperance.comparison.learning_curve import LearningCurve, learning_curve
from temperance.comparison.method_result import MethodResult, class_reliability
from temperance.comparison.recommendation import DEFAULT_METHODS, recommend
from temperance.comparison.result import Comparison
from temperance.comparison.rows import (
    check_test_rows_are_new,
    fit_method,
    label_nll,
    predict,
)
from temperance.comparison.verdict import Verdict
from temperance.core.arrays import Indices, Vector
from temperance.core.logit_rows import LogitRows
from temperance.errors import InputError, InputWarning
from temperance.formulas.fit_record import FittedOn
from temperance.inputs.containers import LabelledRows, open_labelled
from temperance.inputs.groups import warn_of_shared_groups
from temperance.inputs.labels import check_label_counts
from temperance.inputs.names import check_columns_of, choose_columns, column_names
from temperance.inputs.probabilities import (
    LowEnd,
    check_probabilities,
    logits_from_probs,
    probability_floor,
)
from temperance.inputs.validation import check_are_logits, check_number
from temperance.metrics.bootstrap import DRAWS
from temperance.metrics.evaluation import Metrics, Scorer, named_metrics
from temperance.metrics.predictions import Predictions, check_rows, random_folds
from temperance.progress import Progress, Report, reporting

__all__ = [
    "Comparison",
    "LearningCurve",
    "MethodResult",
    "Verdict",
    "compare",
    "learning_curve",
]


DEFAULT_FOLDS = 5
ALL = "all"  # the methods of the package


def compare(
    val_logits: Any,
    val_labels: ArrayLike,
    test_logits: Any = None,
    test_labels: ArrayLike | None = None,
    methods: Methods | str | None = None,
    metrics: Metrics | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    groups: ArrayLike | None = None,
    test_groups: ArrayLike | None = None,
    by: ArrayLike | None = None,
    classes: Sequence[str] | Sequence[int] | None = None,
    positive: int | str | None = None,
    dim: int = -1,
    ignore_index: int | None = None,
    from_probs: bool | None = None,
    folds: int = DEFAULT_FOLDS,
    bins: int = 15,
    confidence: float = 0.95,
    draws: int = DRAWS,
    random_state: int = 0,
    metric_intervals: bool = False,
    positions: bool = False,
    learning_curve: bool = False,
    progress: Progress = True,
) -> Comparison:
    """Fit each method to the validation rows and evaluate it on the test rows.

    Parameters
    ----------
    val_logits, val_labels
        Rows to fit to.
    test_logits, test_labels : optional
        Rows to evaluate on. Without them, cross-validation on the validation rows is used.
    methods : "all", sequence or mapping, optional
        Keys of `CALIBRATORS`, `package.module:Class`, calibrators, or any objects with `fit(logits, labels)`
        and `predict_proba(logits)`; or a mapping of names to these. By default ts, bayes and bayes-bias. With
        "all", alone or in the sequence, all methods of the package that support the logits are tried, but
        only the default methods and those named beside "all" can be recommended. The uncalibrated classifier
        is always included. `failures` lists the methods that were left out, with the reason. A method
        from outside is left out if it raises an error. Unless they were named, so are LTS, HnLTS and PTS if a
        class is masked by -inf, and bayes-bias if it does not support so many classes.
    metrics : sequence or mapping, optional
        Functions of (probs, labels), or a mapping of names to these, in addition to the built-in metrics.
    sample_weight : (N,) numbers >= 0, optional
        Weights of the validation rows.
    groups, test_groups : (N,) ids, optional
        The same id for rows that belong together, such as the visits of a patient. Groups of validation rows
        are in one fold, and methods whose fit takes `groups` get them. Intervals and tests take the groups of
        the rows that methods are evaluated on as independent. Arrays with more axes have groups: the entries
        of the first axis.
    by : (N,) values, optional
        Values of the rows that methods are evaluated on for which calibration is shown separately, such as
        the hospital: `scores.by_group` of each result, and a picture in the report.
    classes : sequence of str or int, optional
        Names of the columns, in their order, if labels are names. A DataFrame has its own.
    positive : int or str, optional
        The class whose probability people act on, as for `metrics.evaluate`; of two, the second by default.
        The calibrators store it.
    dim : int
        Axis of the classes: 1 for the logits of pixels, (N, K, H, W).
    ignore_index : int, optional
        Label of rows to leave out, such as 255 for pixels without a class.
    from_probs : bool, optional
        Whether the rows are probabilities, as for `Calibrator.fit`; small ones are raised to the floor of the
        validation rows.
    folds : int
        Number of folds of the cross-validation; with fewer groups, one fold per group.
    bins, confidence, draws, random_state
        As for `metrics.evaluate`; the seed also assigns the folds.
    metric_intervals : bool
        Whether to compute bootstrap intervals of `metrics`: each is then called once per draw.
    positions : bool
        Whether columns are positions without a meaning, as for `Calibrator.fit`: LTS and HnLTS are left out.
        Test rows can have more or fewer.
    learning_curve : bool
        Whether to fit the methods to parts of the validation rows too, which takes twice as long as all else:
        `Comparison.learning_curve` and the report then show whether more labels would help.
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
    chosen, named = _choose_methods(methods)
    candidates = named if len(named) == len(chosen) else {*DEFAULT_METHODS, *named}
    if (test_logits is None) != (test_labels is None):
        raise InputError("test_logits and test_labels must be given together; found one of them.")
    val_logits, test_logits = (choose_columns(rows, classes) for rows in (val_logits, test_logits))
    fitted_on, raised = None, False
    if from_probs:
        floor = probability_floor(val_logits)
        fitted_on = FittedOn("probabilities", floor, positions=positions or None)
        both = [rows for rows in (val_logits, test_logits) if rows is not None]
        raised = any(LowEnd.of(check_probabilities(rows), floor).n_rows_below for rows in both)
        val_logits, *tested = (logits_from_probs(rows, floor) for rows in both)
        test_logits = tested[0] if tested else None
    reading: dict[str, Any] = {
        "classes": classes, "positive": positive, "positions": positions, "dim": dim,
        "ignore_index": ignore_index,
    }  # fmt: skip
    own_by = by if test_labels is None else None
    val = open_labelled(val_logits, val_labels, sample_weight, groups=groups, by=own_by, **reading).examined()
    test, fold, evaluated_on = val, None, "the test set"
    if test_labels is not None:
        test = open_labelled(test_logits, test_labels, groups=test_groups, by=by, **reading).examined()
        _check_test(val, val_logits, test, test_logits)
        warn_of_shared_groups(groups, test_groups)
        test = replace(test, class_names=val.class_names)
    elif test_groups is not None:
        raise InputError("test_groups must come with test_logits, which are missing. Pass groups.")
    else:
        n_rows = len(val)
        if n_rows < min(DEFAULT_FOLDS, folds):
            raise InputError(
                f"compare needs {DEFAULT_FOLDS} labelled rows, or a test set; found {n_rows} rows. Pass more."
            )
        wanted = f"from 2 to the number of rows, {n_rows}"
        check_number("folds", folds, wanted, lambda folds: 2 <= folds <= n_rows, whole=True)
        folds = min(folds, val.n_groups or n_rows)
        fold = random_folds(len(val), folds, np.random.default_rng(random_state), val.units)
        evaluated_on = f"{folds}-fold cross-validation"
    for rows in () if positions else (val, test):
        counts = np.bincount(rows.labels, rows.weights, rows.logits.shape[1])
        check_label_counts("compare", counts, rows.class_names)
        if rows is val:
            warn_of_absent(counts, val.logits[:: hash_step(*val.logits.shape)], val.class_names)
    if from_probs is None and not check_are_logits(val.logits):
        check_are_logits(test.logits)
    masked = val.has_masks() | (test is not val and test.has_masks())  # invalid logits raise here
    scorer = Scorer(bins, confidence, draws, random_state, named_metrics(metrics), metric_intervals)
    given = groups if fold is not None else test_groups
    of_axis = given is None and test.groups is not None
    evaluation = _Evaluation(val, test, fold, masked, scorer, of_axis, fitted_on)
    with reporting("Comparing", progress) as report:
        results, failures = evaluation.results(chosen, named, report)
    settings = {"bins": bins, "confidence": confidence, "draws": draws, "random_state": random_state}
    comparison = Comparison(
        results,
        recommend(results, candidates, test),
        evaluated_on,
        val,
        test,
        settings if fold is None else settings | {"folds": folds},
        chosen,
        failures,
        val.class_names,
        fitted_on.floor if fitted_on is not None and raised else None,
    )
    return _with_curve(comparison, progress) if learning_curve else comparison


def _with_curve(comparison: Comparison, progress: Progress) -> Comparison:
    seed = comparison.settings["random_state"]
    return replace(
        comparison, learning_curve=learning_curve(comparison, random_state=seed, progress=progress)
    )


def _check_test(val: LabelledRows, val_logits: Any, test: LabelledRows, test_logits: Any) -> None:
    """Raise unless the test rows have the classes of the validation rows and differ from these rows."""
    if not val.positions:
        columns = "val_logits.column_names" if hasattr(val_logits, "column_names") else "val_logits.columns"
        says = {"argument": "test_logits", "expression": columns}
        check_columns_of(test_logits, column_names(val_logits), val.logits.shape[1], **says)
    if test.logits.shape[1] != val.logits.shape[1] and not val.positions:
        raise InputError(
            "val_logits and test_logits must have the same classes, one column each; found "
            f"{val.logits.shape[1]} and {test.logits.shape[1]}. Pass the rows of one classifier."
        )
    check_test_rows_are_new(val.logits, test.logits)


def _choose_methods(given: Methods | str | None) -> tuple[dict[str, Method], set[str]]:
    """Return the methods to compare, and which of them the user has named."""
    if given is None:
        return find_methods(DEFAULT_METHODS), set()
    if isinstance(given, str | Mapping) and given != ALL:
        named = find_methods(given)  # which refuses a string
        return named, set(named)
    listed = [ALL] if isinstance(given, str) else list(given)
    others = [one for one in listed if not (isinstance(one, str) and one == ALL)]
    named = find_methods(others)
    if len(others) == len(listed):
        return named, set(named)
    every = [key for key, method in CALIBRATORS.items() if method.in_comparison]
    return find_methods(every) | named, set(named)


@dataclass(frozen=True)
class _Evaluation:
    """What all methods of a comparison are fitted to and evaluated on."""

    val: LabelledRows
    test: LabelledRows
    fold: NDArray[np.intp] | None
    masked: bool
    scorer: Scorer
    of_first_axis: bool
    """Whether the groups of the rows to evaluate on are the entries of their first axis."""
    fitted_on: FittedOn | None
    """How the rows were read, if they were not logits."""

    @cached_property
    def own_class(self) -> NDArray[np.intp]:
        """The classes that the classifier predicts."""
        return LogitRows(self.test.logits).top

    @cached_property
    def share(self) -> Vector:
        """The weights of the test rows, which sum to 1."""
        weights = np.ones(len(self.test)) if self.test.weights is None else self.test.weights
        share: Vector = weights / weights.sum()
        return share

    @cached_property
    def pseudo_error(self) -> tuple[Indices, Vector]:
        """A wrong label of each test row, as the classifier finds it likely, and the chance of the row."""
        found = Predictions(predict(None, self.test.logits), self.test.labels, self.share).pseudo_error
        return found.labels, found.weight

    def results(
        self,
        chosen: Mapping[str, Method],
        named: Collection[str],
        report: Report,
    ) -> tuple[dict[str, MethodResult], dict[str, str]]:
        """Evaluate the classifier and each method; return the results, and why methods were left out."""
        results: dict[str, MethodResult] = {}
        failures: dict[str, str] = {}
        methods = {UNCALIBRATED: None, **chosen}
        for done, (key, method) in enumerate(methods.items()):
            report(key, done / len(methods))
            try:
                results[key] = self.result(key, method)
            except Exception as error:
                if method is None:
                    raise
                # A class bias, and a method that weighs every logit, do not support all rows.
                supports_all = method.keeps_class and method.supports_masked_classes
                optional = key not in named and not supports_all and isinstance(error, InputError)
                if method.is_ours and not optional:
                    raise
                failures[key] = str(error) if method.is_ours else f"{type(error).__name__}: {error}"
        return results, failures

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
            calibrator = None if method is None else fit_method(method, self.val)
            seconds = time.perf_counter() - began
            if isinstance(calibrator, Calibrator):
                names = self.val.class_names
                calibrator.model_ = record_source(calibrator.model_, self.fitted_on, names)
            if method is None or self.fold is None:
                probs = predict(calibrator, self.test.logits)
            else:
                probs = np.empty(self.test.logits.shape)
                for held in range(self.fold.max() + 1):
                    rows = np.flatnonzero(self.fold == held)
                    fitted = fit_method(method, self.val.take(np.flatnonzero(self.fold != held)))
                    probs[rows] = predict(fitted, self.val.logits[rows])
        labels, (wrong, chance) = self.test.labels, self.pseudo_error
        judged = replace(
            check_rows(probs, labels, self.test.weights, groups=self.test.units, by=self.test.by),
            names=self.test.class_names,
            positive=self.test.positive,
            positions=self.test.positions,
        )
        scores = replace(self.scorer.evaluate(judged), of_first_axis=self.of_first_axis)
        top = probs.argmax(axis=1)
        # A method that keeps the class changes no decision, even if two probabilities round to the same
        # number.
        keeps_class = method is None or method.keeps_class
        return MethodResult(
            name,
            calibrator,
            n_parameters=0.0 if calibrator is None else getattr(calibrator, "n_parameters_", np.inf),
            scores=scores,
            row_nll=label_nll(probs, labels),
            confidence=probs[np.arange(len(probs)), top],
            correct=top == labels,
            share=self.share,
            changed_share=0.0 if keeps_class else float(self.share @ (top != self.own_class)),
            seconds=seconds,
            warnings=tuple(dict.fromkeys(str(warning.message) for warning in caught)),
            class_reliability=class_reliability(probs, self.test, self.scorer.bins),
            pseudo_nll=(label_nll(probs, wrong), chance),
            groups=self.test.units,
            folds=None if self.fold is None else int(self.fold.max()) + 1,
        )
