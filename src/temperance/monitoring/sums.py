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

from dataclasses import dataclass, field, fields, replace
from functools import reduce
from operator import add
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from temperance.calibrators.fit_record import confidence_and_entropy, ends_of_ties
from temperance.core.arrays import Floats, Indices, Matrix, Vector
from temperance.core.blocks import row_slices
from temperance.errors import InputError
from temperance.formulas.fit_record import BASELINE_SHARES, Baseline
from temperance.formulas.model import Model
from temperance.inputs.validation import check_number
from temperance.json_fields import Field, check_object, check_value, read_fields
from temperance.metrics.intervals import Estimate
from temperance.monitoring.evidence import BETS, log_growth, summed_residuals

TOLERANCE = 0.02
"""Default tolerance of the gap between confidence and accuracy, and of the frequency of a class."""

CONFIDENCE = 0.95  # of all intervals
QUANTILE = float(norm.ppf((1 + CONFIDENCE) / 2))
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
    of_gap = baseline.confidence_quantiles * (1 - baseline.confidence_quantiles)
    of_classes = baseline.class_variances
    if of_classes is None:
        of_classes = frequencies * (1 - frequencies)
    variances = np.append((of_gap[1:] + of_gap[:-1]).mean() / 2, of_classes)
    # An added row of variance 1: a few rows show little.
    errors = np.sqrt((variances + 1 / fit_rows) / fit_rows)
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
        class_groups,
    )


# ---- sums


def _check_rows(rows: float, where: str) -> float:
    """Check the rows of one check; weighted rows are no whole number."""
    if not rows:
        raise InputError(f"{where} must be above 0; found 0")
    return _counted(rows)


def _counted(rows: float) -> float:
    """Return a number of rows as an integer if it is one, up to the rounding of n times 1 / n."""
    return round(rows) if abs(rows - round(rows)) <= 1e-12 * rows else float(rows)


ROWS = Field("rows", float, low=0, high=1e15, check=_check_rows)  # at most what a float counts


def per_row(*shape: str | int, low: float = 0, high: float = 1, optional: bool = False) -> dict[str, Any]:
    """Describe a sum: its shape, in which letters stand for sizes, and what a row adds to each number."""
    return {"shape": shape, "range": (low, high), "optional": optional}


@dataclass(frozen=True, eq=False)
class Sums:
    """Numbers and arrays, each a sum over rows, which can be added up over sets of rows.

    Attributes
    ----------
    rows : float
        Number of rows; weighted ones count as their share, and a group as one.
    """

    rows: float

    def __add__(self, other: Self) -> Self:
        names = [item.name for item in fields(self)]
        return type(self)(**{name: getattr(self, name) + getattr(other, name) for name in names})

    @classmethod
    def read(cls, given: Any, name: str, n_classes: int, *, counts: str) -> Self:
        """Return the sums of a line of a history; raise if rows cannot add up to them.

        The field `counts` has each row once.
        """
        plain = check_object(given, name)
        rows = check_value(ROWS, plain.get("rows"), f"{name}.rows")
        sizes = {
            "K": n_classes,
            "1 + K": 1 + n_classes,
            "F": summed_residuals(1 + n_classes),
            "1 + G": 1 + min(n_classes, MAX_GROUPS),
        }
        table = [ROWS]
        for item in fields(cls)[1:]:
            low, high = (rows * bound * (1 + READING_SLACK) for bound in item.metadata["range"])
            shape = tuple(sizes.get(size, size) for size in item.metadata["shape"])
            kind, optional = list if shape else float, item.metadata["optional"]
            table.append(Field(item.name, kind, optional=optional, low=low, high=high, shape=shape))
        read = read_fields(plain, table, place=name, only=True)
        if abs((total := read[counts].sum()) - rows) > 1e-9 * rows:
            raise InputError(f"{name}.{counts} must add up to {rows} rows; found {total:g}")
        return cls(**read)


@dataclass(frozen=True, eq=False)
class PredictionSums(Sums):
    """Counts over rows.

    Attributes
    ----------
    predicted : (K,) array
        Rows by predicted class.
    confidence, entropy : (21,) arrays
        Rows whose confidence or entropy is at most each quantile of the baseline.
    said, variance : float
        Sums of the confidences c, and of the variances c (1 - c) of being right. NaN in the first histories.
    """

    predicted: Vector = field(metadata=per_row("K"))
    confidence: Vector = field(metadata=per_row(len(BASELINE_SHARES)))
    entropy: Vector = field(metadata=per_row(len(BASELINE_SHARES)))
    said: float = field(default=np.nan, metadata=per_row(optional=True))
    variance: float = field(default=np.nan, metadata=per_row(optional=True))


