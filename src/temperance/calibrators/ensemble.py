"""ETS, ensemble temperature scaling: a mixture of three predictions, at three inverse temperatures.

    p = w_1 q(1/T) + w_2 q(1) + w_3 q(0),      q(beta) = softmax(beta z),      w >= 0, w_1 + w_2 + w_3 = 1

q(0) is uniform over the row's possible classes. Both losses need row moments only:

    q_y(b)              = exp(b d_y) / s(b)                   d log q_y / d b        = d_y - mu(b)
    sum_k q_k(b) q_k(c) = s(b + c) / (s(b) s(c))              d log of it / d b      = mu(b + c) - mu(b)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from temperance._validation import InputError, check_all_positive, check_choice
from temperance.calibrators._anchor import find_anchor, limits_around, one_sided, warn_one_sided
from temperance.calibrators._base import Calibrator, Shape
from temperance.calibrators._words import confidence_in_words
from temperance.core.fisher import Solution
from temperance.core.rows import Moments, Rows

__all__ = ["EnsembleTemperatureScaling"]

Vector = NDArray[np.float64]

# Flat over the possible classes, while a masked one still gets exp(-inf) = 0.
ALMOST_ZERO = 1e-15


class EnsembleTemperatureScaling(Calibrator):
    """ETS: the tempered prediction, the raw one and the uniform one, mixed.

    Temperature and weights are optimised together. It keeps the predicted class, but is no z / T(z): it has
    no temperature of a row, and `transform` gives log-probabilities.

    Parameters
    ----------
    loss : "nll" or "brier"
        What the fit minimises; "brier" reproduces the paper's table.

    Attributes
    ----------
    temperature_ : float
        T, within a factor of 10 of the best single temperature.
    weights_ : (3,) array
        w_1 (tempered), w_2 (raw), w_3 (uniform).

    Examples
    --------
    >>> from temperance import EnsembleTemperatureScaling
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=2000, n_classes=3, random_state=0)
    >>> cal = EnsembleTemperatureScaling().fit(task.logits, task.labels)
    >>> round(float(cal.weights_.sum()), 12)
    1.0
    """

    key: ClassVar[str] = "ets"
    temperature_: float
    weights_: Vector

    def __init__(self, *, loss: str = "nll") -> None:
        self.loss = loss

    def _check_options(self) -> None:
        check_choice("loss", self.loss, ("nll", "brier"))

    def _fit(self, rows: Rows, weights: Vector | None) -> None:
        anchor = find_anchor(rows, weights, exact=False)
        if one_sided(rows, weights):
            warn_one_sided(anchor, rows.n_rows)
            self.temperature_, self.weights_ = anchor.temperature, np.array([1.0, 0.0, 0.0])
            self.solution_ = anchor.solution
            return
        objective = (_LogLoss if self.loss == "nll" else _BrierLoss)(rows, weights)
        self.solution_ = _minimise(objective, anchor.temperature)
        self.temperature_ = float(np.exp(self.solution_.parameters[0]))
        self.weights_ = _mixture(self.solution_.parameters)

    def temperature(self, logits: Any) -> Any:
        """Raise: a mixture has no temperature of a row."""
        raise AttributeError(
            "EnsembleTemperatureScaling mixes probabilities, so a row has no temperature; its tempered part "
            "has temperature_. Use TS, LTS, HTS, HnLTS, BTS or PTS for T(z)."
        )

    def predict_proba(self, logits: Any) -> Any:
        """Return the mixed probabilities, (N, K)."""
        opened, rows = self._open(logits)
        return opened.wrap(rows.mixture(self._betas(rows), self.weights_))

    def transform(self, logits: Any) -> Any:
        """Return log-probabilities; for (N,) logits, the log-odds of class 1."""
        opened, rows = self._open(logits)
        log_p = rows.log_mixture(self._betas(rows), self.weights_)
        return opened.wrap(log_p[:, 1] - log_p[:, 0] if opened.binary else log_p)

    def _betas(self, rows: Rows) -> NDArray[np.float64]:
        return np.broadcast_to([1 / self.temperature_, 1.0, ALMOST_ZERO], (rows.n_rows, 3))

    def _shapes(self) -> Mapping[str, Shape]:
        return {"temperature": (), "weights": (3,)}

    def _check_parameters(self, parameters: Mapping[str, NDArray[Any]]) -> None:
        check_all_positive("temperature", parameters["temperature"])
        weights = parameters["weights"]
        if (weights < 0).any() or abs(weights.sum() - 1) > 1e-9:
            raise InputError(f"weights must be >= 0 and sum to 1; got {weights.tolist()}.")

    def summary(self) -> str:
        """Describe the fitted calibrator in words and numbers."""
        self._check_fitted()
        tempered, raw, uniform = (f"{100 * w:.1f} %" for w in self.weights_)
        return (
            f"{type(self).__name__} (ETS)\np = w_1 softmax(z / T) + w_2 softmax(z) + w_3 / K\n"
            f"{self.n_classes_} classes, fitted on {self.n_rows_} rows\n"
            f"T = {self.temperature_:.4g}: {confidence_in_words(self.temperature_)}\n"
            f"mixture: {tempered} tempered, {raw} as the classifier gave it, {uniform} uniform\n"
            f"{self.loss} of the calibration rows: {self.solution_.value:.4f}\n"
            f"solver: {self.solution_.message}, {self.solution_.passes} passes over the rows"
        )


def _mixture(x: Vector) -> Vector:
    """Return the weights of x = (log T, w_2, w_3), freed of rounding below 0."""
    weights = np.array([1 - x[1] - x[2], x[1], x[2]]).clip(0)
    return weights / weights.sum()


class _MixtureLoss(ABC):
    """Mean loss of the mixture as a function of x = (log T, w_2, w_3), with its gradient."""

    def __init__(self, rows: Rows, weights: Vector | None) -> None:
        self.rows = rows
        share = np.ones(rows.n_rows) if weights is None else weights
        self.share = share / share.sum()
        self.raw, self.uniform = rows.moments(1.0), rows.moments(ALMOST_ZERO)

    def _at_label(self, moments: Moments, beta: float) -> Vector:
        return np.exp(beta * self.rows.label_gap - moments.log_s)

    @abstractmethod
    def __call__(self, x: Vector) -> tuple[float, Vector]:
        """Return the value and its gradient."""


class _LogLoss(_MixtureLoss):
    def __call__(self, x: Vector) -> tuple[float, Vector]:
        beta, w = np.exp(-x[0]), np.array([1 - x[1] - x[2], x[1], x[2]])
        moments = self.rows.moments(beta)
        q = np.stack(
            [self._at_label(moments, beta), self._at_label(self.raw, 1.0), self._at_label(self.uniform, 0.0)]
        )
        # The label's probability is above 0 where the tempered part has any weight; elsewhere a row may
        # be lost to underflow, and the floor keeps the loss finite.
        p = np.maximum(w @ q, np.finfo(np.float64).tiny)
        d_log_t = -beta * w[0] * q[0] * (self.rows.label_gap - moments.mu) / p
        gradient = [
            -d_log_t @ self.share,
            -((q[1] - q[0]) / p) @ self.share,
            -((q[2] - q[0]) / p) @ self.share,
        ]
        return float(-np.log(p) @ self.share), np.array(gradient)


class _BrierLoss(_MixtureLoss):
    def __init__(self, rows: Rows, weights: Vector | None) -> None:
        super().__init__(rows, weights)
        self.raw_raw = np.exp(rows.moments(2.0).log_s - 2 * self.raw.log_s)

    def __call__(self, x: Vector) -> tuple[float, Vector]:
        beta, w = np.exp(-x[0]), np.array([1 - x[1] - x[2], x[1], x[2]])
        one, two, shifted = (self.rows.moments(b) for b in (beta, 2 * beta, beta + 1))
        q = np.stack(
            [self._at_label(one, beta), self._at_label(self.raw, 1.0), self._at_label(self.uniform, 0.0)]
        )
        tempered = np.exp(two.log_s - 2 * one.log_s)
        mixed = np.exp(shifted.log_s - one.log_s - self.raw.log_s)
        flat = np.exp(-self.uniform.log_s)
        # sum_k q_i q_j of the three parts; with the uniform one it is 1/K.
        products = np.array([[tempered, mixed, flat], [mixed, self.raw_raw, flat], [flat, flat, flat]])
        gram = products @ self.share
        at_label = q @ self.share
        d_tempered = 2 * tempered * (two.mu - one.mu)
        d_mixed = mixed * (shifted.mu - one.mu)
        d_label = q[0] * (self.rows.label_gap - one.mu)
        d_beta = (w[0] ** 2 * d_tempered + 2 * w[0] * w[1] * d_mixed - 2 * w[0] * d_label) @ self.share
        by_weight = 2 * (gram @ w - at_label)
        gradient = np.array([-beta * d_beta, by_weight[1] - by_weight[0], by_weight[2] - by_weight[0]])
        return float(w @ gram @ w - 2 * at_label @ w + 1), gradient


def _minimise(objective: _MixtureLoss, temperature: float) -> Solution:
    """Minimise over T and the simplex of weights, from a mixture and from temperature scaling alone."""
    low, high = np.log(limits_around(temperature))
    best: Any = None
    for start in ([0.1, 0.05], [0.0, 0.0]):
        result = minimize(
            objective,
            np.array([np.log(temperature), *start]),
            jac=True,
            method="SLSQP",
            bounds=[(low, high), (0, 1), (0, 1)],
            constraints=[
                {"type": "ineq", "fun": lambda x: 1 - x[1] - x[2], "jac": lambda x: np.array([0, -1.0, -1.0])}
            ],
            options={"ftol": 1e-13, "maxiter": 200},
        )
        if best is None or result.fun < best.fun:
            best = result
    return Solution(
        parameters=np.asarray(best.x),
        value=float(best.fun),
        gradient_norm=float(np.linalg.norm(best.jac)),
        iterations=int(best.nit),
        passes=objective.rows.passes,
        converged=bool(best.success),
        message="converged" if best.success else str(best.message),
    )
