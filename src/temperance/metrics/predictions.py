"""What each row contributes, computed once and shared by all metrics.

With p the probabilities of a row, y its label, w its weight and j = argmax_k p_k (the first, if tied):

    confidence  c = p_j             nll    -log p_y
    correct     h = 1[j = y]        Brier  sum_k (p_k - 1[k = y])^2 = sum_k p_k^2 - 2 p_y + 1

A metric is a function of these; its mean over rows is sum_i w_i x_i / sum_i w_i. Only the area under the
risk-coverage curve depends on the order of the rows by confidence: answer the rows whose confidence is at
least t, then

    coverage(t)  = fraction of rows answered
    risk(t)      = error rate among them
    area         = mean over rows i of risk(c_i) = area under risk against coverage

Intervals need one error, even if no row is one (see `metrics.intervals`). Each row gets a pseudo-label: a
class k other than j, in proportion to sqrt(p_k). Its place among these is a term of an additive sequence,
which is as even as chance, and the same on every call. The chance of the row is w sum_k sqrt(p_k) over the
same classes, up to a factor. A pseudo-success, with the label j, has the chance w sqrt(p_j).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import Vector
from temperance.core.blocks import block_rows, row_slices
from temperance.errors import rows_at
from temperance.inputs.containers import (
    Beside,
    as_numpy,
    item_size,
    joined_batches,
    numbers_of,
    open_logits,
)
from temperance.inputs.copies import find_copies
from temperance.inputs.groups import MIN_GROUPS, check_groups
from temperance.inputs.labels import check_labels
from temperance.inputs.names import Names, check_class, choose_columns, names_of
from temperance.inputs.probabilities import check_probabilities
from temperance.inputs.validation import check_number
from temperance.metrics.intervals import Estimate, Units, mean_interval

_GOLDEN_RATIO = (5**0.5 - 1) / 2


@dataclass(frozen=True, eq=False)
class Predictions:
    """Checked input: (N, K) probabilities in the caller's dtype, labels, positive weights, groups of rows."""

    probs: NDArray[np.floating[Any]]
    labels: NDArray[np.intp]
    weight: Vector
    groups: NDArray[np.intp] | None = None
    by: NDArray[Any] | None = None
    """The values by which rows are scored separately."""
    names: Names | None = None
    """The classes in the order of the columns."""
    positive: int | None = None
    """The class whose probability people act on; with two classes and None, the second."""
    positions: bool = False
    """Whether columns are places of answers, without a meaning, and not classes."""

    def take(self, rows: NDArray[Any]) -> Predictions:
        """Return some of the rows."""
        groups, by = (None if one is None else one[rows] for one in (self.groups, self.by))
        arrays = {"probs": self.probs[rows], "labels": self.labels[rows], "weight": self.weight[rows]}
        return replace(self, groups=groups, by=by, **arrays)

    @property
    def event(self) -> int | None:
        """The class whose probability is evaluated; None if it is the confidence in the top class."""
        return judged_class(self.probs.shape[1], self.positive, positions=self.positions)

    def of_class(self, column: int) -> Predictions:
        """Return the probabilities of a class and of all others, whose second column is the class."""
        probs = self.probs
        if probs.shape[1] != 2:
            probs = np.stack([1 - probs[:, column], probs[:, column]], axis=1)
        elif column == 0:
            probs = probs[:, ::-1]
        labels = (self.labels == column).astype(np.intp)
        return Predictions(probs, labels, self.weight, self.groups, self.by)

    @cached_property
    def total(self) -> float:
        """The sum of the weights; without weights, the number of rows."""
        return float(self.weight.sum())

    @cached_property
    def top(self) -> NDArray[np.intp]:
        """The class of the largest probability."""
        top: NDArray[np.intp] = self.probs.argmax(axis=1)
        return top

    @cached_property
    def confidence(self) -> NDArray[np.floating[Any]]:
        """The largest probability, in the dtype of `probs`: bin edges must be compared in that dtype."""
        return np.take_along_axis(self.probs, self.top[:, None], axis=1)[:, 0]

    @cached_property
    def correct(self) -> Vector:
        """1 where the class of the largest probability is the label, else 0."""
        correct: Vector = (self.top == self.labels).astype(np.float64)
        return correct

    @cached_property
    def residual(self) -> Vector:
        """Correct minus confidence."""
        return self.correct - self.confidence.astype(np.float64)

    @cached_property
    def units(self) -> Units:
        """What is independent among the rows, and how much each moves the mean residual."""
        share = self.weight / self.total
        return Units.of(share * (self.residual - share @ self.residual), share, self.groups)

    @cached_property
    def of_label(self) -> Vector:
        """The probability of the label."""
        chosen = np.take_along_axis(self.probs, self.labels[:, None], axis=1)[:, 0]
        return chosen.astype(np.float64)

    @cached_property
    def nll(self) -> Vector:
        """The negative log of the probability of the label; infinite where that is 0."""
        with np.errstate(divide="ignore"):
            return -np.log(self.of_label)

    @cached_property
    def brier(self) -> Vector:
        """The squared distance from the one-hot label, summed over classes."""
        squares = np.empty(len(self.probs))
        for block in cached_slices(*self.probs.shape):
            part = self.probs[block].astype(np.float64, copy=False)
            squares[block] = np.einsum("ij,ij->i", part, part)
        # Rounding can give -1e-16 if the prediction is certain and correct.
        return np.maximum(squares - 2 * self.of_label + 1, 0)

    @cached_property
    def pseudo_error(self) -> Predictions:
        """The same rows, each with a wrong label, and with the chance of each row for weight."""
        n_rows, n_classes = self.probs.shape
        place = np.arange(1, n_rows + 1) * _GOLDEN_RATIO % 1
        labels, sums = np.empty(n_rows, np.intp), np.empty(n_rows)
        for block in cached_slices(n_rows, n_classes):
            roots = np.sqrt(self.probs[block], dtype=np.float64)
            np.put_along_axis(roots, self.top[block, None], 0.0, axis=1)
            np.cumsum(roots, axis=1, out=roots)
            sums[block] = roots[:, -1]
            labels[block] = (roots <= place[block, None] * roots[:, -1:]).sum(axis=1)
        if not sums.any():  # all predictions are certain
            labels, sums = (self.top + 1) % n_classes, np.ones(n_rows)
        chance = self.weight * sums
        return Predictions(self.probs, np.minimum(labels, n_classes - 1), chance / chance.sum())

    @cached_property
    def class_totals(self) -> Vector:
        """The weighted sum of the probabilities of each class."""
        totals = np.zeros(self.probs.shape[1])
        for block in cached_slices(*self.probs.shape):
            totals += self.weight[block] @ self.probs[block].astype(np.float64, copy=False)
        return totals

    def gap(self, level: float) -> Estimate:
        """Return confidence minus accuracy, with a pseudo-error and a pseudo-success in its interval."""
        said = self.confidence.astype(np.float64)
        chance = self.weight * np.sqrt(said)
        at_both = np.concatenate([said, said - 1])
        pseudo = at_both, np.concatenate([self.pseudo_error.weight, chance / chance.sum()])
        return mean_interval(-self.residual, self.weight, level, -1.0, 1.0, pseudo, self.groups)

    def mean(self, values: Vector) -> float:
        """Return the weighted mean of one value per row."""
        return float(self.weight @ values) / self.total


