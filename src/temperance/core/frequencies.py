"""Class frequencies of unlabelled rows, from calibrated probabilities.

Saerens, Latinne and Decaestecker (2002): if only the class frequencies differ from the frequencies pi0 of the
fit, then the frequencies pi of N rows with calibrated probabilities p_ik maximise a likelihood, concave in
pi. With theta = log(pi / pi0) and a Dirichlet prior worth alpha rows at the frequencies of the fit:

    q_ik     = p_ik exp(theta_k) / sum_j p_ij exp(theta_j)
    value    = -mean_i log sum_k p_ik exp(theta_k) - a sum_k pi0_k theta_k               a = alpha / N
    gradient = (1 + a) pi - mean q - a pi0
    Hessian  = (1 + a) (diag pi - pi pi') - (diag mean q - mean q q')

The constraint sum pi = 1 fixes the constant in theta. Their EM iteration, pi <- (mean q + a pi0) / (1 + a),
always lowers the value, but is slow where classes overlap. Newton's step is fast near the optimum. The order
of steps is:

1. One pass gives value, gradient and Hessian.
2. Take Newton's step; if the Hessian is not positive definite, use the covariance of the scores instead.
3. Stop if the predicted decrease was below tolerance.
4. If the step did not lower the value, go back and take EM's step.

The solver of `fisher` would do a line search in step 4. Here a pass over the rows is the whole cost, and EM's
step always lowers the value without one.

The frequencies are an average over several alpha and over no change at all, weighted by the evidence
(Laplace's approximation): few rows that agree with the frequencies of the fit leave them nearly unchanged.

A class with very few labels at the fit has no reliable pi0, and a wrong pi0 is worse than none: if all rows
have p_ik > pi0_k, any number of them can be attributed to the class. Such classes are left out; everything
else is conditional on the remaining classes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

from temperance.core.arrays import Floats, Indices, Matrix, Vector
from temperance.core.blocks import Scratch, sampled_rows, sum_blocks

PSEUDO_ROWS = (1000.0, 100.0, 10.0, 1.0)
"""How many rows the prior is worth: at least one, and few enough for thousands of rows to outweigh it."""
TOLERANCE = 1e-12  # of the predicted decrease: 1e-6 standard errors with a million rows
NOISE = 1e-13  # relative error of a value
MAX_PASSES = 200
MAX_STEP = 2.0  # of a log frequency: beyond it, the quadratic approximation does not hold
MIN_COUNT = 5.0  # labels, with pseudo-rows: the relative error of a frequency is then below one half
MAX_SMOOTHING = 1e6  # pseudo-rows of each class: equal counts are equal frequencies
SUBSAMPLE_ROWS = 4096
ROWS_PER_CLASS = 4
BLOCK_SIZE = 1 << 20  # numbers in one matrix product
HESSIAN_WORK = 1 << 36  # products; beyond it, the Hessian uses fewer rows, which only slows convergence


@dataclass(frozen=True)
class Sums:
    """Sums over rows at some theta: log sum_k p_k exp(theta_k), q, and q q' (from fewer rows, rescaled)."""

    log_likelihood: Vector
    q: Vector
    q_outer: Matrix

    def of_classes(self, classes: Indices) -> Sums:
        """Return the sums with all but some classes set to 0."""
        return Sums(self.log_likelihood, self.q[classes], self.q_outer[np.ix_(classes, classes)])


