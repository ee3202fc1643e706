"""The rows of a check as sums, from one pass over their logits, and the limits of these sums.

Without labels: counts of rows by confidence, entropy and predicted class. With labels also sums of the
residuals. A row with probabilities p, predicted class t and label y has the residuals

    -gap       1[y = t] - p_t
    class k    1[y = k] - p_k       of two classes only the positive one: the other has the same, negated

All lie in [-1, 1] and have mean 0 if the probabilities are correct. Everything else is computed from the
sums, so checks of any size can be added up. A history keeps them; tables of fields say what a line of it can
hold. Reading rejects sums that were changed by hand, or by a disk: they would be counted as evidence.

Every fitted calibrator is slightly wrong: its method cannot express everything, which its own rows show, and
it was fitted to a finite sample. It counts as unchanged while the mean of a residual lies between

    min(0, residual at the fit) - max(tolerance, MARGIN standard errors of the fit)

and the same on the other side. The margin of a class is larger where there are many. The user sets the
tolerance. For a class rarer than 10% it shrinks with the frequency of the class (of two, of the rarer one).
Otherwise a class of 1% could become three times as frequent unnoticed.

Limits enter the bets, so a history keeps those that it began with: edition 1 has the sum of tolerance
and errors, from a sample of the rows of the fit, and residuals of both of two classes.

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

from temperance.calibrators.fit_record import confidence_and_entropy, ends_of_ties, sums_by_label
from temperance.core.arrays import Floats, Indices, Matrix, Vector
from temperance.core.blocks import row_slices
from temperance.errors import InputError
from temperance.formulas.fit_record import BASELINE_SHARES, MAX_GROUPS, Baseline, class_groups
from temperance.formulas.model import Model
from temperance.inputs.validation import check_number
from temperance.json_fields import Field, check_object, check_value, read_fields
from temperance.metrics.intervals import Estimate
from temperance.metrics.predictions import judged_class
from temperance.monitoring.evidence import BETS, log_growth, summed_residuals

TOLERANCE = 0.02
"""Default tolerance of the gap between confidence and accuracy, and of the frequency of a class."""

CONFIDENCE = 0.95  # of all intervals
QUANTILE = float(norm.ppf((1 + CONFIDENCE) / 2))
MARGIN, FIRST_MARGIN = 2.5, 2.0  # standard errors of the gap at the fit; in edition 1
RARE = 0.1  # frequency of a class below which its tolerance shrinks
EDITION = 2
"""Of the limits of new histories."""

BLOCK_LOGITS = 1 << 18  # at a time: a few arrays of 2 MB in float64
MIN_PROBABILITY = 1e-8  # whose logarithm enters the score of the temperature
READING_SLACK = 1e-3  # relative: probabilities of float16 add up to 1 within this


@dataclass(frozen=True, eq=False)
class Limits:
    """The allowed means of the R residuals that count: the gap first, then classes."""

    baseline: Baseline
    """The predictions at the fit, with which later ones are compared."""
    edition: int
    """Of the limits: 1 in histories that began with the first version, else 2."""
    tolerance: float
    columns: Indices
    """The class of each residual, (R,); -1 for the gap."""
    judged: int
    """The residual that words are about: of the class that people act on, else the gap."""
    low: Vector
    high: Vector
    errors: Vector
    """Standard errors of the residuals at the fit, (R,)."""
    at_fit: Vector
    """The means of the residuals at the fit: the gap and every class, (1 + K,)."""
    class_groups: Indices
    """The group of each class (`formulas.fit_record.class_groups`)."""
    fit_rows: float
    """Rows of the fit, in effect."""

    @property
    def center(self) -> Vector:
        """The mean of each residual at the fit, (R,)."""
        return self.at_fit[1 + self.columns]

    @property
    def gap(self) -> tuple[float, float]:
        """The allowed prediction minus observation, of what is evaluated: its mean residual negated."""
        return self.gap_of(self.judged)

    def gap_of(self, i: int) -> tuple[float, float]:
        """Return the allowed prediction minus observation, which is the mean of residual i negated."""
        return -float(self.high[i]), -float(self.low[i])

    def margins(self, standard_errors: float) -> Vector:
        """Return so many standard errors of the gap; of several classes, the same level over all."""
        number = len(self.columns) - 1
        if self.edition > 1 and number == 1:
            return np.full(2, standard_errors)
        return np.append(standard_errors, np.full(number, norm.isf(norm.sf(standard_errors) / number)))

    @property
    def of_positions(self) -> bool:
        """Whether the columns are positions, which count as one class."""
        return len(self.class_groups) == 1


def allowed(
    model: Model, tolerance: float = TOLERANCE, positive: int | None = None, edition: int = EDITION
) -> Limits:
    """Return the limits of a calibrator, from the record of its fit; of two classes, `positive` counts."""
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
    first, n_classes = edition == 1, len(class_counts)
    fit_rows = baseline.effective_rows if first else baseline.fit_rows or baseline.effective_rows
    event = judged_class(n_classes, positive, positions=model.of_positions)
    classes = np.arange(n_classes) if first or n_classes != 2 or event is None else np.array([event])
    columns = np.append(-1, classes)
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

    ratio = np.ones(n_classes) if model.log_prior_ratio is None else np.exp(model.log_prior_ratio)
    at_fit[1:] *= ratio
    errors[1:] *= ratio
    if model.frequency_errors is not None:
        errors[1:] = np.hypot(errors[1:], model.frequency_errors)
    frequencies = frequencies * ratio
    if len(classes) == 1:
        frequencies = np.full(n_classes, frequencies.min())
    limits = Limits(
        baseline,
        edition,
        tolerance,
        columns,
        0 if event is None else int(np.argmax(columns == event)),
        np.empty(0),
        np.empty(0),
        errors[1 + columns],
        at_fit,
        class_groups(class_counts),
        fit_rows,
    )
    tolerances = tolerance * np.append(1.0, np.minimum(1.0, frequencies / RARE))[1 + columns]
    noise = limits.margins(FIRST_MARGIN if first else MARGIN) * limits.errors
    own = tolerances + noise if first else np.maximum(tolerances, noise)
    low, high = np.minimum(limits.center, 0.0) - own, np.maximum(limits.center, 0.0) + own
    return replace(limits, low=np.maximum(low, -1.0), high=np.minimum(high, 1.0))


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
    def read(cls, given: Any, name: str, n_classes: int, edition: int, *, counts: str) -> Self:
        """Return the sums of a line of a history; raise if rows cannot add up to them.

        The field `counts` has each row once.
        """
        plain = check_object(given, name)
        rows = check_value(ROWS, plain.get("rows"), f"{name}.rows", {})
        residuals = 2 if n_classes == 2 and edition > 1 else 1 + n_classes
        n_groups = min(n_classes, MAX_GROUPS)
        sizes = {
            "K": n_classes,
            "R": residuals,
            "F": summed_residuals(residuals),
            "G": n_groups,
            "1 + G": 1 + n_groups,
        }
        table = [ROWS]
        for item in fields(cls)[1:]:
            low, high = (rows * bound * (1 + READING_SLACK) for bound in item.metadata["range"])
            shape, optional = item.metadata["shape"], item.metadata["optional"]
            kind = list if shape else float
            table.append(Field(item.name, kind, optional=optional, low=low, high=high, shape=shape))
        read = read_fields(plain, table, sizes, place=name, only=True)
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
    residuals, squares : (R,) arrays
        Sums of the residuals and their squares, where a group counts as one row: the gap first, then
        classes.
    capitals : (2, bets, F) array
        Logarithms of the capitals of bets against the first F residuals, see `evidence.log_growth`.
    score, information : (1 + G,) and (1 + G, 1 + G) arrays
        Derivative of the log-likelihood of softmax(beta log p + b) at log beta = 0, b = 0, and its Fisher
        information: log beta first, then one b per group of classes.
    by_label : (2, G, G) array
        Sums of the probabilities of each group of classes, and of their squares, by the group of the label.
        Of an adapted calibrator, they are those before it was. NaN in the first histories.
    """

    confidence: float = field(metadata=per_row())
    probabilities: Vector = field(metadata=per_row("K"))
    labels: Vector = field(metadata=per_row("K"))
    residuals: Vector = field(metadata=per_row("R", low=-1))
    squares: Vector = field(metadata=per_row("R"))
    # Logarithms of a bet are at least log 0.2, logarithms of probabilities at least -18.4.
    capitals: NDArray[np.float64] = field(metadata=per_row(2, len(BETS), "F", low=-2, high=2))
    score: Vector = field(metadata=per_row("1 + G", low=-20, high=20))
    information: Matrix = field(metadata=per_row("1 + G", "1 + G", low=-400, high=400))
    by_label: NDArray[np.float64] = field(
        default_factory=lambda: np.array(np.nan), metadata=per_row(2, "G", "G", optional=True)
    )

    @property
    def accuracy(self) -> float:
        """The share of rows whose predicted class is correct."""
        return float(self.residuals[0] + self.confidence) / self.rows

    @property
    def means(self) -> Vector:
        """The mean residuals, (R,)."""
        return self.residuals / self.rows

    @property
    def errors(self) -> Vector:
        """Their standard errors, (R,). An added row with residual 1 keeps them wide for few rows."""
        variance = np.maximum(self.squares - self.rows * self.means**2, 0.0) + 1
        errors: Vector = np.sqrt(variance / (self.rows + 1) / self.rows)
        return errors

    def rates_of(self, column: int) -> tuple[float, float]:
        """Return the mean probability and the share of a class; for -1, mean confidence and accuracy."""
        if column < 0:
            return self.confidence / self.rows, self.accuracy
        return float(self.probabilities[column]) / self.rows, float(self.labels[column]) / self.rows

    def gap_of(self, i: int) -> Estimate:
        """Return prediction minus observation, which is the mean of residual i negated, with an interval."""
        gap, half = -float(self.means[i]), QUANTILE * float(self.errors[i])
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
    at_fit: Floats | None = None,
) -> LabelledSums:
    """Return the sums of rows, each of which counts as a share of one, by default as one.

    With groups, squares and bets are computed from the residuals of groups. `at_fit` are the probabilities
    before the calibrator was adapted.
    """
    share = np.ones(len(labels)) if share is None else share
    n_classes, class_groups = len(limits.class_groups), limits.class_groups
    if limits.of_positions:
        class_groups = np.zeros(probs.shape[1], np.intp)
    at_fit, one_hot = probs if at_fit is None else at_fit, np.eye(class_groups.max() + 1)[class_groups]
    of_groups = None if groups is None else np.zeros((groups.max() + 1, len(limits.columns)))
    parts = []
    for block in _blocks(probs):
        p, y, one = probs[block], labels[block], share[block]
        gap, of_columns = np.split(residuals(p, y), [1], axis=1)
        each = np.hstack([gap, _by_class(of_columns, n_classes)])[:, 1 + limits.columns]
        score, information = _score(p, y, one_hot, one)
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
                by_label=sums_by_label(at_fit[block], y, one_hot, one),
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


def _score(probs: Floats, labels: Indices, one_hot: Matrix, share: Vector) -> tuple[Vector, Matrix]:
    """Return the score and the information of (log beta, b).

    Smaller probabilities count as `MIN_PROBABILITY` in the logarithm: the score keeps mean 0, and one label
    of an impossible class does not dominate.
    """
    at, p = np.arange(len(labels)), probs.astype(np.float64)
    log_p = np.log(np.maximum(p, MIN_PROBABILITY))
    mean = np.einsum("ij,ij->i", p, log_p)
    spread = share[:, None] * p * (log_p - mean[:, None])
    in_groups = p @ one_hot
    score = np.concatenate([[share @ (log_p[at, labels] - mean)], share @ (one_hot[labels] - in_groups)])
    own = np.sum(spread * log_p)
    cross = spread.sum(axis=0) @ one_hot
    within = np.diag(share @ in_groups) - in_groups.T @ (share[:, None] * in_groups)
    return score, np.block([[np.array([[own]]), cross[None, :]], [cross[:, None], within]])