@dataclass(frozen=True, eq=False)
class LabelledSums(Sums):
    """Sums over labelled rows.

    Attributes
    ----------
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

    confidence: float = field(metadata=per_row())
    probabilities: Vector = field(metadata=per_row("K"))
    labels: Vector = field(metadata=per_row("K"))
    residuals: Vector = field(metadata=per_row("1 + K", low=-1))
    squares: Vector = field(metadata=per_row("1 + K"))
    # Logarithms of a bet are at least log 0.2, logarithms of probabilities at least -18.4.
    capitals: NDArray[np.float64] = field(metadata=per_row(2, len(BETS), "F", low=-2, high=2))
    score: Vector = field(metadata=per_row("1 + G", low=-20, high=20))
    information: Matrix = field(metadata=per_row("1 + G", "1 + G", low=-400, high=400))

    @property
    def accuracy(self) -> float:
        """The share of rows whose predicted class is correct."""
        return float(self.residuals[0] + self.confidence) / self.rows

    @property
    def gap(self) -> Estimate:
        """Mean confidence minus accuracy, which is the first residual negated, with a 95% interval.

        An added row with residual 1 keeps the interval wide for few rows.
        """
        gap = -float(self.residuals[0]) / self.rows
        variance = (max(float(self.squares[0]) - self.rows * gap**2, 0.0) + 1) / (self.rows + 1)
        half = QUANTILE * float(np.sqrt(variance / self.rows))
        return Estimate(gap, max(-1.0, gap - half), min(1.0, gap + half))


def share_of_rows(n_rows: int, weights: Vector | None, groups: Indices | None) -> Vector:
    """Return what each row counts as, at most one.

    A row of weight w counts as min(1, w / mean w), and a group, with the mean weight of its rows, likewise.

    Examples
    --------
    >>> share_of_rows(5, None, np.array([0, 1, 1, 1, 1])).tolist()
    [1.0, 0.25, 0.25, 0.25, 0.25]
    """
    own = np.ones(n_rows) if weights is None else weights
    groups = np.arange(n_rows) if groups is None else groups
    total = np.bincount(groups, own)
    mean = total / np.bincount(groups)
    share: Vector = own * (np.minimum(1.0, mean / mean.mean()) / np.where(total > 0, total, 1.0))[groups]
    return share


def sum_predictions(probs: Floats, baseline: Baseline, share: Vector | None = None) -> PredictionSums:
    """Return the counts of rows, each of which counts as a share of one, by default as one."""
    share = np.ones(len(probs)) if share is None else share
    ends = ends_of_ties(baseline.confidence_quantiles, 1.0), ends_of_ties(baseline.entropy_quantiles)
    parts = []
    for block in _blocks(probs):
        one, up_to = share[block], []
        said, entropy = confidence_and_entropy(probs[block])
        for values, end in zip((said, entropy), ends, strict=True):
            order = np.argsort(values)
            counts = np.append(0.0, np.cumsum(one[order]))
            up_to.append(counts[np.searchsorted(values[order], end, side="right")])
        tops = np.bincount(probs[block].argmax(axis=1), one, probs.shape[1])
        parts.append(
            PredictionSums(
                rows=0.0,  # counted once for all blocks
                predicted=_by_class(tops, len(baseline.predicted_counts)),
                confidence=up_to[0],
                entropy=up_to[1],
                said=float(one @ said),
                variance=float(one @ (said * (1 - said))),
            )
        )
    return replace(reduce(add, parts), rows=_counted(float(share.sum())))


def sum_labelled(
    probs: Floats,
    labels: Indices,
    limits: Limits,
    share: Vector | None = None,
    groups: Indices | None = None,
) -> LabelledSums:
    """Return the sums of rows, each of which counts as a share of one, by default as one.

    With groups, squares and bets are computed from the residuals of groups.
    """
    share = np.ones(len(labels)) if share is None else share
    n_classes, class_groups = len(limits.class_groups), limits.class_groups
    if limits.of_positions:
        class_groups = np.zeros(probs.shape[1], np.intp)
    of_groups = None if groups is None else np.zeros((groups.max() + 1, 1 + n_classes))
    parts = []
    for block in _blocks(probs):
        p, y, one = probs[block], labels[block], share[block]
        gap, of_columns = np.split(residuals(p, y), [1], axis=1)
        each = np.hstack([gap, _by_class(of_columns, n_classes)])
        score, information = _score(p, y, class_groups, one)
        staked, stakes = each, one
        if groups is not None and of_groups is not None:  # a group can continue in the next block
            order = np.argsort(groups[block], kind="stable")
            present, first = np.unique(groups[block][order], return_index=True)
            of_groups[present] += np.add.reduceat((one[:, None] * each)[order], first)
            staked, stakes = each[:0], one[:0]
        parts.append(
            LabelledSums(
                rows=0.0,  # counted once for all blocks
                confidence=float(one @ np.minimum(p.max(axis=1), 1.0).astype(np.float64)),
                probabilities=_by_class(one @ p.astype(np.float64), n_classes),
                labels=_by_class(np.bincount(y, one, p.shape[1]), n_classes),
                residuals=one @ each,
                squares=stakes @ staked**2,
                capitals=log_growth(staked, limits.low, limits.high, stakes),
                score=score,
                information=information,
            )
        )
    found = replace(reduce(add, parts), rows=_counted(float(share.sum())))
    if groups is None or of_groups is None:
        return found
    total = np.bincount(groups, share).astype(np.float64)
    means, total = of_groups[total > 0] / total[total > 0, None], total[total > 0]
    capitals = log_growth(means, limits.low, limits.high, total)
    return replace(found, squares=total @ means**2, capitals=capitals)


def _blocks(probs: Floats) -> list[slice]:
    return row_slices(len(probs), max(1, BLOCK_LOGITS // probs.shape[1]))


def _by_class(of_columns: NDArray[Any], n_classes: int) -> NDArray[np.float64]:
    """Return numbers by column as numbers by class: positions are one class."""
    total: NDArray[np.float64] = of_columns.sum(axis=-1, keepdims=True) if n_classes == 1 else of_columns
    return total


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