class ProbabilityRows:
    """Calibrated probabilities of unlabelled rows in memory; `temperance.dask` has a subclass for parts."""

    def __init__(self, probs: Floats, hessian_step: int | None = None) -> None:
        self.probs = probs
        self.n_rows, self.n_classes = probs.shape
        self.hessian_step = hessian_step or hessian_step_for(self.n_rows, self.n_classes)

    def every(self, step: int) -> ProbabilityRows:
        """Return every `step`-th row."""
        return ProbabilityRows(self.probs[sampled_rows(step, self.n_rows)])

    def sums(self, ratio: Vector) -> Sums:
        """Return sums over all rows in one pass, at ratio = exp(theta); 0 leaves a class out."""
        work = partial(_block_sums, ratio, self.hessian_step)
        return Sums(*sum_blocks(self.probs, work, max(1, BLOCK_SIZE // self.n_classes)))


def hessian_step_for(n_rows: int, n_classes: int) -> int:
    """Return the step between rows that the Hessian uses."""
    return max(1, n_rows * n_classes**2 // HESSIAN_WORK)


def _block_sums(
    ratio: Vector, step: int, probs: Floats, start: int, stop: int, scratch: Scratch
) -> tuple[Vector, Vector, Matrix]:
    q = probs * ratio
    total = q.sum(axis=1)
    possible = total > 0  # some rows have only left-out classes, if all others are masked
    q /= np.where(possible, total, 1.0)[:, None]
    some = q[sampled_rows(max(1, min(step, len(q) // 2)), stop, start) - start]  # at least one
    return np.log(total[possible]).sum(keepdims=True), q.sum(axis=0), some.T @ some * (len(q) / len(some))


@dataclass(frozen=True)
class FrequencyEstimate:
    """Class frequencies of unlabelled rows, and how precisely only these rows determine them."""

    frequencies: Vector
    standard_errors: Vector
    passes: int
    converged: bool


@dataclass(frozen=True)
class LabelFrequencies:
    """Class frequencies from the labels of a fit, and which classes have enough labels."""

    frequencies: Vector
    is_known: NDArray[np.bool_]


def label_frequencies(counts: Vector) -> LabelFrequencies:
    """Return class frequencies from counts, shrunk towards equal frequencies as far as the counts allow.

    The same number of pseudo-rows is added to each class: the number that makes the counts most likely if the
    frequencies have a symmetric Dirichlet distribution, and at least one row in all. So no frequency is 0,
    and the noise of small counts is not mistaken for imbalance.
    """
    n_classes, n_rows = len(counts), counts.sum()

    def loss(log_added: float) -> float:
        added = np.exp(log_added)
        whole = gammaln(n_classes * added) - gammaln(n_classes * added + n_rows)
        return -float(whole + (gammaln(added + counts) - gammaln(added)).sum())

    limits = np.log([1 / n_classes, MAX_SMOOTHING])
    smoothed = counts + np.exp(minimize_scalar(loss, bounds=limits, method="bounded").x)
    return LabelFrequencies(smoothed / smoothed.sum(), smoothed >= MIN_COUNT)


def estimate_frequencies(rows: ProbabilityRows, fitted: LabelFrequencies) -> FrequencyEstimate:
    """Return the class frequencies of rows whose probabilities are calibrated for the `fitted` frequencies.

    Classes with too few labels keep their frequency. A subsample determines the strength of the prior and the
    initial values; two or three passes over all rows are then enough.
    """
    known = np.flatnonzero(fitted.is_known)
    share = float(fitted.frequencies[known].sum())
    before = fitted.frequencies[known] / share
    best, change = _best_prior(rows, len(fitted.frequencies), known, before)
    frequencies, errors = fitted.frequencies.copy(), np.zeros(len(fitted.frequencies))
    frequencies[known] = share * (before + change)
    errors[known] = share * best.standard_errors()
    return FrequencyEstimate(frequencies, errors, best.passes, best.converged)


def _best_prior(
    rows: ProbabilityRows, n_classes: int, known: Indices, fitted: Vector
) -> tuple[_Point, Vector]:
    """Return the optimum under the likeliest prior, and the change of the frequencies.

    The change is an average over the priors, unless there are enough rows to outweigh all of them.
    """
    step = rows.n_rows // max(SUBSAMPLE_ROWS, ROWS_PER_CLASS * len(known))
    few = rows.every(step) if step >= 2 else rows
    problem, found = _Problem(n_classes, known, fitted, PSEUDO_ROWS[0]), []
    unchanged = problem.at(few, np.zeros(len(known)))
    theta = unchanged.theta
    for pseudo_rows in PSEUDO_ROWS:
        found.append(_maximise(few, replace(problem, pseudo_rows=pseudo_rows), theta))
        theta = found[-1].theta
    logs = np.array([point.log_evidence() for point in found])
    best = found[int(logs.argmax())]
    if few is not rows:
        best = _maximise(rows, best.problem, best.theta)
        return best, best.frequencies - fitted
    # Without a change, the evidence is the likelihood; it has half of the prior probability.
    none = float(unchanged.sums.log_likelihood[0]) + np.log(len(found))
    weights = np.exp(logs - np.logaddexp.reduce([none, *logs]))
    return best, weights @ [point.frequencies - fitted for point in found]


@dataclass(frozen=True)
class _Problem:
    """The problem of estimating the frequencies of the known classes, relative to each other."""

    n_classes: int
    known: Indices
    fitted: Vector
    pseudo_rows: float

    def normalised(self, theta: Vector) -> Vector:
        """Return theta plus the constant that makes the frequencies sum to 1."""
        top = theta.max()
        shifted: Vector = theta - top - np.log(self.fitted @ np.exp(theta - top))
        return shifted

    def at(self, rows: ProbabilityRows, theta: Vector) -> _Point:
        theta, ratio = self.normalised(theta), np.zeros(self.n_classes)
        ratio[self.known] = np.exp(theta)
        return _Point(self, theta, rows.sums(ratio).of_classes(self.known))


@dataclass(frozen=True)
class _Point:
    """Value and derivatives at theta, summed over rows; for an optimum, also how the search ended."""

    problem: _Problem
    theta: Vector
    sums: Sums
    passes: int = 1
    converged: bool = False

    @property
    def n_rows(self) -> float:
        return float(self.sums.q.sum())

    @property
    def frequencies(self) -> Vector:
        pi: Vector = self.problem.fitted * np.exp(self.theta)
        return pi

    @property
    def value(self) -> float:
        prior = self.problem.pseudo_rows * float(self.problem.fitted @ self.theta)
        return -float(self.sums.log_likelihood[0] + prior)

    @property
    def gradient(self) -> Vector:
        size, prior = self.n_rows + self.problem.pseudo_rows, self.problem.pseudo_rows
        gradient: Vector = size * self.frequencies - self.sums.q - prior * self.problem.fitted
        return gradient

    def hessian(self, pseudo_rows: float) -> Matrix:
        """Return the second derivatives under a prior worth this many rows."""
        outer = self.sums.q_outer
        return (self.n_rows + pseudo_rows) * _simplex(self.frequencies) - np.diag(outer.sum(axis=1)) + outer

    def em_step(self) -> Vector:
        """Return theta after one iteration of EM."""
        kept = self.sums.q + self.problem.pseudo_rows * self.problem.fitted
        theta: Vector = np.log(kept) - np.log(kept.sum()) - np.log(self.problem.fitted)
        return theta

    def factor(self, pseudo_rows: float) -> _Factor:
        """Factorise the Hessian, or the score covariance if the Hessian is not positive definite."""
        pi = self.frequencies
        factor = _Factor.of(self.hessian(pseudo_rows), pi)
        if factor is None:
            # The expected Hessian at the optimum is wrong far from there, but the prior makes it definite.
            outer = self.sums.q_outer
            total = outer.sum(axis=1)
            spread = outer - np.outer(total, total) / max(self.n_rows, 1.0)
            factor = _Factor.of(spread + pseudo_rows * _simplex(pi), pi)
            assert factor is not None
        return factor

    def log_evidence(self) -> float:
        """Return the log evidence of this prior, with the prior's normaliser approximated in the same way."""
        factor = _Factor.of(self.hessian(self.problem.pseudo_rows), self.frequencies)
        if factor is None:
            return -np.inf
        prior = (len(self.theta) - 1) * np.log(self.problem.pseudo_rows) + np.log(self.problem.fitted).sum()
        return -self.value + (prior - factor.log_determinant) / 2

    def standard_errors(self) -> Vector:
        """Return the standard errors of the frequencies under the weakest prior, at most the prior's own."""
        pi = self.frequencies
        without_rows: Vector = np.sqrt(pi * (1 - pi) / 2)
        jacobian = _simplex(pi)
        variances = np.einsum("ij,ij->j", jacobian, self.factor(1.0).solve(jacobian))
        return np.minimum(np.sqrt(variances), without_rows)


def _simplex(pi: Vector) -> Matrix:
    """Return the derivative of the frequencies by theta."""
    return np.diag(pi) - np.outer(pi, pi)


@dataclass(frozen=True)
class _Factor:
    """Cholesky factor of a matrix whose null space is the constants, made nonsingular by adding pi pi'."""

    cholesky: tuple[Matrix, bool]
    scale: Vector

    @classmethod
    def of(cls, matrix: Matrix, pi: Vector) -> _Factor | None:
        scale = 1 / np.sqrt(pi)
        try:
            factor = cho_factor((matrix + np.outer(pi, pi)) * scale * scale[:, None], lower=True)
        except np.linalg.LinAlgError:
            return None
        return cls(factor, scale)

    def solve(self, right: Matrix) -> Matrix:
        scale = self.scale if right.ndim == 1 else self.scale[:, None]
        return np.asarray(cho_solve(self.cholesky, right * scale) * scale)

    @property
    def log_determinant(self) -> float:
        return 2 * float(np.log(self.cholesky[0].diagonal()).sum() - np.log(self.scale).sum())


def _maximise(rows: ProbabilityRows, problem: _Problem, theta: Vector) -> _Point:
    here, passes = problem.at(rows, theta), 1
    while passes < MAX_PASSES:
        step = -here.factor(problem.pseudo_rows).solve(here.gradient)
        predicted_fall = -float(here.gradient @ step) / 2
        if predicted_fall <= TOLERANCE * rows.n_rows:
            theta = problem.normalised(here.theta + step)
            return replace(here, theta=theta, passes=passes, converged=True)
        step *= min(1.0, MAX_STEP / np.abs(step).max())
        there, passes = problem.at(rows, here.theta + step), passes + 1
        if not there.value <= here.value + NOISE * rows.n_rows:
            there, passes = problem.at(rows, here.em_step()), passes + 1
        here = there
    return replace(here, passes=passes)
