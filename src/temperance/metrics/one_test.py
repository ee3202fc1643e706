"""The one test of calibration: are classes as frequent as predicted, and predictions as extreme as labels.

Each of the two questions is a sum over rows, T = sum_i t_i(y_i), whose values t_i(k) the probabilities fix.
If these hold, T has the known cumulant function

    K(s) = sum_i log sum_k p_ik exp(s t_i(k))

so that nothing is estimated, and the tail of T is computed by the saddlepoint approximation, not assumed to
be normal. The parts, with w the weights:

    level, two classes    t_i(y) = w_i y: the number of positives
    spread, two classes   t_i(y) = w_i y (x_i - m), x = logit p, m = sum w^2 p (1 - p) x / sum w^2 p (1 - p)
    largest, K classes    the number of each class; of m of them, the smallest p-value counts as 1 - (1 - p)^m
    joint, K classes      r' V^+ r, chi-squared: r the residuals of the classes, V their covariance. A class
                          whose sum of p (1 - p) is below 5, or that is not among the 31 with the largest,
                          shares a column with the others
    spread, K classes     t_i(k) = w_i (l_ik - sum_j p_ij l_ij - g_k + sum_j p_ij g_j), l = log p, g = V^+ c,
                          c the covariance of the first part with the numbers of the classes

The level of K classes has the p-value min(1, 2 min(largest, joint)), and all is

    p = 1 - (1 - min(p_level, p_spread))^2

It is the score test of softmax(beta log p + b) at beta = 1, b = 0, in two uncorrelated parts, each of which
names what is wrong. For two classes p does not depend on which of them is called positive.

The upper tail, with k1(s) = T the saddlepoint, w = sign(s) sqrt(2 (s T - K)) and u = s sqrt(K''), is

    P = 1 - Phi(w) + phi(w) (1/u - 1/w)

(Lugannani and Rice, 1980). Counts without weights have u = (1 - exp(-s)) sqrt(K'') and a mid-p value.
Two-sided is twice the smaller tail. With groups, a p-value becomes |z|, which is divided by the square root
of the design effect and looked up in Student's t.

References
----------
.. [1] Lugannani and Rice (1980). Saddle point approximation for the distribution of the sum of independent
   random variables. doi:10.2307/1426607
.. [2] Rao and Scott (1984). On chi-squared tests for multiway contingency tables with cell proportions
   estimated from survey data. doi:10.1214/aos/1176346391
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from temperance.core.arrays import Floats, Indices, Matrix, Vector
from temperance.core.blocks import block_rows, row_slices
from temperance.metrics.calibration_tests import MIN_DISTANCE
from temperance.metrics.predictions import Predictions, cached_slices

MIN_PROBABILITY = 1e-8  # whose logarithm enters the spread of several classes
MIN_INFORMATION = 5.0  # sum of p (1 - p) of a class that has a column of its own
MAX_COLUMNS = 32
MAX_TAILS = 8  # classes whose tail is computed: those with the largest |z|
_SYMMETRIC = 0.02  # a smaller skewness, within 8 standard deviations, is as good as none
_MAX_NORMAL = 8.0
_CERTAIN = 1e-14  # a smaller variance is rounding
_SINGULAR = 1e-10  # a smaller eigenvalue, relative to the largest, counts as 0
_SMALLEST = 1e-300  # p-value whose normal quantile is taken


@dataclass(frozen=True)
class OneTest:
    """The p-values of the one test.

    Attributes
    ----------
    p_value : float
        Of both questions together; 0 if a label has probability 0.
    level_p, spread_p : float
        Of each; nan if the rows cannot show it, as the spread if all probabilities are equal.
    largest_p : float
        Of more than two classes: of the class that is furthest from its predicted frequency, for all of them.
    column : int
        That class; of two, the positive one.
    too_extreme : bool
        The direction of the spread: whether labels have lower probabilities than predictions promise.
    impossible : int
        How many labels have probability 0.
    """

    p_value: float
    level_p: float
    spread_p: float
    largest_p: float
    column: int
    too_extreme: bool
    impossible: int


@dataclass(frozen=True)
class Design:
    """How many times the variance of independent rows a sum has, and from how many groups this is known."""

    effect: float = 1.0
    freedom: float = np.inf

    @classmethod
    def of(cls, moves: Vector, groups: Indices | None) -> Self:
        """Return the design effect of a sum to which the rows add `moves`."""
        if groups is None:
            return cls()
        sums = np.bincount(groups, moves)
        n_groups, squares = int(groups.max()) + 1, float(moves @ moves)
        if n_groups < 2:
            return cls(np.inf)
        effect = float(sums @ sums) / squares * n_groups / (n_groups - 1) if squares > 0 else 1.0
        return cls(max(1.0, effect), n_groups - 1.0)

    def widened(self, p: float) -> float:
        """Return a two-sided p-value of independent rows as one of rows in groups."""
        from scipy.special import ndtr, ndtri, stdtr

        if not np.isfinite(self.effect):
            return np.nan  # a single group shows nothing
        if self.effect == 1 and np.isinf(self.freedom):
            return p
        z = float(ndtri(max(p, _SMALLEST) / 2)) / np.sqrt(self.effect)
        return float(2 * (ndtr(z) if np.isinf(self.freedom) else stdtr(self.freedom, z)))


Parts = Callable[[], Iterator[tuple[Matrix, Matrix]]]
"""Blocks of rows, classes first: the probability of each label, and its value, whose mean in a row is 0."""


@dataclass(frozen=True, eq=False)
class _Sum:
    """A sum of one value per row, which depends on the label, minus its mean."""

    parts: Parts
    value: float
    counts: bool = False
    """Whether values are 0 or 1, before centring."""

    @cached_property
    def moments(self) -> tuple[float, float]:
        """The variance and the third moment."""
        variance = cubes = 0.0
        for p, t in self.parts():
            squares = p * t**2
            variance += float(squares.sum())
            cubes += float(np.vdot(squares, t))
        return variance, cubes

    @property
    def z(self) -> float:
        """The sum in units of its standard deviation."""
        return self.value / float(np.sqrt(self.moments[0]))

    def p_value(self) -> float:
        """Return the two-sided p-value; nan if the sum does not vary."""
        from scipy.special import ndtr

        variance, cubes = self.moments
        if variance <= _CERTAIN:
            return np.nan if abs(self.value) < 1e-7 else 0.0
        z = self.z
        is_symmetric = abs(cubes) < _SYMMETRIC * variance**1.5 and abs(z) < _MAX_NORMAL
        if is_symmetric or abs(z) < 0.05:
            return float(2 * ndtr(-abs(z)))
        sign = 1.0 if self.value > 0 else -1.0
        if self.counts:  # mid-p
            tail = (self._tail(sign, abs(self.value)) + self._tail(sign, abs(self.value) + 1)) / 2
        else:
            tail = self._tail(sign, abs(self.value))
        return min(1.0, 2 * tail)

    def _tail(self, sign: float, x: float) -> float:
        """Return the probability that sign times the sum is at least x > 0."""
        from scipy.special import ndtr

        deviation = float(np.sqrt(self.moments[0]))
        largest, log_chance = self._end(sign)
        if x > largest + 1e-9 * deviation:
            return 0.0
        if x > largest - 1e-6 * deviation:
            return float(np.exp(log_chance))
        s, low, high = x / deviation**2, 0.0, np.inf
        for _ in range(60):
            k0, k1, k2 = self._cumulants(sign, s)
            if abs(k1 - x) < 1e-7 * deviation:
                break
            low, high = (s, high) if k1 < x else (low, s)
            s += (x - k1) / max(k2, _SMALLEST)
            if not low < s < high:
                s = (low + high) / 2 if np.isfinite(high) else 2 * low
        w = float(np.sqrt(max(2 * (s * x - k0), 0.0)))
        u = float(-np.expm1(-s) if self.counts else s) * float(np.sqrt(k2))
        if w < 1e-3:
            return 0.5
        density = np.exp(-(w**2) / 2) / np.sqrt(2 * np.pi)
        return float(np.clip(ndtr(-w) + density * (1 / u - 1 / w), 0.0, 1.0))

    def _cumulants(self, sign: float, s: float) -> tuple[float, float, float]:
        """Return the cumulant function at s, and its two derivatives."""
        k0 = k1 = k2 = 0.0
        for p, t in self.parts():
            tilted = (sign * s) * t
            tilted[p == 0] = -np.inf
            most = tilted.max(axis=0)
            tilted -= most
            np.exp(tilted, out=tilted)
            tilted *= p
            total = tilted.sum(axis=0)
            tilted /= total
            k0 += float(np.log(total).sum() + most.sum())
            tilted *= t
            means = tilted.sum(axis=0)
            k1 += float(means.sum())
            k2 += float(np.vdot(tilted, t) - means @ means)
        return k0, sign * k1, k2

    def _end(self, sign: float) -> tuple[float, float]:
        """Return the largest value of sign times the sum, and the logarithm of its probability."""
        largest = log_chance = 0.0
        for p, t in self.parts():
            values = np.where(p > 0, sign * t, -np.inf)
            most = values.max(axis=0)
            largest += float(most.sum())
            log_chance += float(np.log(np.sum(p, axis=0, where=values > most - 1e-12)).sum())
        return largest, log_chance


def one_test(rows: Predictions, design: Design | None = None) -> OneTest:
    """Return the one test of rows; `design` replaces the design effects that groups would give.

    Examples
    --------
    >>> from temperance.metrics.predictions import check_rows
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=500)
    >>> found = one_test(check_rows(p, rng.uniform(size=500) < p**2))
    >>> found.level_p < 0.001, round(found.spread_p, 1)
    (True, 0.9)
    """
    weight = rows.weight / rows.weight.mean()
    n_classes = rows.probs.shape[1]
    if n_classes == 2 and not rows.positions:
        level_p, (spread_p, extreme) = _of_two(rows, weight, design)
        largest_p, column = level_p, 1
    elif rows.positions:  # whose columns have no frequencies
        level_p = largest_p = np.nan
        column, (spread_p, extreme) = 0, _Spread.of(rows, weight, None).p_value(design)
    else:
        largest_p, column, variance = _largest(rows, weight, design)
        spread = _Spread.of(rows, weight, variance)
        level_p = min(1.0, 2 * float(np.nanmin([largest_p, spread.joint_p(design), 1.0])))
        spread_p, extreme = spread.p_value(design)
    impossible = int(np.count_nonzero(rows.of_label == 0))
    p = 0.0 if impossible else together(level_p, spread_p)
    return OneTest(p, level_p, spread_p, largest_p, column, extreme, impossible)


def together(*p_values: float) -> float:
    """Return the p-value of the smallest of independent ones; nan ones are absent, and 1 is if all are.

    Examples
    --------
    >>> round(together(0.02, 0.5), 4), together(0.02, np.nan), together(np.nan)
    (0.0396, 0.02, 1.0)
    """
    known = [p for p in p_values if p == p]
    return float(-np.expm1(len(known) * np.log1p(-min(min(known), 1 - 1e-16)))) if known else 1.0


def count_p(rows: Predictions, column: int, weight: Vector, design: Design | None = None) -> float:
    """Return the p-value of the number of labels of one class."""
    return _class_sum(rows, column, weight)[1](design)


def level_statistic(rows: Predictions, design: Design) -> tuple[float, float]:
    """Return chi-squared of the numbers of all classes together, and its degrees of freedom."""
    from scipy.special import ndtri

    weight = rows.weight / rows.weight.mean()
    if rows.probs.shape[1] > 2:
        return _Spread.of(rows, weight, weight**2 @ (rows.probs * (1 - rows.probs))).joint(design)
    p = count_p(rows, 1, weight, design)
    return (0.0 if np.isnan(p) else float(ndtri(max(p, _SMALLEST) / 2)) ** 2), 1.0


def _class_sum(
    rows: Predictions, column: int, weight: Vector
) -> tuple[_Sum, Callable[[Design | None], float]]:
    p = rows.probs[:, column].astype(np.float64)
    # Of two classes, the other probability has the digits that 1 - p would lose.
    q = rows.probs[:, 1 - column].astype(np.float64) if rows.probs.shape[1] == 2 else 1 - p
    chance = np.stack([q, p]) / (p + q)
    residual = weight * ((rows.labels == column) - chance[1])
    values = np.stack([-weight * chance[1], weight * chance[0]])
    found = _Sum(lambda: iter([(chance, values)]), float(residual.sum()), bool(np.ptp(weight) == 0))

    def p_value(design: Design | None) -> float:
        return (design or Design.of(residual, rows.groups)).widened(found.p_value())

    return found, p_value


def _of_two(rows: Predictions, weight: Vector, design: Design | None) -> tuple[float, tuple[float, bool]]:
    """Return the p-value of the level of two classes, and of the spread with its direction."""
    level_p = count_p(rows, 1, weight, design)
    chance = rows.probs.T.astype(np.float64)
    chance /= chance.sum(axis=0)
    x = log_odds(rows)
    information = weight**2 * chance[0] * chance[1]
    total = float(information.sum())
    if total <= 0:
        return level_p, (np.nan, False)
    x = x - float(information @ x) / total
    if float(information @ x**2) <= 1e-9 * total:
        return level_p, (np.nan, False)
    x *= weight
    residual = x * (rows.labels - chance[1])
    values = np.stack([-x * chance[1], x * chance[0]])
    spread = _Sum(lambda: iter([(chance, values)]), float(residual.sum()))
    p = (design or Design.of(residual, rows.groups)).widened(spread.p_value())
    return level_p, (p, spread.value < 0)


def log_odds(rows: Predictions) -> Vector:
    """Return the log-odds of the second of two classes, of probabilities that are neither 0 nor 1."""
    negative, positive = np.maximum(rows.probs.T.astype(np.float64), MIN_DISTANCE)
    odds: Vector = np.log(positive / negative)
    return odds


def _largest(rows: Predictions, weight: Vector, design: Design | None) -> tuple[float, int, Vector]:
    """Return the p-value of the class furthest from its frequency as one of all, it, and all variances."""
    n_classes = rows.probs.shape[1]
    expected, information, variance = np.zeros((3, n_classes))
    for block in cached_slices(*rows.probs.shape):
        p = rows.probs[block].astype(np.float64, copy=False)
        each = p * (1 - p)
        expected += weight[block] @ p
        information += weight[block] @ each
        variance += weight[block] ** 2 @ each
    found = np.bincount(rows.labels, weight, n_classes)
    z = np.abs(found - expected) / np.sqrt(np.maximum(variance, 1e-12))
    furthest = np.argsort(-z, kind="stable")[:MAX_TAILS].tolist()
    p_values = [count_p(rows, column, weight, design) for column in furthest]
    if not np.isfinite(p_values).any():
        return np.nan, furthest[0], variance
    best = int(np.nanargmin(p_values))
    times = max(2, int(np.count_nonzero(information > 1e-6)))
    of_all = float(-np.expm1(times * np.log1p(-min(p_values[best], 1 - 1e-16))))
    return of_all, furthest[best], variance


@dataclass(frozen=True, eq=False)
class _Spread:
    """The residuals of columns of classes, and the spread of predictions without what these explain."""

    rows: Predictions
    weight: Vector
    column: Indices
    """Of each class: the most informative have one each, all others share the last."""
    residuals: Matrix
    """Of each row, by column."""
    inverse: Matrix
    """Pseudo-inverse of the covariance of their sums."""
    slope: Vector
    """What a residual of each column explains of the spread."""
    can_be_joint: bool

    @classmethod
    def of(cls, rows: Predictions, weight: Vector, variance: Vector | None) -> Self:
        """Give each class of enough variance a column of its own; without variances, all share one."""
        n_rows, n_classes = rows.probs.shape
        own, column = 0, np.zeros(n_classes, np.intp)
        slices = row_slices(n_rows, block_rows(n_classes, 4 * 8))
        if variance is not None:
            own = int(np.count_nonzero(variance * n_rows / (weight @ weight) >= MIN_INFORMATION))
            order = np.argsort(-variance, kind="stable")
            column[order] = np.minimum(np.arange(n_classes), min(max(own, 1), MAX_COLUMNS - 1))
        size = int(column.max()) + 1
        residuals, covariance, with_spread = np.empty((n_rows, size)), np.zeros((size, size)), np.zeros(size)
        one_hot = np.eye(size)[column]
        for block in slices:
            p, centred = _centred_logs(rows.probs[block])
            in_columns = p @ one_hot
            squares = weight[block] ** 2
            covariance += np.diag(squares @ in_columns) - in_columns.T @ (squares[:, None] * in_columns)
            with_spread += squares @ ((p * centred) @ one_hot)
            residuals[block] = -in_columns
            residuals[block][np.arange(len(p)), column[rows.labels[block]]] += 1
        residuals *= weight[:, None]
        inverse = np.asarray(np.linalg.pinv(covariance, rcond=_SINGULAR, hermitian=True), np.float64)
        return cls(rows, weight, column, residuals, inverse, inverse @ with_spread, own >= 2)

    def joint(self, design: Design | None) -> tuple[float, float]:
        """Return chi-squared of all columns, and its degrees of freedom: 0 where it cannot be computed."""
        if not self.can_be_joint:
            return 0.0, 0.0
        return quadratic(self.residuals, self.inverse, self.rows.groups, design)

    def joint_p(self, design: Design | None) -> float:
        """Return the p-value of all columns together; nan if fewer than two are informative."""
        from scipy.special import chdtrc

        statistic, freedom = self.joint(design)
        return float(chdtrc(freedom, statistic)) if freedom > 0 else np.nan

    def p_value(self, design: Design | None) -> tuple[float, bool]:
        """Return the p-value of the spread, and whether predictions are too extreme."""
        rows, n_classes = self.rows, self.rows.probs.shape[1]
        slices = row_slices(len(rows.labels), block_rows(n_classes, 4 * 8))

        def parts() -> Iterator[tuple[Matrix, Matrix]]:
            for block in slices:
                p, values = _centred_logs(rows.probs[block])
                own = self.slope[self.column]
                values -= own - (p @ own)[:, None]
                values *= self.weight[block, None]
                values[p == 0] = 0.0
                yield p.T, values.T

        moves = np.concatenate(
            [
                t[rows.labels[block], np.arange(t.shape[1])]
                for block, (_, t) in zip(slices, parts(), strict=True)
            ]
        )
        found = _Sum(parts, float(moves.sum()))
        return (design or Design.of(moves, rows.groups)).widened(found.p_value()), found.value < 0


def quadratic(
    residuals: Matrix, inverse: Matrix, groups: Indices | None, design: Design | None
) -> tuple[float, float]:
    """Return the squared length of the sum of residuals in a covariance, and its degrees of freedom.

    With groups, it is divided by the factor of Rao and Scott.
    """
    total = residuals.sum(axis=0)
    statistic, freedom = float(total @ inverse @ total), float(np.linalg.matrix_rank(inverse, hermitian=True))
    if design is not None:
        return statistic / design.effect, freedom
    if groups is None or freedom == 0:
        return statistic, freedom
    sums = np.column_stack([np.bincount(groups, column) for column in residuals.T])
    effects = inverse @ (sums.T @ sums)
    first, second = float(np.trace(effects)), float(np.sum(effects * effects.T))
    return statistic / max(second / first, 1.0), min(first**2 / second, freedom)


def _centred_logs(probs: Floats) -> tuple[Matrix, Matrix]:
    """Return probabilities that sum to 1, and their logarithms minus the mean of each row."""
    p = np.array(probs, np.float64)
    p /= p.sum(axis=1, keepdims=True)
    logs = np.log(np.maximum(p, MIN_PROBABILITY))
    logs -= np.einsum("ij,ij->i", p, logs)[:, None]
    return p, logs
