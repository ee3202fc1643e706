"""The best single temperature: what TS is, and where every other method starts and stays near.

A function T(z) may drift to 0 or to infinity on rows that happen to be all right or all wrong; such a T is
a matter of chance, and on the next row it is a disaster. All methods therefore keep T(z) within a factor
of `SPREAD` of the best single temperature. On data that determine T(z) the limits do not bind, so for many
rows the best single temperature of some thousand of them is good enough to set them by.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from temperance.core.fisher import Solution, solve
from temperance.core.links import TEMPERATURE_MAX, TEMPERATURE_MIN, Log
from temperance.core.objective import LogLikelihood, Prior
from temperance.core.predictors import Linear
from temperance.core.rows import Rows

__all__ = ["SPREAD", "Anchor", "find_anchor", "limits_around", "warn_if_all_wrong", "warn_of"]

# Rows that give a first guess of the scale, and a start for methods that refine it.
SCALE_ROWS, START_ROWS = 512, 4096
TELLING_ROWS = 10

# Chosen on the public tasks among 4, 10, 20, 50 and 1000: with all rows, 10 changes nothing for a network;
# with 50 or 200 rows it divides the loss of the methods that diverge by up to a thousand.
SPREAD = 10.0

Vector = NDArray[np.float64]

_BOUNDS = np.log([TEMPERATURE_MIN]), np.log([TEMPERATURE_MAX])


@dataclass(frozen=True)
class Anchor:
    """The best single temperature of some rows, and what kept it from being a maximum of the likelihood.

    `trouble` is None, or the sentence that tells the user why the prior had to decide.
    """

    temperature: float
    solution: Solution
    trouble: str | None


def find_anchor(rows: Rows, weights: Vector | None, *, exact: bool) -> Anchor:
    """Fit one temperature: to all rows if `exact`, else to a subsample where that tells enough."""
    step = rows.n_rows // START_ROWS
    if not exact and step >= 4:
        some, some_weights = rows.every(step), None if weights is None else weights[::step]
        if _tells(some, some_weights):
            rows, weights = some, some_weights
    objective = LogLikelihood(rows, _constant(rows), Log(), weights)
    start = np.array([np.log(_typical_gap(rows))])
    solution = solve(objective, start, rows.n_rows, bounds=_BOUNDS)
    trouble = _trouble(rows, weights, solution)
    if trouble is not None:
        # The likelihood has no maximum: one pseudo-observation, log T ~ N(0, 1), gives it one.
        prior = Prior(np.zeros(1), np.full((1, 1), 1 / objective.total_weight))
        objective = LogLikelihood(rows, _constant(rows), Log(), weights, prior)
        solution = solve(objective, np.zeros(1), rows.n_rows, bounds=_BOUNDS)
    return Anchor(float(Log().temperature(solution.parameters)[0]), solution, trouble)


def _trouble(rows: Rows, weights: Vector | None, solution: Solution) -> str | None:
    """Say why the labels cannot determine a temperature, if so."""
    if _right(rows, weights).all():
        return (
            f"All {rows.n_rows} rows are classified right (no class has a larger logit than the label's), so "
            "they cannot tell how much confidence is too much"
        )
    if solution.parameters[0] >= _BOUNDS[1][0]:
        chance = "The labels agree with the logits no better than chance"
        wrong = f"All {rows.n_rows} rows are classified wrong"
        return f"{chance if _right(rows, weights).any() else wrong}: check that labels and columns match"
    return None


def _right(rows: Rows, weights: Vector | None) -> NDArray[np.bool_]:
    """Say of each row that counts whether no class has a larger logit than its label."""
    right: NDArray[np.bool_] = rows.label_gap == 0
    return right if weights is None else right[weights > 0]


def warn_of(anchor: Anchor, rows: Rows, weights: Vector | None) -> None:
    """Tell the user what is wrong with the labels, if anything."""
    if anchor.trouble is not None:
        message = (
            f"{anchor.trouble}. One temperature for all rows, {anchor.temperature:.4g}, held near 1 by a "
            "weak prior, is used. Add labelled rows until some are right and some are wrong."
        )
    elif not _right(rows, weights).any():
        message = (
            f"All {rows.n_rows} rows are classified wrong. The temperature {anchor.temperature:.4g} fits "
            "them, but check that labels and columns match."
        )
    elif anchor.temperature <= TEMPERATURE_MIN * (1 + 1e-9):
        message = f"The temperature is at its lower limit, {TEMPERATURE_MIN:g}: scale the logits up."
    else:
        return
    warnings.warn(message, UserWarning, stacklevel=4)


def warn_if_all_wrong(rows: Rows, weights: Vector | None) -> None:
    """Tell the user of a method with a prior, which fits rows all right or all wrong, of the latter."""
    if not _right(rows, weights).any():
        message = f"All {rows.n_rows} rows are classified wrong: check that labels and columns match."
        warnings.warn(message, UserWarning, stacklevel=4)


def _tells(rows: Rows, weights: Vector | None) -> bool:
    """Say whether enough rows are right, and enough wrong, for a temperature of some precision."""
    right = _right(rows, weights)
    return bool(min(right.sum(), (~right).sum()) >= TELLING_ROWS)


def _constant(rows: Rows) -> Linear:
    return Linear(np.ones((rows.n_rows, 1)))


def _typical_gap(rows: Rows) -> float:
    """Return the mean gap between the top logit and the others: at this T no row is saturated."""
    sample = rows.every(max(1, rows.n_rows // SCALE_ROWS))
    gap = -float(sample.moments(1e-6).mu.mean())
    return float(np.clip(gap, 1e-4, 1e4)) if gap > 0 else 1.0


def limits_around(temperature: float) -> tuple[float, float]:
    """Return the range that T(z) is kept in."""
    return temperature / SPREAD, temperature * SPREAD
