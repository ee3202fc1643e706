"""Label shift: adapt a fitted model to rows whose class frequencies differ from the calibration set's.

The frequencies are estimated from unlabelled rows (`core.frequencies`) or given. The model keeps its formula;
only its `log_prior_ratio` changes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from temperance import loaders
from temperance.core.arrays import Vector
from temperance.core.frequencies import (
    MIN_COUNT,
    FrequencyEstimate,
    LabelFrequencies,
    ProbabilityRows,
    estimate_frequencies,
    label_frequencies,
)
from temperance.errors import InputError, listed, on_one_line, warn_user
from temperance.formulas.model import Model, apply, axis_of_classes, logits_for
from temperance.inputs.containers import as_numpy, framework_of
from temperance.inputs.validation import check_priors

MAX_CLASSES = 4096  # their K x K Hessian fits in memory
LARGE_ERROR = 0.1  # standard error of a frequency, in absolute terms
TIMES_LABELLED = 3.0  # ... and relative to the error with as many labelled rows
SAMPLED_ROWS_PER_CLASS = 100  # enough for mean probabilities within 10%
MAX_NAMED = 5  # classes in a summary


def adapt_to_rows(model: Model, logits: Any, from_probs: bool | None = None) -> Model:
    """Return the model for rows like these unlabelled ones."""
    fitted = frequencies_at_fit(model)
    _check_classes(model.n_classes, fitted)
    rows = _open_rows(replace(model, log_prior_ratio=None), *logits_for(model, logits, from_probs))
    if not rows.n_rows:
        raise InputError("adapt needs unlabelled rows, and there are none. Pass the logits of some.")
    expected = _expected_frequencies(model, fitted)
    estimate = _relative_to(fitted, expected, estimate_frequencies(rows, expected))
    _warn_of_unknown(fitted)
    _warn(estimate, fitted, rows.n_rows)
    return _adapted(model, fitted, estimate.frequencies, estimate.standard_errors, rows.n_rows)


def adapt_to_priors(model: Model, priors: Any) -> Model:
    """Return the model for rows with these class frequencies."""
    fitted = frequencies_at_fit(model)
    given, known = check_priors(as_numpy(priors), model.n_classes), fitted.is_known
    _warn_of_unknown(fitted)
    frequencies = fitted.frequencies.copy()
    frequencies[known] = given[known] * (fitted.frequencies[known].sum() / given[known].sum())
    return _adapted(model, fitted, frequencies, None, None)


def frequencies_at_fit(model: Model) -> LabelFrequencies:
    """Return the class frequencies of the calibration rows."""
    if model.class_counts is None:
        raise InputError(
            f"adapt must know the class frequencies of the calibration rows; this {model.name} comes from a "
            "file that does not have them. Fit it again with this version."
        )
    return label_frequencies(model.class_counts)


def _expected_frequencies(model: Model, fitted: LabelFrequencies) -> LabelFrequencies:
    """Return the frequencies that an estimate would give for rows like the fit's.

    With a class bias, these are the label frequencies. Without, they are the mean probabilities: otherwise a
    class whose probabilities are too high everywhere would look like a shift. If they are
    the ones of a sample with few rows per class, the labels of all rows are the better estimate.
    """
    baseline = model.record.baseline
    if not model.formula.keeps_class or baseline is None or baseline.mean_probabilities is None:
        return fitted
    few = baseline.rows < min(model.n_rows, SAMPLED_ROWS_PER_CLASS * model.n_classes)
    if few and baseline.fit_rows is None:
        return fitted
    assert model.class_counts is not None  # `fitted` comes from them
    expected = label_frequencies(baseline.mean_probabilities * model.class_counts.sum())
    return replace(fitted, frequencies=expected.frequencies)


def _relative_to(
    fitted: LabelFrequencies, expected: LabelFrequencies, estimate: FrequencyEstimate
) -> FrequencyEstimate:
    """Return the estimate with its ratios taken relative to the label frequencies, not the expected ones."""
    known, scale = fitted.is_known, fitted.frequencies / expected.frequencies
    scale *= fitted.frequencies[known].sum() / (scale * estimate.frequencies)[known].sum()
    return replace(
        estimate,
        frequencies=np.where(known, estimate.frequencies * scale, fitted.frequencies),
        standard_errors=estimate.standard_errors * scale,
    )


def _check_classes(n_classes: int, fitted: LabelFrequencies) -> None:
    if n_classes > MAX_CLASSES:
        raise InputError(
            f"adapt estimates the frequencies of at most {MAX_CLASSES} classes; found {n_classes}. Pass "
            "the frequencies themselves, if they are known."
        )
    if fitted.is_known.sum() < 2:
        raise InputError(
            f"adapt needs two classes with at least {MIN_COUNT:.0f} labels at fit; found "
            f"{fitted.is_known.sum()}. Fit again with more labelled rows."
        )


def _open_rows(model: Model, logits: Any, from_probs: bool | None) -> ProbabilityRows:
    if framework_of(logits) == "dask":
        rows: ProbabilityRows = loaders.load("dask probability rows")(model, logits, from_probs)
        return rows
    probs = as_numpy(apply(model, "predict_proba", logits, from_probs=from_probs))
    last = np.moveaxis(probs, axis_of_classes(model, None, logits), -1)
    return ProbabilityRows(last.reshape(-1, model.n_classes))


def _adapted(
    model: Model, fitted: LabelFrequencies, frequencies: Vector, errors: Vector | None, n_rows: int | None
) -> Model:
    ratio, unknown = np.log(frequencies) - np.log(fitted.frequencies), model.record.unknown_fields
    still_true = {name: given for name, given in unknown.items() if name not in ("adaptation", "automation")}
    return replace(
        model,
        log_prior_ratio=ratio,
        frequency_errors=errors,
        adaptation_rows=n_rows,
        automation=None,  # its promise was about the probabilities before
        record=replace(model.record, unknown_fields=still_true),
    )


def _warn_of_unknown(fitted: LabelFrequencies) -> None:
    if not fitted.is_known.all():
        unknown = _named(np.flatnonzero(~fitted.is_known))
        message = (
            f"{unknown} had fewer than {MIN_COUNT:.0f} labels at fit, so adapt cannot know the frequency "
            "there and leaves it unchanged. Fit again with more such labels."
        )
        warn_user(UserWarning(message))


def _warn(estimate: FrequencyEstimate, fitted: LabelFrequencies, n_rows: int) -> None:
    if not estimate.converged:
        message = (
            "adapt did not converge: its class frequencies are not the maximum-likelihood ones. Pass the "
            "frequencies themselves, if they are known."
        )
        warn_user(ConvergenceWarning(message))
    doubtful = np.flatnonzero(_is_doubtful(estimate, fitted, n_rows))
    if doubtful.size:
        order = doubtful[np.argsort(-estimate.standard_errors[doubtful])]
        worst = estimate.standard_errors[order[0]]
        message = (
            f"{n_rows} rows do not determine the frequency of {_named(order)} (standard error up to "
            f"{worst:.2g}): there are too few rows, or the classifier barely separates the classes. Pass "
            "more rows, or the frequencies themselves, if they are known."
        )
        warn_user(UserWarning(message))


def _is_doubtful(estimate: FrequencyEstimate, fitted: LabelFrequencies, n_rows: int) -> NDArray[np.bool_]:
    """Say which frequencies have large errors: in absolute terms, or relative to as many labelled rows."""
    pi, errors = estimate.frequencies, estimate.standard_errors
    labelled = np.sqrt(pi * (1 - pi) / n_rows)
    relative = errors > np.maximum(pi, fitted.frequencies) / 2
    doubtful: NDArray[np.bool_] = (errors > LARGE_ERROR) | (relative & (errors > TIMES_LABELLED * labelled))
    return doubtful


def _named(classes: NDArray[np.intp]) -> str:
    return f"class{'es' * (len(classes) > 1)} {listed(classes, str)}"


@dataclass(frozen=True)
class FrequencyChange:
    """The frequency of one class at fit and now, with its standard error where it was estimated."""

    column: int
    at_fit: float
    now: float
    error: float | None

    def __str__(self) -> str:
        error = "" if self.error is None else f" \u00b1 {self.error:.2g}"
        return f"{self.now:.3g}{error} ({self.at_fit:.3g} at fit)"


def frequency_changes(model: Model) -> list[FrequencyChange]:
    """Return the frequencies of all classes of an adapted model, the largest changes first."""
    assert model.log_prior_ratio is not None
    at_fit = frequencies_at_fit(model).frequencies
    now, errors = at_fit * np.exp(model.log_prior_ratio), model.frequency_errors
    order = np.argsort(-np.abs(now - at_fit), kind="stable")
    return [
        FrequencyChange(int(k), float(at_fit[k]), float(now[k]), None if errors is None else float(errors[k]))
        for k in order
    ]


def describe_adaptation(model: Model, names: Sequence[object]) -> str:
    """Say in one line which class frequencies changed most, if those at fit are known."""
    if model.class_counts is None:
        return "adapted to class frequencies that differ from the fit's"
    changes = frequency_changes(model)[:MAX_NAMED]
    told = [f"{on_one_line(names[change.column])} {change}" for change in changes]
    rest = "; ..." if model.n_classes > MAX_NAMED else ""
    return f"adapted to class frequencies: {'; '.join(told)}{rest}"
