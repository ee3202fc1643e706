"""BTS, bin-wise temperature scaling: one temperature per range of the top confidence."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

import numpy as np

from temperance.calibrators.estimator import QUANTILES, Calibrator, estimate, fitted
from temperance.calibrators.single_temperature import fit_single_temperature, limits_around, warn_of
from temperance.core.arrays import Indices, Vector
from temperance.core.design_effect import with_group_errors
from temperance.core.fisher import solve
from temperance.core.logit_rows import LogitRows
from temperance.core.objective import FitData, LogLikelihood
from temperance.core.ops import Array
from temperance.core.predictors import ByClass, Log
from temperance.formulas.bts import BinwiseFormula, bin_of
from temperance.formulas.model import Model
from temperance.inputs.validation import check_number

MAX_BINS = 10_000
TIE = 1e-6
"""Confidences that differ by less than this share a bin: they might differ only by rounding."""


def _just_above(confidence: Array, following: Array | float = 1.0) -> Array:
    """Return an edge between two confidences.

    It is close to the lower one, not midway: if confidences are counts, such as votes of trees, a count that
    did not occur in the fit can lie midway.
    """
    return confidence + np.minimum(2 * TIE, (following - confidence) / 2)


def _bins_of(edges: Vector, rows: LogitRows) -> Indices:
    bins: Indices = bin_of(edges, rows)[:, 0]
    return bins


def _confidence_below(top: float, rows: LogitRows, weights: Vector | None) -> tuple[Vector, Vector | None]:
    confidence = np.exp(rows.log_confidence()[:, 0])
    below = confidence <= top
    return confidence[below], None if weights is None else weights[below]


def _likelihood(edges: Vector, rows: LogitRows, weights: Vector | None) -> LogLikelihood:
    predictor = ByClass(np.empty((rows.n_rows, 0)), _bins_of(edges, rows), len(edges) + 1)
    return LogLikelihood(rows, predictor, Log(), weights)


def _weight_of_bins(edges: Vector, rows: LogitRows, weights: Vector | None) -> tuple[Vector]:
    return (np.bincount(_bins_of(edges, rows), weights, len(edges) + 1).astype(np.float64),)


class BinwiseTemperatureScaling(Calibrator):
    """BTS: a look-up table from the top confidence to a temperature.

    The last bin is (top, 1]; the others hold equal numbers of the calibration rows below `top`. Confidences
    that differ by rounding share a bin: an edge lies up to 2e-6 above the last confidence below it. Every bin
    gets the temperature that maximises the likelihood of its rows, within a factor of 10 of the best single
    temperature; a bin without rows gets 1. It needs thousands of rows to be useful.

    Parameters
    ----------
    bins : int
        Number of bins, the last one included.
    top : float
        Lower edge of the last bin.

    Attributes
    ----------
    edges_ : (bins - 1,) array
        Upper edges of all bins but the last; a confidence equal to an edge belongs below it.
    temperatures_ : (bins,) array
        The temperature of each bin.

    References
    ----------
    .. [1] Ji et al. (2019). Bin-wise temperature scaling (BTS): Improvement in confidence calibration
       performance through simple scaling techniques. arXiv:1908.11528

    Examples
    --------
    >>> from temperance import BinwiseTemperatureScaling
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=2000, n_classes=3, random_state=0)
    >>> cal = BinwiseTemperatureScaling(bins=10).fit(task.logits, task.labels)
    >>> cal.temperatures_.shape
    (10,)
    """

    key: ClassVar[str] = "bts"
    edges_: Vector = fitted("formula.edges")
    temperatures_: Vector = fitted("formula.temperatures")

    def __init__(self, *, bins: int = 50, top: float = 0.999) -> None:
        self.bins = bins
        self.top = top

    def _check_options(self) -> None:
        wanted = f"from 2 to {MAX_BINS}"
        check_number("bins", self.bins, wanted, lambda bins: 2 <= bins <= MAX_BINS, whole=True)
        check_number("top", self.top, "between 0 and 1", lambda top: 0 < top < 1)

    def _fit(self, data: FitData) -> Model:
        edges = self._edges(data)
        single = fit_single_temperature(data, exact=False)
        objective = data.objective(partial(_likelihood, edges))
        low, high = np.log(limits_around(single.temperature))
        bounds = np.full(self.bins, low), np.full(self.bins, high)
        start = np.full(self.bins, np.log(single.temperature))
        warn_of(single, data.n_rows)
        solution, theta = single.solution, start
        if not single.degeneracy:
            solution = with_group_errors(objective, solve(objective, start, data.n_rows, bounds=bounds))
            theta = solution.parameters
        used = data.total(partial(_weight_of_bins, edges))[0] > 0
        temperatures = np.where(used, Log().temperature(theta), 1.0)
        errors = {}
        if solution.covariance is not None and len(solution.covariance) == self.bins:
            deviations = temperatures * np.sqrt(solution.covariance.diagonal())
            errors["temperatures"] = np.where(used, deviations, 0.0)
        return self._model(
            data,
            BinwiseFormula(edges, temperatures),
            solution,
            standard_errors=errors,
            temperature_quantiles=objective.temperature_quantiles(theta, QUANTILES),
        )

    def _edges(self, data: FitData) -> Vector:
        """Return quantiles of the confidences below `top`, with equal weights between them."""
        shares = np.arange(1, self.bins - 1) / (self.bins - 1)
        top = _just_above(self.top)
        found = data.quantiles(partial(_confidence_below, top), shares, TIE)
        following = np.where(np.isnan(found.following), top, found.following)
        edges = np.append(_just_above(found.values, following), top)
        return np.where(np.isnan(edges), top, edges)  # no row is below

    def _describe(self) -> list[str]:
        errors = self.standard_errors_.get("temperatures", [None] * len(self.temperatures_))
        low, high = int(np.argmin(self.temperatures_)), int(np.argmax(self.temperatures_))
        lines = [f"T = a table of {len(self.temperatures_)} ranges of confidence"]
        edges = np.concatenate([[0.0], self.edges_, [1.0]])
        for name, i in (("lowest", low), ("highest", high), ("top bin", len(self.temperatures_) - 1)):
            confidence = f"({edges[i]:.4g}, {edges[i + 1]:.4g}]"
            lines.append(f"{name}: confidence {confidence}, T = {estimate(self.temperatures_[i], errors[i])}")
        return lines
