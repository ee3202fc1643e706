"""Write the record of a fit, from one reading of its rows after the solver has ended.

The digest and the baseline are computed from a sample of the rows (`core.blocks.sampled_rows`), small enough
that it adds little to the fit. Both are defined in docs/file-format.md, so that other programs can compute
them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from temperance import __version__
from temperance.core.arrays import AnyArray, Floats, Indices, Matrix, Vector
from temperance.core.blocks import row_slices, sampled_rows
from temperance.core.design_effect import effective_rows
from temperance.core.logit_rows import LogitRows
from temperance.core.objective import FitData, Samples
from temperance.core.quantiles import SLACK
from temperance.errors import InputWarning, listed, warn_user
from temperance.files import utc_now
from temperance.formulas.fit_record import BASELINE_SHARES, Baseline, FitRecord, FittedOn, class_groups
from temperance.formulas.model import Model
from temperance.inputs.labels import check_label_counts
from temperance.inputs.validation import check_are_logits

# Rows that the digest and the baseline are computed from, and how many logits they have at most.
HASHED_ROWS, HASHED_LOGITS = 4096, 1 << 18
BASELINE_ROWS, MIN_BASELINE_ROWS, BASELINE_LOGITS = 4096, 1024, 1 << 20
EVALUATED_LOGITS = 1 << 18  # at a time: three arrays of 2 MB in float64
ROWS_PER_CLASS = 20  # on average: of a class that rows like these have, some are labelled
MIN_EXPECTED = 5.0  # labels: by chance, none of so many in 1 of 150 fits
MIN_OTHERS, CHANCE = 20, 1.645  # labels of other classes than the first; of a normal number, its 95% quantile
TIE = 1e-6  # relative: what rounding moves a probability by


def record_fit(
    model: Model,
    data: FitData,
    fitted_on: FittedOn,
    class_names: tuple[str, ...] | None,
    positive: int | None,
    *,
    check: bool,
) -> Model:
    """Return the model of a fit with the record of the rows it was fitted to.

    `check`: whether to raise if its logits look like probabilities.
    """
    described = min(BASELINE_ROWS, max(MIN_BASELINE_ROWS, BASELINE_LOGITS // data.n_classes))
    samples: Samples = [
        (hash_step(data.n_rows, data.n_classes), _labelled),
        (-(-data.n_rows // described), partial(_evaluate, model)),
    ]
    (counts, class_counts), ((labels, logits), predictions) = data.survey(_label_counts, samples)
    if check:
        check_are_logits(logits)
    if not data.in_memory:  # in memory, this was checked before the fit
        check_label_counts("fit", class_counts, class_names)
    if not data.positions:
        _warn_of_labels(labels, logits, class_counts, class_names)
    groups = class_groups(class_counts)
    baseline = _baseline(data.n_classes, *predictions)
    baseline = _with_means(baseline, groups, *data.total(partial(_class_sums, model, groups)))
    n_groups, design_effect = None, None
    if data.groups is not None:
        confidence, _, _, right, weights = data.total(partial(_evaluate, model))
        gap, n_groups = confidence - right, len(np.unique(data.groups))
        independent = effective_rows(gap, weights, data.groups)
        design_effect = effective_rows(gap, weights) / independent
        at = sampled_rows(samples[1][0], data.n_rows)
        in_groups = effective_rows(gap[at], weights[at], data.groups[at])
        baseline = replace(baseline, effective_rows=in_groups, fit_rows=independent)
    record = FitRecord(
        class_names=class_names,
        positive=positive,
        fitted_on=fitted_on,
        data_hash=_digest(data, counts, labels, logits),
        date=utc_now(),
        library_version=__version__,
        baseline=baseline,
    )
    return replace(
        model, class_counts=class_counts, n_groups=n_groups, design_effect=design_effect, record=record
    )


def warn_of_absent(class_counts: AnyArray, logits: AnyArray, names: Sequence[object] | None) -> Matrix:
    """Warn of classes without labels, of which logits of some rows expect several; return their softmax."""
    n_rows, n_classes = logits.shape
    with np.errstate(invalid="ignore", over="ignore"):
        probs: Matrix = softmax(np.asarray(logits, np.float64), axis=1)
    expected = np.nan_to_num(probs.sum(axis=0))
    absent = np.flatnonzero((class_counts == 0) & (expected >= MIN_EXPECTED))
    if absent.size and class_counts.sum() >= ROWS_PER_CLASS * n_classes:
        named = listed([k if names is None else names[k] for k in absent.tolist()])
        fact = f"so many rows should have labels of every class; {named} have none, where the logits of "
        some = f"{n_rows:,} rows expect {expected[absent].sum():,.0f}."
        warn_user(
            InputWarning(fact + some, "Add such rows, or drop the column of a class that does not occur.")
        )
    return probs


def _warn_of_labels(
    labels: AnyArray, logits: Matrix, class_counts: AnyArray, names: tuple[str, ...] | None
) -> None:
    """Warn of classes that lack labels, and of labels that could be permuted.

    The sum over rows of p_y - sum_k f_k p_k, with p less its mean and f the frequencies of the labels, is
    about normal with mean 0 where labels are permuted.
    """
    n_rows, n_classes = logits.shape
    probs = warn_of_absent(class_counts, logits, names)
    counts = np.bincount(labels, minlength=n_classes)
    centred = probs - probs.mean(axis=0)
    excess = centred[np.arange(n_rows), labels] - centred @ (counts / n_rows)
    is_known = n_rows - counts.max() >= MIN_OTHERS and bool(np.ptp(probs, axis=0).any())
    if is_known and float(excess.sum()) < CHANCE * float(np.sqrt(excess @ excess)):
        fact = "The labels agree with the logits no better than chance:"
        warn_user(InputWarning(fact, "check that labels and columns match, and labels and rows."))


def warn_if_fitted_on(model: Model, rows: LogitRows, command: str, consequence: str) -> None:
    """Warn if a model was fitted to these very rows, as far as the digest tells."""
    data = FitData(rows)
    (counts, _), ((labels, logits),) = data.survey(
        _label_counts, [(hash_step(data.n_rows, data.n_classes), _labelled)]
    )
    if model.record.data_hash == _digest(data, counts, labels, logits):
        fact = f"{command} needs rows that the fit has not seen; found the rows of the fit."
        warn_user(InputWarning(fact, f"{consequence}: pass other rows."))


def hash_step(n_rows: int, n_classes: int) -> int:
    """Return the step between rows that are digested, which bounds how many logits they have."""
    return -(-n_rows // max(1, min(HASHED_ROWS, HASHED_LOGITS // n_classes)))


def _digest(data: FitData, counts: AnyArray, labels: AnyArray, logits: Matrix) -> str:
    digest = hashlib.sha256()
    for whole_numbers in (np.array([data.n_rows, data.n_classes]), counts, labels):
        digest.update(np.ascontiguousarray(whole_numbers, "<i8").data)
    digest.update(np.ascontiguousarray(logits + 0.0, "<f8").data)  # -0.0 + 0.0 = 0.0
    return f"sha256:{digest.hexdigest()}"


def record_source(model: Model, fitted_on: FittedOn | None, class_names: Sequence[str] | None) -> Model:
    """Return the model with what the caller knows about the rows and the fit itself could not see."""
    record = model.record
    names = record.class_names if class_names is None else tuple(class_names)
    return replace(model, record=replace(record, fitted_on=fitted_on or record.fitted_on, class_names=names))


def _label_counts(rows: LogitRows, weights: Vector | None) -> tuple[AnyArray, ...]:
    assert rows.labels is not None  # rows of a fit
    counts = np.bincount(rows.labels, minlength=rows.n_classes)
    weighted = np.bincount(rows.labels, weights, rows.n_classes).astype(np.float64)
    return counts, weighted


def _labelled(rows: LogitRows, weights: Vector | None) -> tuple[AnyArray, ...]:
    assert rows.labels is not None
    with np.errstate(over="ignore"):  # numbers beyond the range of float64
        return rows.labels, rows.values.astype(np.float64)


def _predicted(model: Model, rows: LogitRows) -> Iterator[tuple[slice, LogitRows, Floats, Indices]]:
    """Yield blocks of rows, with their probabilities and predicted classes."""
    slices = row_slices(rows.n_rows, max(1, EVALUATED_LOGITS // rows.n_classes))
    passes = 0
    for part in slices:
        block = rows if len(slices) == 1 else rows.take(part)
        probs = block.map(model.formula.calibrate)
        yield part, block, probs, block.top if model.formula.keeps_class else probs.argmax(axis=1)
        passes = 0 if block is rows else block.passes  # which are parts of one pass
    rows.passes += passes


def _evaluate(model: Model, rows: LogitRows, weights: Vector | None) -> tuple[AnyArray, ...]:
    """Return confidence, entropy, predicted class, whether it is correct, and the weight of each row."""
    columns = [
        (*confidence_and_entropy(probs), predicted, predicted == block.labels)
        for _, block, probs, predicted in _predicted(model, rows)
    ]
    weight = np.ones(rows.n_rows) if weights is None else weights
    return *(np.concatenate(column) for column in zip(*columns, strict=True)), weight


def _class_sums(
    model: Model, groups: Indices, rows: LogitRows, weights: Vector | None
) -> tuple[AnyArray, ...]:
    """Return sums over rows: by class, by label and group of classes, and of the rows themselves.

    By class, (3, K): weights by label, p, and p (1 - p). By label, (2, G, G): p and p^2 of each group.
    Of the rows: squared weights, confidence and the rest, and if the predicted class is correct or wrong.
    """
    weight = np.ones(rows.n_rows) if weights is None else weights
    one_hot = np.eye(groups.max() + 1)[groups]
    by_class, of_rows = np.zeros((3, len(groups))), np.zeros(5)
    by_label = np.zeros((2, *one_hot.shape[1:] * 2))
    for part, block, probs, predicted in _predicted(model, rows):
        w, labels = weight[part], block.labels
        assert labels is not None  # rows of a fit
        p = np.einsum("i,ij->j", w, probs)  # without a float64 copy
        squares = np.einsum("i,ij,ij->j", w, probs, probs)
        by_class += np.bincount(labels, w, len(groups)), p, p - squares
        by_label += sums_by_label(probs, labels, one_hot, w)
        top, right = probs.max(axis=1).astype(np.float64), predicted == labels
        of_rows += w @ w, w @ top, w @ (1 - top), w @ right, w @ ~right
    return by_class, by_label, of_rows


def sums_by_label(probs: Floats, labels: AnyArray, one_hot: Matrix, weight: Vector) -> NDArray[np.float64]:
    """Return the weighted sums of p and p^2 by group of the label and group of classes, (2, G, G)."""
    in_groups, of_label = probs @ one_hot, one_hot[labels].T * weight
    return np.stack([of_label @ in_groups, of_label @ in_groups**2])


def confidence_and_entropy(probs: Floats) -> tuple[Vector, Vector]:
    """Return the largest probability of each row, and the entropy.

    Both come from the other probabilities, which keep their digits where the largest is 1 up to rounding.
    """
    others = probs.copy()
    others[np.arange(len(probs)), probs.argmax(axis=1)] = 0
    rest = others.sum(axis=1, dtype=np.float64)
    logs = np.maximum(others, np.finfo(probs.dtype).tiny)
    np.log(logs, out=logs)
    entropy = -np.einsum("ij,ij->i", others, logs, dtype=np.float64) - (1 - rest) * np.log1p(-rest)
    return 1 - rest, entropy


def ends_of_ties(quantiles: Vector, largest: float = np.inf) -> Vector:
    """Return the largest values that count as tied with quantiles of what lies between 0 and `largest`.

    Close to either end, the distance to it is what matters: of a confidence, that to 1.
    """
    return quantiles + TIE * np.minimum(quantiles, largest - quantiles) + np.finfo(np.float64).eps


def _baseline(
    n_classes: int, confidence: Vector, entropy: Vector, predicted: AnyArray, right: AnyArray, weights: Vector
) -> Baseline:
    """Summarise the predictions of the sampled rows."""
    share = weights / weights.max()  # whose squares neither overflow nor vanish
    numbers = np.stack([confidence, entropy, right.astype(np.float64)])
    # Rounding must not take the mean of ones above 1.
    means = np.clip(numbers @ share / share.sum(), numbers.min(axis=1), numbers.max(axis=1)).tolist()
    confidence_quantiles, confidence_shares = _distribution(confidence, share, 1.0)
    entropy_quantiles, entropy_shares = _distribution(entropy, share, np.inf)
    return Baseline(
        rows=len(weights),
        effective_rows=effective_rows(confidence, share),
        confidence_quantiles=confidence_quantiles,
        confidence_shares=confidence_shares,
        entropy_quantiles=entropy_quantiles,
        entropy_shares=entropy_shares,
        predicted_counts=np.bincount(predicted, weights, n_classes).astype(np.float64),
        mean_confidence=means[0],
        mean_entropy=means[1],
        accuracy=means[2],
    )


def _with_means(
    baseline: Baseline, groups: Indices, by_class: Matrix, by_label: NDArray[np.float64], of_rows: Vector
) -> Baseline:
    """Add the means over all rows of the fit: a sample would leave them uncertain where a class is rare."""
    total = float(by_class[0].sum())
    squares, confidence, rest, right, wrong = of_rows.tolist()
    labels, probabilities, variances = by_class / total
    counts = np.bincount(groups, by_class[0])[:, None]
    means, means_of_squares = by_label / np.where(counts > 0, counts, 1.0)
    return replace(
        baseline,
        mean_confidence=confidence / (confidence + rest),  # the mean of ones is 1
        accuracy=right / (right + wrong),
        mean_probabilities=probabilities,
        label_frequencies=labels,
        class_variances=np.clip(variances, 0.0, 0.25),
        fit_rows=total**2 / squares,
        label_means=np.clip(means, 0.0, 1.0),
        label_variances=np.clip(means_of_squares - means**2, 0.0, 0.25),
    )


def _distribution(values: Vector, weights: Vector, largest: float) -> tuple[Vector, Vector]:
    """Return the quantiles of the baseline, and the share of the weight up to each, ties included."""
    order = np.argsort(values)
    ordered, cumulated = values[order], np.cumsum(weights[order])
    at = np.searchsorted(cumulated, BASELINE_SHARES * cumulated[-1] * (1 - SLACK))
    up_to = np.searchsorted(ordered, ends_of_ties(ordered[at], largest), side="right") - 1
    return ordered[at], cumulated[up_to] / cumulated[-1]