def risk_curve(rows: Predictions) -> tuple[float, Vector, Vector]:
    """Return the area under the risk-coverage curve, and the influence of each row on it: as it is, if wrong.

    With risk R, coverage and weights in order of decreasing confidence, groups g of tied rows, A_g the weight
    answered up to g and W the total weight, the area is sum_g (A_g - A_(g-1)) R_g / W. Its derivative by the
    weight of row i, times W, is the influence of the row:

        R_(g of i) - area + sum over groups h from that of i on of (A_h - A_(h-1)) (error_i - R_h) / A_h
    """
    order = np.argsort(-rows.confidence, kind="stable")
    ordered, weight = rows.confidence[order], rows.weight[order]
    errors = 1 - rows.correct[order]
    ends = np.append(np.flatnonzero(np.diff(ordered)), len(ordered) - 1)  # of each tied group
    answered, wrong = weight.cumsum()[ends], (weight * errors).cumsum()[ends]
    share, risk = np.diff(answered, prepend=0.0), wrong / answered
    area = float(share @ risk / answered[-1])
    group = np.searchsorted(ends, np.arange(len(ordered)))
    # The sum over each group and all later ones.
    later, later_risk = (part[::-1].cumsum()[::-1] for part in (share / answered, share / answered * risk))
    influence, if_wrong = np.empty((2, len(order)))
    if_wrong[order] = risk[group] - area + later[group] - later_risk[group]
    influence[order] = if_wrong[order] - (1 - errors) * later[group]
    return area, influence, if_wrong


