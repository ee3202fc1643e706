"""The rows of a check as sums, from one pass over their logits, and the limits of these sums.

Without labels: counts of rows by confidence, entropy and predicted class. With labels also sums of the
residuals. A row with probabilities p, predicted class t and label y has the residuals

    -gap       1[y = t] - p_t
    class k    1[y = k] - p_k

All lie in [-1, 1] and have mean 0 if the probabilities are correct. Everything else is computed from the
sums, so checks of any size can be added up. A history keeps them; tables of fields say what a line of it can
hold. Reading rejects sums that were changed by hand, or by a disk: they would be counted as evidence.

Every fitted calibrator is slightly wrong: its method cannot express everything, which its own rows show, and
it was fitted to a finite sample. It counts as unchanged while the mean of a residual lies between

    min(0, residual at the fit) - tolerance - MARGIN standard errors of the fit

and the same on the other side. The margin of a class is larger, since there are many. The user sets the
tolerance. For a class rarer than 10% it shrinks with the frequency of the class. Otherwise a class of 1%
could become three times as frequent unnoticed.

Positions of answers are not classes: whatever their number, they count as one class, which is always right.

Rows of a group are not independent. A group counts as one row, whose residuals are the means over its rows:
so each of its n rows counts as 1 / n, and squares and bets are computed from the means.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import reduce
from operator import add
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from temperance.calibrators.fit_record import confidence_and_entropy, ends_of_ties
from temperance.core.arrays import Floats, Indices, Matrix, Vector
from temperance.core.blocks import BFloat16, read_blocks, row_slices
from temperance.core.row_block import kernels_of_size
from temperance.errors import InputError
from temperance.formulas.fit_record import Baseline
from temperance.formulas.model import Model, apply_to_rows
from temperance.inputs.validation import check_number
from temperance.json_fields import Field, check_object, check_value, read_fields
from temperance.monitoring.evidence import BETS, log_growth, summed_residuals

TOLERANCE = 0.02
"""Default tolerance of the gap between confidence and accuracy, and of the frequency of a class."""

MARGIN = 2.0  # standard errors of the gap at the fit
RARE = 0.1  # frequency of a class below which its tolerance shrinks
MAX_GROUPS = 32
"""Largest number of groups of classes whose joint change is estimated; rarer classes form the last group."""

BLOCK_LOGITS = 1 << 18  # at a time: a few arrays of 2 MB in float64
MIN_PROBABILITY = 1e-8  # whose logarithm enters the score of the temperature
READING_SLACK = 1e-3  # relative: probabilities of float16 add up to 1 within this


@dataclass(frozen=True, eq=False)
class Limits:
    """The allowed means of the residuals: the gap first, then the classes, (1 + K,) each."""

    baseline: Baseline
    """The predictions at the fit, with which later ones are compared."""
    tolerance: float
    low: Vector
    high: Vector
    at_fit: Vector
    """The means of the residuals at the fit."""
    fit_rows: float
    """The number of rows of the baseline; the effective number, if their weights differ."""
    class_groups: Indices
    """The group of each class: the most frequent at the fit have one each, all others share one."""

    @property
    def gap(self) -> tuple[float, float]:
        """The allowed confidence minus accuracy, which is the first mean residual negated."""
        return -float(self.high[0]), -float(self.low[0])

    @property
    def of_positions(self) -> bool:
        """Whether the columns are positions, which count as one class."""
        return len(self.class_groups) == 1


def allowed(model: Model, tolerance: float = TOLERANCE) -> Limits:
    """Return the limits of a calibrator, from the record of its fit."""
    check_number("tolerance", tolerance, "between 0 and 0.5, such as 0.02", lambda t: 0 <= t <= 0.5)
    baseline, class_counts = model.record.baseline, model.class_counts
    if baseline is None or class_counts is None:
        raise InputError(
            f"check needs the predictions at the fit; found a {model.name} from a file that does not "
            "have them. Fit it again with this version."
        )
    if model.of_positions:
        everything = np.ones(1)
        class_counts = class_counts.sum(keepdims=True)
        baseline = replace(
            baseline,
            predicted_counts=baseline.predicted_counts.sum(keepdims=True),
            mean_probabilities=everything,
            label_frequencies=everything,
            class_variances=everything - 1,
        )
    fit_rows, n_classes = baseline.effective_rows, len(class_counts)
    counts = class_counts * (fit_rows / class_counts.sum())
    frequencies = (counts + 0.5) / (counts.sum() + 0.5 * len(counts))  # none of them 0
    found = frequencies if baseline.label_frequencies is None else baseline.label_frequencies
    predicted = found if baseline.mean_probabilities is None else baseline.mean_probabilities
    at_fit = np.append(baseline.accuracy - baseline.mean_confidence, found - predicted)

    # A row's gap has the variance c (1 - c), c its confidence, and its indicator of a class p (1 - p), at
    # most the variance at the mean frequency.
    c = baseline.confidence_quantiles
    of_classes = baseline.class_variances
    if of_classes is None:
        of_classes = frequencies * (1 - frequencies)
    variances = np.append(_mean_of(c * (1 - c)), of_classes)
    errors = np.sqrt(
        (variances + 1 / fit_rows) / fit_rows
    )  # an added row of variance 1: a few rows show little
    # All classes together stay within their limits as often as the gap alone does.
    margins = np.append(MARGIN, np.full(n_classes, norm.isf(norm.sf(MARGIN) / n_classes)))

    ratio = np.ones(n_classes) if model.log_prior_ratio is None else np.exp(model.log_prior_ratio)
    at_fit[1:] *= ratio
    errors[1:] *= ratio
    if model.frequency_errors is not None:
        errors[1:] = np.hypot(errors[1:], model.frequency_errors)
    own = np.append(1.0, np.minimum(1.0, frequencies * ratio / RARE)) * tolerance + margins * errors
    class_groups = np.empty(n_classes, np.intp)
    order = np.argsort(-class_counts, kind="stable")
    class_groups[order] = np.minimum(np.arange(n_classes), MAX_GROUPS - 1)
    return Limits(
        baseline,
        tolerance,
        np.maximum(np.minimum(at_fit, 0.0) - own, -1.0),
        np.minimum(np.maximum(at_fit, 0.0) + own, 1.0),
        at_fit,
        fit_rows,
        class_groups,
    )


def _mean_of(at_quantiles: Vector) -> float:
    return float((at_quantiles[1:] + at_quantiles[:-1]).mean() / 2)


# ---- sums


def _check_rows(rows: float, where: str) -> float:
    """Check the rows of one check; weighted rows are no whole number."""
    if not rows:
        raise InputError(f"{where} must be above 0; found 0")
    return int(rows) if rows.is_integer() else rows


ROWS = Field("rows", float, low=0, high=1e15, check=_check_rows)  # at most what a float counts


def _sums(name: str, rows: float, *shape: int, low: float = 0, high: float = 1) -> Field:
    """Describe sums over rows, of which each adds from `low` to `high`."""
    least, most = (rows * bound * (1 + READING_SLACK) for bound in (low, high))
    return Field(name, list, low=least, high=most, shape=shape)


@dataclass(frozen=True, eq=False)
class Sums:
    """Numbers and arrays, each a sum over rows, which can be added up over sets of rows."""

    def __add__(self, other: Self) -> Self:
        names = [item.name for item in fields(self)]
        return type(self)(**{name: getattr(self, name) + getattr(other, name) for name in names})

    @classmethod
    def _read(cls, plain: dict[str, Any], table: Sequence[Field], name: str, *, counts: str) -> Self:
        """Return the sums of a line of a history; raise if they do not count each row once."""
        read = read_fields(plain, table, place=name, only=True)
        if abs((total := read[counts].sum()) - read["rows"]) > 1e-9 * read["rows"]:
            raise InputError(f"{name}.{counts} must add up to {read['rows']} rows; found {total:g}")
        return cls(**read)


@dataclass(frozen=True, eq=False)
class PredictionSums(Sums):
    """Counts over rows.

    Attributes
    ----------
    rows : float
        Number of rows; weighted ones count as their share, and a group as one.
    predicted : (K,) array
        Rows by predicted class.
    confidence, entropy : (21,) arrays
        Rows whose confidence or entropy is at most each quantile of the baseline.
    said, variance : float
        Sums of the confidences c, and of the variances c (1 - c) of being right. NaN in the first histories.
    """

    rows: float
    predicted: Vector
    confidence: Vector
    entropy: Vector
    said: float = np.nan
    variance: float = np.nan

    @classmethod
    def read(cls, given: Any) -> PredictionSums:
        """Return the sums of a line of a history; raise if they cannot be counts."""
        plain = check_object(given, "predictions")
        rows = check_value(ROWS, plain.get("rows"), "predictions.rows")
        n_classes, n_quantiles = (
            len(values) if isinstance(values := plain.get(name), list) else 0
            for name in ("predicted", "confidence")
        )
        table = (
            ROWS,
            _sums("predicted", rows, n_classes),
            _sums("confidence", rows, n_quantiles),
            _sums("entropy", rows, n_quantiles),
            Field("said", float, optional=True, low=0, high=rows * (1 + READING_SLACK)),
            Field("variance", float, optional=True, low=0, high=rows),
        )
        return cls._read(plain, table, "predictions", counts="predicted")


@dataclass(frozen=True, eq=False)
class LabelledSums(Sums):
    """Sums over labelled rows.

    Attributes
    ----------
    rows : float
        Number of rows; weighted ones count as their share, and a group as one.
    confidence : float
        Sum of the largest probabilities.
    probabilities, labels : (K,) arrays
        Sums of the probabilities and of the label indicators, by class.
    residuals, squares : (1 + K,) arrays
        Sums of the residuals and their squares, where a group counts as one row: the gap first, then the
        classes.
    capitals : (2, bets, F) array
        Logarithms of the capitals of bets against the first F residuals, see `evidence.log_growth`.
    score, information : (1 + G,) and (1 + G, 1 + G) arrays
        Derivative of the log-likelihood of softmax(beta log p + b) at log beta = 0, b = 0, and its Fisher
        information: log beta first, then one b per group of classes.
    """

    rows: float
    confidence: float
    probabilities: Vector
    labels: Vector
    residuals: Vector
    squares: Vector
    capitals: NDArray[np.float64]
    score: Vector
    information: Matrix

    @property
    def accuracy(self) -> float:
        """The share of rows whose predicted class is correct."""
        return float(self.residuals[0] + self.confidence) / self.rows

    @classmethod
    def read(cls, given: Any, n_classes: int) -> LabelledSums:
        """Return the sums of a line of a history; raise if rows cannot add up to them."""
        plain = check_object(given, "labelled")
        rows = check_value(ROWS, plain.get("rows"), "labelled.rows")
        with_gap, with_beta = 1 + n_classes, 1 + min(n_classes, MAX_GROUPS)
        # Logarithms of probabilities are at least -18.4, logarithms of a bet at least log 0.2.
        table = (
            ROWS,
            Field("confidence", float, low=0, high=rows * (1 + READING_SLACK)),
            _sums("probabilities", rows, n_classes),
            _sums("labels", rows, n_classes),
            _sums("residuals", rows, with_gap, low=-1),
            _sums("squares", rows, with_gap),
            _sums("capitals", rows, 2, len(BETS), summed_residuals(with_gap), low=-2, high=2),
            _sums("score", rows, with_beta, low=-20, high=20),
            _sums("information", rows, with_beta, with_beta, low=-400, high=400),
        )
        return cls._read(plain, table, "labelled", counts="labels")


def share_of_rows(weights: Vector | None, groups: Indices | None) -> Vector | None:
    """Return what each row counts as, at most one; None if each counts as one.

    A row of weight w counts as min(1, w / mean w), and a group, with the mean weight of its rows, likewise.

    Examples
    --------
    >>> share_of_rows(None, np.array([0, 1, 1, 1, 1])).tolist()
    [1.0, 0.25, 0.25, 0.25, 0.25]
    """
    if groups is None:
        return None if weights is None else np.minimum(1.0, weights / weights.mean())
    own = np.ones(len(groups)) if weights is None else weights
    total = np.bincount(groups, own)
    mean = total / np.bincount(groups)
    per_weight = np.minimum(1.0, mean / mean.mean()) / np.where(total > 0, total, 1.0)
    share: Vector = own * per_weight[groups]
    return share


def sum_rows(
    model: Model,
    limits: Limits,
    values: NDArray[Any] | BFloat16,
    columns: Indices | None,
    weights: Vector | None = None,
    groups: Indices | None = None,
) -> tuple[str, PredictionSums, LabelledSums | None]:
    """Calibrate the rows block by block; return their digest, counts, and sums over labels, if `columns`."""
    digest = hashlib.sha256(np.array(values.shape, "<i8").tobytes())
    predictions, labelled = [], []
    n_rows, n_classes = values.shape
    share = share_of_rows(weights, groups)
    of_groups = None if groups is None else np.zeros((groups.max() + 1, len(limits.low)))
    for part in row_slices(n_rows, max(1, BLOCK_LOGITS // n_classes)):
        with kernels_of_size(n_rows * n_classes):
            probs = apply_to_rows(model, "predict_proba", values[part], whole=values)
        for z, *_ in read_blocks(values[part]):
            digest.update((z.astype("<f8") + 0.0).tobytes())  # -0.0 + 0.0 = 0.0
        own = None if share is None else share[part]
        predictions.append(sum_predictions(probs, limits.baseline, own))
        if columns is not None:
            together = None if groups is None or of_groups is None else (groups[part], of_groups)
            labelled.append(sum_labelled(probs, columns[part], limits, own, together))
    counts, summed = reduce(add, predictions), reduce(add, labelled) if labelled else None
    if groups is not None and of_groups is not None:
        stakes: Vector = np.bincount(groups, share).astype(np.float64)
        if weights is None:
            stakes = np.ones(len(stakes))  # without the error of n times 1 / n
        counts = replace(counts, rows=len(stakes) if weights is None else float(stakes.sum()))
        if summed is not None:
            kept = stakes > 0
            means = of_groups[kept] / stakes[kept, None]
            squares, capitals = _bets(means, limits, stakes[kept])
            summed = replace(summed, rows=counts.rows, squares=squares, capitals=capitals)
    return f"sha256:{digest.hexdigest()}", counts, summed


def sum_predictions(probs: Floats, baseline: Baseline, share: Vector | None = None) -> PredictionSums:
    """Return the counts of a block of rows, each of which counts as a share of one, by default as one."""
    up_to = []
    said, entropy = confidence_and_entropy(probs)
    ends = ends_of_ties(baseline.confidence_quantiles, 1.0), ends_of_ties(baseline.entropy_quantiles)
    for values, end in zip((said, entropy), ends, strict=True):
        order = np.argsort(values)
        counts = np.arange(len(values) + 1.0) if share is None else np.append(0.0, np.cumsum(share[order]))
        up_to.append(counts[np.searchsorted(values[order], end, side="right")])
    predicted = np.bincount(probs.argmax(axis=1), share, probs.shape[1]).astype(np.float64)
    predicted = _by_class(predicted, len(baseline.predicted_counts))
    one = np.ones(len(probs)) if share is None else share
    rows = len(probs) if share is None else float(share.sum())
    variance = float(one @ (said * (1 - said)))
    return PredictionSums(rows, predicted, up_to[0], up_to[1], float(one @ said), variance)


def _by_class(of_columns: NDArray[np.float64], n_classes: int) -> NDArray[np.float64]:
    """Return numbers by column as numbers by class: positions are one class."""
    total: NDArray[np.float64] = of_columns.sum(axis=-1, keepdims=True) if n_classes == 1 else of_columns
    return total


def sum_labelled(
    probs: Floats,
    labels: Indices,
    limits: Limits,
    share: Vector | None = None,
    together: tuple[Indices, Matrix] | None = None,
) -> LabelledSums:
    """Return the sums of a block of rows, each of which counts as a share of one, by default as one.

    `together` has the group of each row, and the residuals of all groups; this adds the rows' residuals
    to them. A group can continue in the next block, so squares and bets wait until the last.
    """
    gap, of_columns = np.split(residuals(probs, labels), [1], axis=1)
    n_classes, class_groups = len(limits.class_groups), limits.class_groups
    each = np.hstack([gap, _by_class(of_columns, n_classes)])
    one = np.ones(len(labels)) if share is None else share
    if limits.of_positions:
        class_groups = np.zeros(probs.shape[1], np.intp)
    score, information = _score(probs, labels, class_groups, one)
    if together is None:
        squares, capitals = _bets(each, limits, share)
    else:
        groups, of_groups = together
        order = np.argsort(groups, kind="stable")
        present, first = np.unique(groups[order], return_index=True)
        of_groups[present] += np.add.reduceat((one[:, None] * each)[order], first)
        squares, capitals = _bets(each[:0], limits, None)
    return LabelledSums(
        rows=len(labels) if share is None else float(share.sum()),
        confidence=float(one @ np.minimum(probs.max(axis=1), 1.0).astype(np.float64)),
        probabilities=_by_class(one @ probs.astype(np.float64), n_classes),
        labels=_by_class(np.bincount(labels, share, probs.shape[1]).astype(np.float64), n_classes),
        residuals=one @ each,
        squares=squares,
        capitals=capitals,
        score=score,
        information=information,
    )


def _bets(each: Matrix, limits: Limits, share: Vector | None) -> tuple[Vector, NDArray[np.float64]]:
    """Return the sum of squares of residuals, and the logarithms of the capitals of bets on them."""
    one = np.ones(len(each)) if share is None else share
    return one @ each**2, log_growth(each, limits.low, limits.high, share)


def residuals(probs: Floats, labels: Indices) -> Matrix:
    """Return the residuals of each row, (N, 1 + K)."""
    at = np.arange(len(labels))
    top = probs.argmax(axis=1)
    result = np.empty((len(labels), 1 + probs.shape[1]))
    np.negative(probs, out=result[:, 1:])
    result[at, 1 + labels] += 1.0
    result[:, 0] = (top == labels) - np.minimum(probs[at, top], 1.0)
    return result


def _score(probs: Floats, labels: Indices, class_groups: Indices, share: Vector) -> tuple[Vector, Matrix]:
    """Return the score and the information of (log beta, b).

    Smaller probabilities count as `MIN_PROBABILITY` in the logarithm: the score keeps mean 0, and one label
    of an impossible class does not dominate.
    """
    at, one_hot = np.arange(len(labels)), np.eye(class_groups.max() + 1)[class_groups]
    p = probs.astype(np.float64)
    log_p = np.log(np.maximum(p, MIN_PROBABILITY))
    mean = np.einsum("ij,ij->i", p, log_p)
    spread = share[:, None] * p * (log_p - mean[:, None])
    in_groups = p @ one_hot
    score = np.concatenate([[share @ (log_p[at, labels] - mean)], share @ (one_hot[labels] - in_groups)])
    own = np.sum(spread * log_p)
    cross = spread.sum(axis=0) @ one_hot
    within = np.diag(share @ in_groups) - in_groups.T @ (share[:, None] * in_groups)
    return score, np.block([[np.array([[own]]), cross[None, :]], [cross[:, None], within]])
