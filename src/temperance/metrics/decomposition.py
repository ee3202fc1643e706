"""A loss in two parts: what recalibration can remove, and what it cannot.

    total        = mean loss of p
    refinement   = min over recalibrators g of the mean loss of g(p), with g fitted to other folds
    calibration  = total - refinement >= 0
    g in {identity, softmax(beta log p), softmax(beta log p + b)}

For the expected loss, and g over all functions, this is the classical decomposition of a proper loss
(Bröcker, 2009). The calibration part is then a divergence: for the negative log-likelihood the mean
Kullback-Leibler divergence from the true probabilities given p to p.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from temperance.core.arrays import Vector
from temperance.inputs.labels import Names
from temperance.inputs.validation import check_choice, random_generator
from temperance.metrics.predictions import Predictions, check_integer, check_rows
from temperance.metrics.recalibration import (
    Recalibrator,
    Recalibrators,
    effective_parameters,
    log_probabilities,
    shrunk,
)
from temperance.metrics.vocabulary import open_recalibration


@dataclass(frozen=True)
class Decomposition:
    """The parts of a mean loss: total = calibration + refinement.

    Attributes
    ----------
    total : float
        The mean loss.
    calibration : float
        What recalibration removes.
    refinement : float
        What remains.

    Examples
    --------
    >>> parts = decompose([[0.9, 0.1]] * 20, [0, 1] * 10)
    >>> bool(np.isclose(parts.total, parts.calibration + parts.refinement))
    True
    """

    total: float
    calibration: float
    refinement: float


def decompose(
    probs: ArrayLike,
    labels: ArrayLike,
    *,
    loss: str = "nll",
    folds: int = 5,
    random_state: int | np.random.Generator | None = 0,
    sample_weight: ArrayLike | None = None,
    classes: Names | None = None,
) -> Decomposition:
    """Split a proper loss into calibration and refinement, by cross-validated recalibration.

    The refinement part is the loss that remains after the best of three recalibrators: none, a temperature,
    a temperature and a bias for each class, fitted by maximum likelihood on the other folds. A richer family
    could find more, so the calibration part is a lower bound, up to the noise of the rows. Berta et al.
    (2025) use the same idea to stop training where the refinement part is smallest.

    Parameters
    ----------
    probs : array of shape (N, K), or (N,) for the second of two classes
    labels : integer array of shape (N,)
    loss : {"nll", "brier"}
    folds : int
        Number of folds; with fewer rows than folds, each row is a fold.
    random_state : int, numpy Generator or None
        Assigns the rows to folds.
    sample_weight : array of shape (N,), optional
        A row of weight k counts as k equal rows of the same fold.
    classes : sequence, optional
        Names of the columns, if labels are names.

    Returns
    -------
    Decomposition
        With `total`, `calibration` (never below 0) and `refinement`.

    References
    ----------
    .. [1] Bröcker (2009). Reliability, sufficiency, and the decomposition of proper scores.
       doi:10.1002/qj.456
    .. [2] Berta et al. (2025). Rethinking early stopping: Refine, then calibrate. arXiv:2501.19195

    Examples
    --------
    >>> sure, labels = [[0.99, 0.01]] * 40 + [[0.01, 0.99]] * 40, ([0] * 30 + [1] * 10) * 2
    >>> parts = decompose(sure, labels[:40] + [1 - y for y in labels[40:]])
    >>> round(parts.total, 3), round(parts.calibration, 2), round(parts.refinement, 2)
    (1.159, 0.57, 0.59)
    """
    check_choice("loss", loss, ("nll", "brier"))
    rows = check_rows(probs, labels, sample_weight, classes)
    losses = Recalibrations(rows).out_of_fold(folds, random_generator("random_state", random_state))[loss]
    total, refinement = rows.mean(losses[0]), rows.mean(refined(rows, losses))
    return Decomposition(total, total - refinement, refinement)


def nll_calibration(
    probs: ArrayLike,
    labels: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    classes: Names | None = None,
) -> float:
    """Calibration part of the negative log-likelihood, see `decompose`.

    Parameters
    ----------
    probs, labels, sample_weight, classes
        As for `ece`.

    Examples
    --------
    >>> round(nll_calibration([[0.9, 0.1]] * 20, [0, 1] * 10), 2)
    0.5
    """
    return decompose(probs, labels, sample_weight=sample_weight, classes=classes).calibration


def nll_refinement(
    probs: ArrayLike,
    labels: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    classes: Names | None = None,
) -> float:
    """Refinement part of the negative log-likelihood, see `decompose`.

    Parameters
    ----------
    probs, labels, sample_weight, classes
        As for `ece`.

    Examples
    --------
    >>> round(nll_refinement([[0.9, 0.1]] * 20, [0, 1] * 10), 1)
    0.7
    """
    return decompose(probs, labels, sample_weight=sample_weight, classes=classes).refinement


def brier_calibration(
    probs: ArrayLike,
    labels: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    classes: Names | None = None,
) -> float:
    """Calibration part of the Brier score, see `decompose`.

    Parameters
    ----------
    probs, labels, sample_weight, classes
        As for `ece`.

    Examples
    --------
    >>> round(brier_calibration([[0.9, 0.1]] * 20, [0, 1] * 10), 1)
    0.3
    """
    return decompose(probs, labels, loss="brier", sample_weight=sample_weight, classes=classes).calibration


def brier_refinement(
    probs: ArrayLike,
    labels: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    classes: Names | None = None,
) -> float:
    """Refinement part of the Brier score, see `decompose`.

    Parameters
    ----------
    probs, labels, sample_weight, classes
        As for `ece`.

    Examples
    --------
    >>> round(brier_refinement([[0.9, 0.1]] * 20, [0, 1] * 10), 1)
    0.5
    """
    return decompose(probs, labels, loss="brier", sample_weight=sample_weight, classes=classes).refinement


def refined(rows: Predictions, losses: Vector) -> Vector:
    """Return the losses of the recalibrator with the lowest mean; the simplest one if tied."""
    best: Vector = losses[int(np.argmin([rows.mean(row) for row in losses]))]
    return best


class Recalibrations:
    """The recalibrators of some rows, and the losses after each: `nll` and `brier`, by name."""

    def __init__(self, rows: Predictions) -> None:
        self.rows = rows
        logs = log_probabilities(rows.probs, np.float32)
        self._family = open_recalibration(logs, rows.labels, rows.class_totals)
        # Each fit starts from the last one, which saves passes. All are convex and run to convergence, so an
        # initial value that has seen the held-out rows does not matter where the others determine the fit.
        self._models = self._family.start

    def out_of_fold(self, folds: int, generator: np.random.Generator) -> dict[str, Vector]:
        """Return (3, N) losses: of the identity, a temperature, and a temperature with biases."""
        rows, n_rows = self.rows, len(self.rows.probs)
        folds = min(check_integer("folds", folds, 2), n_rows)
        nll, brier = np.tile(rows.nll, (3, 1)), np.tile(rows.brier, (3, 1))
        fold, fits = generator.permutation(n_rows) % folds, []
        for held in range(folds):
            weight = np.where(fold == held, 0.0, rows.weight)
            # Without rows to fit to, as for a single row, the recalibrators stay the identity.
            fits.append(self._fit(weight) if weight.any() else self._family.start)
        for which, of_folds in enumerate(zip(*fits, strict=True), start=1):
            nll[which], brier[which] = self._family.losses(of_folds, fold)
        return {"nll": nll, "brier": brier}

    def in_sample(self) -> tuple[dict[str, Vector], float]:
        """Return N losses of a temperature with biases that is fitted to all rows, and its parameters."""
        model, precision = self._of_all_rows
        nll, brier = self._family.losses([model], np.zeros(len(self.rows.weight), np.intp))
        return {"nll": nll, "brier": brier}, effective_parameters(precision)

    def confidence(self) -> Vector:
        """Return the probability of each row's top label after that model, without what is noise in it."""
        return self._family.recalibrated(shrunk(*self._of_all_rows), self.rows.top)

    @cached_property
    def _of_all_rows(self) -> tuple[Recalibrator, Vector]:
        """The temperature with biases that is fitted to all rows, and the precision of its parameters."""
        weight = self.rows.weight
        _, model = self._fit(weight)
        return model, self._family.precision(weight, model)

    def _fit(self, weight: Vector) -> Recalibrators:
        self._models = self._family.fit(weight, self._models)
        return self._models