def check_rows(
    probs: Any,
    labels: Any,
    sample_weight: Any = None,
    classes: Names | None = None,
    *,
    dim: int = -1,
    ignore_index: int | None = None,
    groups: Any = None,
    by: Any = None,
    min_groups: int = MIN_GROUPS,
    positive: int | str | None = None,
    positions: bool = False,
    examine: bool = False,
) -> Predictions:
    """Check the input of a metric, and drop rows of weight 0 and rows to be ignored.

    Labels and `positive` can be class names, given as `classes` or as the columns of a data frame. Groups are
    numbered from 0 without gaps; without them, arrays with more axes are grouped along their first axis. Rows
    without groups are examined, if asked for, and copies of a row are a group.
    """
    probs = choose_columns(joined_batches(probs), classes)
    array, opened = as_numpy(numbers_of(probs)), None
    if array.ndim > 2 or dim not in (-1, array.ndim - 1):
        opened = open_logits(array, dim)
        array = np.asarray(opened.values)
    few: dict[str, Any] = {"ignore_index": ignore_index, "min_groups": min_groups}
    beside = Beside.open(opened, len(array), labels, sample_weight, groups, by, **few)
    with rows_at(beside.kept):
        kept_rows = array if beside.kept is None else array[beside.kept]
        array = check_probabilities(kept_rows, precision=item_size(probs))
    if array.dtype.itemsize > 8:  # bin edges are computed in float64
        array = array.astype(np.float64)
    n_rows, n_classes = array.shape
    names = names_of(probs, classes, n_classes)
    with rows_at(beside.kept):
        index = check_labels(beside.labels, n_rows, n_classes, names)
    event = None if positive is None else check_class("positive", positive, names, n_classes)
    weight, together = beside.weights, beside.groups
    if weight is None:
        weight = np.ones(n_rows)
    if together is not None:
        together = check_groups(together, n_rows, at_least=min_groups)
    elif examine:
        together = find_copies(array, index, lambda p: p.max(axis=1))
    return Predictions(array, index, weight, together, beside.by, names, event, positions)


def judged_class(n_classes: int, positive: int | None, *, positions: bool = False) -> int | None:
    """Return the class whose probability people act on; None if it is the confidence in the top class.

    Examples
    --------
    >>> judged_class(2, None), judged_class(2, 0), judged_class(3, None), judged_class(3, 2)
    (1, 0, None, 2)
    """
    if positions:
        return None
    return 1 if positive is None and n_classes == 2 else positive


def check_integer(name: str, value: Any, minimum: int) -> int:
    """Return `value` as an int of at least `minimum`."""
    check_number(name, value, f"of at least {minimum}", lambda v: v >= minimum, whole=True)
    return int(value)


def check_fraction(name: str, value: Any) -> float:
    """Return `value` if it lies strictly between 0 and 1."""
    check_number(name, value, "between 0 and 1", lambda v: 0 < v < 1)
    return float(value)


def cached_slices(n_rows: int, n_columns: int) -> list[slice]:
    """Split rows into slices that fit into the cache, even as two float64 arrays at once."""
    return row_slices(n_rows, block_rows(n_columns, 2 * 8))


def random_folds(
    n_rows: int, folds: int, generator: np.random.Generator, groups: NDArray[np.intp] | None = None
) -> NDArray[np.intp]:
    """Return each row's fold, the same within a group; with fewer rows than folds, each row is a fold."""
    n_units = n_rows if groups is None else int(groups.max()) + 1
    fold: NDArray[np.intp] = generator.permutation(n_units) % min(check_integer("folds", folds, 2), n_units)
    return fold if groups is None else fold[groups]
