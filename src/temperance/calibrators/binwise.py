"""BTS, bin-wise temperature scaling: a temperature for each range of the top confidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from temperance.calibrators.base import Shape, TemperatureCalibrator
from temperance.calibrators.descriptions import estimate
from temperance.calibrators.single_temperature import fit_single_temperature, limits_around, warn_of
from temperance.core.arrays import Vector
from temperance.core.fisher import solve
from temperance.core.fit_data import FitData
from temperance.core.formulas import gaps_of, sum_of_others
from temperance.core.links import Log
from temperance.core.logit_rows import LogitRows
from temperance.core.objective import LogLikelihood
from temperance.core.ops import Array, Ops
from temperance.core.predictors import Grouped
from temperance.validation import InputError, check_number, check_temperatures

__all__ = ["BinwiseTemperatureScaling"]


def _confidence(rows: LogitRows) -> Vector:
    return np.exp(rows.uncertainty().log_confidence)


class BinwiseTemperatureScaling(TemperatureCalibrator):
    """BTS: a look-up table from the top confidence to a temperature.

    The last bin is (top, 1]; the others hold equal numbers of the calibration rows below `top`. Every bin
    gets the temperature that maximises the likelihood of its rows, within a factor of 10 of the best single
    temperature; a bin without rows gets 1. It needs thousands of rows to be of use.

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
    edges_: Vector
    temperatures_: Vector

    def __init__(self, *, bins: int = 50, top: float = 0.999) -> None:
        self.bins = bins
        self.top = top

    def _check_options(self) -> None:
        check_number("bins", self.bins, ">= 2", lambda bins: bins >= 2, whole=True)
        check_number("top", self.top, "between 0 and 1", lambda top: 0 < top < 1)

    def _fit(self, sample: FitData) -> None:
        self.edges_ = self._edges(sample)
        anchor = fit_single_temperature(sample, exact=False)
        objective = sample.objective(self._likelihood)
        low, high = np.log(limits_around(anchor.temperature))
        bounds = np.full(self.bins, low), np.full(self.bins, high)
        start = np.full(self.bins, np.log(anchor.temperature))
        warn_of(anchor, sample.n_rows)
        if anchor.degenerate_reason:
            self.solution_, theta = anchor.solution, start
        else:
            self.solution_ = solve(objective, start, sample.n_rows, bounds=bounds)
            theta = self.solution_.parameters
        used = sample.total(self._weight_of_bins)[0] > 0
        self.temperatures_ = np.where(used, Log().temperature(theta), 1.0)
        self._set_quantiles(objective, theta)
        if self.solution_.covariance is not None and self.solution_.covariance.shape[0] == self.bins:
            errors = self.temperatures_ * np.sqrt(self.solution_.covariance.diagonal())
            self.standard_errors_ = {"temperatures": np.where(used, errors, 0.0)}

    def _edges(self, sample: FitData) -> Vector:
        """Return quantiles of the confidences below `top`, such that equal weights fall between them."""
        found = sample.quantiles(self._confidence_below_top, np.arange(1, self.bins - 1) / (self.bins - 1))
        # An edge lies midway to the next confidence, so that the last bit of one decides nothing.
        following = np.where(np.isnan(found.following), self.top, found.following)
        edges = np.append((found.values + following) / 2, self.top)
        return np.where(np.isnan(edges), self.top, edges)  # no row is below

    def _confidence_below_top(self, rows: LogitRows, weights: Vector | None) -> tuple[Vector, Vector | None]:
        confidence = _confidence(rows)
        below = confidence <= self.top
        return confidence[below], None if weights is None else weights[below]

    def _likelihood(self, rows: LogitRows, weights: Vector | None) -> LogLikelihood:
        return LogLikelihood(rows, Grouped(self._bin(rows), self.bins), Log(), weights)

    def _weight_of_bins(self, rows: LogitRows, weights: Vector | None) -> tuple[Vector]:
        return (np.bincount(self._bin(rows), weights, self.bins).astype(np.float64),)

    def _bin(self, rows: LogitRows) -> NDArray[np.intp]:
        return np.searchsorted(self.edges_, _confidence(rows), side="left")

    def _temperature(self, rows: LogitRows) -> Vector:
        return self.temperatures_[self._bin(rows)]

    def _temperature_formula(self, z: Array, ops: Ops) -> Array:
        gaps = gaps_of(z, self.n_classes_, ops)
        r = sum_of_others(gaps.d, gaps.is_top, ops)
        # 1 / (1 + r) > edge, in a form that keeps the digits of a confidence near 1
        edges = ops.parameter("edges")
        bins = ops.count(ops.greater((1.0 - edges) / edges, r))
        return ops.take(ops.parameter("temperatures"), bins)

    def _shapes(self) -> Mapping[str, Shape]:
        bins = self.options_["bins"]
        return {"edges": (bins - 1,), "temperatures": (bins,)}

    def _check_parameters(self, parameters: Mapping[str, NDArray[Any]]) -> None:
        check_temperatures("temperatures", parameters["temperatures"])
        edges = parameters["edges"]
        if (np.diff(edges) < 0).any() or not (edges[0] >= 0 and edges[-1] <= 1):
            raise InputError(f"edges must lie between 0 and 1 and not fall; got {edges.tolist()}.")

    def _summary(self) -> str:
        errors = self.standard_errors_.get("temperatures", [None] * len(self.temperatures_))
        low, high = int(np.argmin(self.temperatures_)), int(np.argmax(self.temperatures_))
        lines = [
            f"{name}: confidence {self._range(i)}, T = {estimate(self.temperatures_[i], errors[i])}"
            for name, i in (("lowest", low), ("highest", high), ("top bin", len(self.temperatures_) - 1))
        ]
        headline = self._headline(f"T = a table of {len(self.temperatures_)} ranges of confidence")
        return "\n".join([headline, *lines, self._describe_fit()])

    def _range(self, i: int) -> str:
        edges = np.concatenate([[0.0], self.edges_, [1.0]])
        return f"({edges[i]:.4g}, {edges[i + 1]:.4g}]"
