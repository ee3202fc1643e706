"""Design effects of groups of rows, and standard errors by group.

With s_i the derivative of the loss of row i by the parameters, minus its mean, and w_i its weight, the sum of
the scores has the variance R below if the N rows are independent, and S if they form G independent groups:

    R = sum_i w_i s_i s_i'            S = sum_g t_g t_g',     t_g = sum_{i in g} w_i s_i

The design effect of a block of parameters is the ratio of S to R (Kish 1965): N rows are worth N / effect
independent rows. It is a mean over the parameters of the block, weighted by their information relative to a
prior of precision q:

    ratio = sum_j a_j S_jj / sum_j a_j R_jj  (at least 1),      a_j = 1 / (R_jj / N + q_j / G)
    effect = ratio^(1 - f) (N / G)^f,      f = 2 / (G + 1)

N / G is the effect of groups that are worth one row each. Few groups cannot show that they are worth more.
Groups of one row have exactly the effect 1, and rows that are repeated k times have exactly the effect k.
Estimates without a prior keep their value; their covariance is H^-1 S H^-1 G / (G - 1), H the information
matrix (Liang and Zeger 1986).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import Matrix, Vector
from temperance.core.objective import Objective, RowObjective
from temperance.core.solution import Solution

SCORES = 1 << 20  # numbers held at a time
ROUNDING = 1e-12  # relative error of the mean of equal numbers
# With more groups than this, we leave out this many sets of groups in turn, each a small part of the rows.
MAX_LEFT_OUT = 200


def number_groups(groups: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return group numbers in the order in which the groups begin, independent of their ids.

    Examples
    --------
    >>> number_groups(np.array([7, 7, 3, 7, 5])).tolist()
    [0, 0, 1, 0, 2]
    """
    _, first, codes = np.unique(groups, return_index=True, return_inverse=True)
    number = np.empty(len(first), np.intp)
    number[np.argsort(first)] = np.arange(len(first))
    return number[codes]


def parts_to_leave_out(groups: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the part of each row: its group or, with many groups, one of `MAX_LEFT_OUT` sets of groups."""
    return groups % MAX_LEFT_OUT if groups.max() >= MAX_LEFT_OUT else groups


def rows_by_group(groups: NDArray[np.intp]) -> list[NDArray[np.intp]]:
    """Return the rows of each group."""
    order = np.argsort(groups, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)


def effective_rows(values: Vector, weights: Vector, groups: NDArray[np.intp] | None = None) -> float:
    """Return how many independent rows of equal weight would determine the mean of `values` equally well.

    Without groups it depends only on the weights: (sum of w)^2 / sum of w^2.

    Examples
    --------
    >>> values, ones = np.array([1.0, 0.0, 1.0, 1.0, 0.0, 0.0]), np.ones(18)
    >>> effective_rows(np.repeat(values, 3), ones, np.repeat(np.arange(6), 3))
    6.0
    >>> effective_rows(np.repeat(values, 3), ones)
    18.0
    """
    weights = weights / weights.max()  # now squares neither overflow nor vanish
    total, of_weights = float(weights.sum()), float(weights.sum() ** 2 / (weights**2).sum())
    off = values - weights @ values / total
    if groups is None or np.abs(off).max() <= ROUNDING * np.abs(values).max():  # all values are the same
        return of_weights
    by_group = float(np.sum(np.bincount(groups, weights * off) ** 2))
    return min(of_weights, total * float(weights @ off**2) / by_group) if by_group > 0 else of_weights


def design_effects(objective: Objective, theta: Vector, precision: Vector, sizes: list[int]) -> Vector:
    """Return the design effect of each block of parameters at theta: 1 without groups.

    The blocks have `sizes` parameters; `precision` has the precision of each parameter's prior.
    """
    if objective.groups is None:
        return np.ones(len(sizes))
    assert isinstance(objective, RowObjective)  # rows in many parts have no groups
    by_group, by_row = np.zeros((2, len(theta)))
    for sums, squares in _sums_by_group(objective, theta):
        by_group += np.einsum("gj,gj->j", sums, sums)
        by_row += squares
    n_groups = len(np.unique(objective.groups))
    information = by_row / objective.total_weight + precision / n_groups
    a = np.divide(1.0, information, out=np.zeros_like(information), where=information > 0)
    ends = np.cumsum(sizes)[:-1]
    of_groups, of_rows = ([part.sum() for part in np.split(a * x, ends)] for x in (by_group, by_row))
    pairs = zip(of_groups, of_rows, strict=True)
    ratios = np.array([max(in_groups / rows, 1.0) if rows > 0 else 1.0 for in_groups, rows in pairs])
    few = 2 / (n_groups + 1)
    return np.maximum(ratios ** (1 - few) * (objective.total_weight / n_groups) ** few, 1.0)


def with_group_errors(objective: Objective, solution: Solution) -> Solution:
    """Return the solution with a covariance by groups, if the rows of the objective have groups."""
    inverse = solution.covariance
    if inverse is None or objective.groups is None:
        return solution
    assert isinstance(objective, RowObjective)  # rows in many parts have no groups
    n_groups, variance = len(np.unique(objective.groups)), np.zeros_like(inverse)
    for sums, _ in _sums_by_group(objective, solution.parameters):
        variance += sums.T @ sums
    return replace(solution, covariance=inverse @ variance @ inverse * (n_groups / (n_groups - 1)))


def _sums_by_group(objective: RowObjective, theta: Vector) -> Iterator[tuple[Matrix, Vector]]:
    """Yield the sums t of some groups, and the diagonal of R of their rows, until all groups are done."""
    assert objective.groups is not None
    mean = objective.evaluate(theta, with_fisher=False).gradient
    order = np.argsort(objective.groups, kind="stable")
    groups = objective.groups[order]
    size = max(1, SCORES // (len(theta) + objective.rows.n_classes))
    held = np.zeros((0, len(theta)))  # scores of a group that continues in the next rows
    for i in range(0, len(order), size):
        some = objective.take(order[i : i + size])
        scores = some.scores(theta) - mean
        weighted = scores if some.weights is None else scores * some.weights[:, None]
        here = groups[i : i + size]
        starts = np.flatnonzero(np.diff(here, prepend=-1))
        sums = np.add.reduceat(weighted, starts, axis=0)
        if len(held) and groups[i - 1] == here[0]:
            sums[0] += held[0]
        elif len(held):
            yield held, np.zeros(len(theta))
        held = sums[-1:]
        yield sums[:-1], np.einsum("ij,ij->j", weighted, scores)
    yield held, np.zeros(len(theta))
