"""A class bias, added to the calibrated log-probabilities l of a method that keeps the class, and its fit.

    u = l / T + W x,      p = softmax(u),      x = [1]  or  x = [1, centred l]          W: K x J

W's first column has one bias per class. The others, the interactions, let the bias of a class depend on the
probabilities of all classes. In x, l has a floor, so that no single row has high leverage, and is centred
over the possible classes of the row. An impossible class has x = 0, and keeps probability 0. With two
classes, x is log(2 p) of each, so the log-odds can have different slopes at small and at large probabilities,
as in beta calibration (Kull, Silva Filho and Flach 2017).

With a = log T, g = du/da = -l / T and y the label's indicator:

    gradient  of a: (p - y) . g                  of W: (p - y) x'
    Fisher    a, a: Var_p g      a, W: p (g - E_p g) x'      W, W: (diag p - p p') x x'

A Newton step from this one fit gives the logits of row i that a fit to all other rows would give,

    u - u without i = -A (I - w L A)^-1 w (p - y),      A = J C J',      L = diag p - p p'

with w the row's weight, C the posterior covariance and J the derivative of u. A row with a weight above 1
stands for several rows, of which one is left out: w = 1. If only the diagonal of C^-1 is known, L and A are
also taken to be diagonal. If rows belong together, their group g is left out instead, by the same step:

    theta without g = theta + (H - F_g)^-1 gradient_g,      H: the information of all rows and of the prior

T, bias and interactions have priors centred at "no change". Their widths maximise the evidence, under a
hyperprior that a few rows cannot override.

How much of a bias the rows support depends on their number. Few rows determine one direction best: how often
each class is predicted, m, against how often it occurs, n. With N rows, and a number a of pseudo-rows whose
labels occur as predicted,

    b_k = log(q_k / m_k),      q_k = (n_k + a m_k) / (N + a)

With many rows of up to `MAX_INTERACTING` classes, a bias of the logits themselves, l = log softmax(z / T0),
can correct errors of the map before it. So a prediction is the mean of no change and of all kinds
(`CLASS_BIASES`), each with a weight proportional to

    its prior weight times exp(1/2 sum_i log p(y_i), as predicted without row i)

The factor 1/2 is for caution: the sums are estimates, and a difference of a few units is decisive. With two
classes the kinds have few parameters, and the factor is 1. With groups, sums and pseudo-rows are in units of
independent rows (`design_effect`): the sums are divided by the design effect of the kind, the largest of its
blocks, and a is multiplied by the design effect of the class bias proper. A kind with a weight below
`MIN_WEIGHT` is left out, so that no predicted class changes where no bias helps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np

from temperance.core.arrays import Floats, Indices, Matrix, Vector
from temperance.core.blocks import FEW_CLASSES, Scratch
from temperance.core.design_effect import parts_to_leave_out, rows_by_group
from temperance.core.evidence import Block, Posterior, alternate, maximise_evidence
from temperance.core.features import IMPOSSIBLE, MAX_INTERACTING, ON_LOGITS_FROM, n_class_biases
from temperance.core.fisher import lbfgs
from temperance.core.kernels import LOWEST, Offsets, centred, exponentiate
from temperance.core.logit_rows import Index, LogitRows
from temperance.core.objective import FitData, ObjectivePoint, Prior, RowObjective, weighted_sum
from temperance.core.solution import Solution, Solver

# Prior weights of no change and of the kinds of class bias, chosen on public tasks with 20 to 5,000 rows.
NO_CHANGE, PRIOR_WEIGHTS = 0.3, np.array([0.2, 0.3, 0.15, 0.05])
CAUTION = 0.5  # power of the leave-one-out likelihood
CAUTION_OF_TWO = 1.0  # the same for two classes, which have few parameters
MIN_WEIGHT = 0.02
PSEUDO_ROWS = np.array([0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0])  # a, per class
MIN_FREQUENCY = 1e-12  # of a predicted class, which is 0 if the class is impossible in all rows
# Standard deviations of interactions and biases of logits: narrow and wide.
WIDTHS_ON_LOGITS = (0.3, 1.0), (1.0, 3.0)
# The largest factor of the widths of interactions, where T0 makes all log-probabilities nearly equal.
MAX_WIDENING = 1e3
LOG_TEMPERATURE_WIDTH = 0.5  # of logits, whose temperature T0 is only a reference
FIXED = 1e9  # a freedom this large fixes the width of a prior
BLOCKS = "log T", "bias", "interactions"
STANDARD_ERRORS = 0.02  # largest distance of a coefficient from its optimum, without a matrix
# Numbers in the rows that the widths are estimated from: with fewer, a rare class might have no label.
WIDTH_NUMBERS = 1 << 17


@dataclass(frozen=True)
class _Block:
    """Some rows at theta: l with a finite number for -inf, x, p, and log sum exp u minus u of the label."""

    log_probs: Floats
    x: Floats
    p: Floats
    loss: Vector
    at_label: tuple[Indices, Indices]

    @property
    def residual(self) -> Floats:
        """The probabilities minus the label's indicator."""
        residual = self.p.copy(order="K")
        residual[self.at_label] -= 1
        return residual


OfBlock = Callable[[_Block, slice], tuple[Vector, ...]]
"""From a block and the slice of its rows to arrays that are added up over the blocks."""


class ClassBiasLikelihood(RowObjective):
    """The mean negative log-likelihood as a function of [log T, bias, columns of the interactions].

    The rows hold log-probabilities.
    """

    def __init__(
        self, rows: LogitRows, weights: Vector | None = None, prior: Prior | None = None, *, interacting: bool
    ) -> None:
        super().__init__(rows, weights, prior)
        self.interacting = interacting
        self._dtype = np.dtype(np.float64) if interacting else rows.dtype
        self._width = 1 + rows.n_classes if interacting else 1
        self.n_parameters = 1 + rows.n_classes * self._width

    def _of_rows(self, rows: LogitRows, index: Index, weights: Vector | None) -> Self:
        return type(self)(rows, weights, self.prior, interacting=self.interacting)

    def evaluate(self, theta: Vector, with_fisher: bool) -> ObjectivePoint:
        """Return the value and the derivatives, without the prior."""
        offsets = Offsets.of(theta, self.rows.n_classes)

        def work(block: _Block, at: slice) -> tuple[Vector, Vector, Matrix]:
            share, residual = self.share[at], block.residual
            of_temperature = share @ self._slopes(block, at)
            of_offsets = (block.x * share[:, None].astype(self._dtype)).T @ residual
            value = np.array([share @ block.loss])
            return value, np.array([offsets.beta * of_temperature]), of_offsets.astype(np.float64)

        value, own, of_offsets = self._sum(offsets, work)
        gradient = np.concatenate([own, of_offsets.ravel()])
        return ObjectivePoint(float(value[0]), gradient, self._fisher(offsets) if with_fisher else None)

    def diagonal(self, theta: Vector) -> Vector:
        """Return the diagonal of the Fisher matrix plus a diagonal prior, without forming the matrix."""
        offsets = Offsets.of(theta, self.rows.n_classes)

        def work(block: _Block, at: slice) -> tuple[Vector, Matrix]:
            p, share = block.p, self.share[at]
            of_temperature = share @ _variances(p, block.log_probs)
            of_offsets = (block.x**2 * share[:, None].astype(self._dtype)).T @ (p - p * p)
            return np.array([offsets.beta**2 * of_temperature]), of_offsets.astype(np.float64)

        own, of_offsets = self._sum(offsets, work)
        diagonal = np.concatenate([own, of_offsets.ravel()])
        return diagonal if self.prior is None else diagonal + self.prior.precision

    def leave_one_out_log_probs(self, theta: Vector, covariance: Matrix) -> Vector:
        """Return log p of each row's label, as predicted by the fit to all other rows.

        `covariance` is the posterior covariance or, with one axis, 1 / the diagonal of the precision.
        """
        offsets = Offsets.of(theta, self.rows.n_classes)
        shift = _shift_by_matrix if covariance.ndim == 2 else _shift_by_diagonal
        result = np.empty(self.rows.n_rows)
        weights = np.minimum(self.share * self.total_weight, 1.0)

        def work(block: _Block, at: slice) -> tuple[()]:
            slope = np.where(block.log_probs > -IMPOSSIBLE, -offsets.beta * block.log_probs, 0)
            log_p = shift(block, slope, block.residual, weights[at, None], covariance)
            with np.errstate(divide="ignore"):
                log_p += np.log(block.p)
            _, log_sums = exponentiate(log_p.copy())
            result[at] = log_p[block.at_label] - log_sums
            return ()

        K = self.rows.n_classes
        self._sum(offsets, work, K * (self._width * K if self.interacting else 8))
        return result

    def leave_groups_out_log_probs(self, theta: Vector, inverse_information: Matrix) -> Vector:
        """Return log p of each row's label, as predicted by the fit to all other groups.

        `inverse_information` has one axis if only the diagonal of the information is known.
        """
        assert self.groups is not None
        K, result = self.rows.n_classes, np.empty(self.rows.n_rows)
        inverse = np.linalg.inv if inverse_information.ndim == 2 else np.reciprocal
        information = np.asarray(inverse(inverse_information), np.float64)
        for at in rows_by_group(parts_to_leave_out(self.groups)):
            some = self.take(at)
            total = some.total_weight
            _, gradient, fisher = some.evaluate(theta, with_fisher=information.ndim == 2)
            if fisher is not None:
                step = np.linalg.solve(information - total * fisher, total * gradient)
            else:
                step = total * gradient / (information - total * some.diagonal(theta))
            moved = Offsets.of(theta + step, K)
            # As for a row, u is taken to be linear in log T and in the parameters.
            beta = Offsets.of(theta, K).beta * (1 - step[0])
            result[at] = -some.losses(replace(moved, beta=float(beta)))
        return result

    def losses(self, offsets: Offsets) -> Vector:
        """Return the negative log-likelihood of each row."""
        result = np.empty(self.rows.n_rows)

        def work(block: _Block, at: slice) -> tuple[()]:
            result[at] = block.loss
            return ()

        self._sum(offsets, work)
        return result

    def scores(self, theta: Vector) -> Matrix:
        """Return the gradient of the loss of each row, (N, parameters), without the prior."""
        offsets = Offsets.of(theta, self.rows.n_classes)
        result = np.empty((self.rows.n_rows, self.n_parameters))

        def work(block: _Block, at: slice) -> tuple[()]:
            result[at, 0] = offsets.beta * self._slopes(block, at)
            result[at, 1:] = _row_outer(block.residual, block.x)
            return ()

        self._sum(offsets, work, self.n_parameters)
        return result

    def _slopes(self, block: _Block, at: slice) -> Vector:
        """Return how far log p of each label is above the mean of its row."""
        return self.rows.label_gap[at] + self.rows.peak[at] - _dots(block.p, block.log_probs)

    def _sum(self, offsets: Offsets, work: OfBlock, width: int = 0) -> list[Vector]:
        """Add up what `work` returns per block, whose rows need `width` numbers, in one pass."""
        labels = self.rows.labels
        assert labels is not None

        def on_block(z: Floats, i: int, j: int, scratch: Scratch) -> tuple[Vector, ...]:
            # With few classes the inner loops run along the rows.
            log_probs = np.empty(z.shape, self._dtype, "F" if z.shape[1] < FEW_CLASSES else "C")
            lowest = self._dtype.type(
                LOWEST[self._dtype.itemsize]
            )  # a plain number would change the type of z
            np.maximum(z, lowest, out=log_probs)
            x: Floats = np.ones((j - i, 1), self._dtype)
            u = log_probs * self._dtype.type(offsets.beta)
            u += offsets.bias.astype(self._dtype)
            if offsets.interactions is not None:
                of_classes = centred(log_probs)
                u += of_classes @ offsets.interactions.T
                x = np.hstack([x, of_classes])
            at_label = np.arange(j - i), labels[i:j]
            u_label = u[at_label].astype(np.float64)
            sums, log_sums = exponentiate(u)
            u /= sums[:, None].astype(self._dtype)
            return work(_Block(log_probs, x, u, log_sums - u_label, at_label), slice(i, j))

        in_bytes = self.rows.n_classes * self._dtype.itemsize  # so that a block stays in the cache
        return self.rows.sum(on_block, width or in_bytes)

    def _fisher(self, offsets: Offsets) -> Matrix:
        K, J = self.rows.n_classes, self._width

        def work(block: _Block, at: slice) -> tuple[Vector, Vector, Matrix, Matrix]:
            parts = block.p, block.x, self.share[at, None]
            p, x, share = (part.astype(self.rows.dtype) for part in parts)
            off = block.log_probs - _dots(p, block.log_probs)[:, None]
            spread = p * off * share
            root = _row_outer(p * np.sqrt(share), x)
            sums = np.sum(spread * off), x.T @ spread, root.T @ root, (p * share).T @ _row_outer(x, x)
            own, cross, outer, diagonal = (np.asarray(part, np.float64) for part in sums)
            return own.reshape(1), cross.ravel(), outer, diagonal

        own, cross, outer, diagonal = self._sum(offsets, work, K * J)
        within = -outer
        for k in range(K):
            within[k::K, k::K] += diagonal[k].reshape(J, J)
        cross *= -offsets.beta
        corner = np.array([[offsets.beta**2 * own[0]]])
        return np.block([[corner, cross[None, :]], [cross[:, None], within]])


def _row_outer(a: Floats, x: Floats) -> Floats:
    """Return the products x_j a_k of each row, as one row of J K numbers."""
    return (x[:, :, None] * a[:, None, :]).reshape(len(a), x.shape[1] * a.shape[1])


def _dots(p: Floats, q: Floats) -> Vector:
    """Return the sum of p q over the classes of each row."""
    return np.einsum("ij,ij->i", p, q).astype(np.float64)


def _variances(p: Floats, values: Floats) -> Vector:
    off = values - _dots(p, values)[:, None].astype(values.dtype)
    return _dots(p * off, off)


def _shift_by_matrix(
    block: _Block, slope: Floats, residual: Floats, weights: Matrix, covariance: Matrix
) -> Matrix:
    """Return the change of each row's u if the row is left out."""
    n, K = residual.shape
    J = block.x.shape[1]
    within = covariance[1:, 1:].reshape(J, K * J * K)
    half = (block.x @ within).reshape(n, K, J, K)
    A = np.einsum("nkjl,nj->nkl", half, block.x)
    with_slope = slope[:, :, None] * (block.x @ covariance[0, 1:].reshape(J, K))[:, None, :]
    A += with_slope + with_slope.transpose(0, 2, 1)
    A += covariance[0, 0] * slope[:, :, None] * slope[:, None, :]
    p = block.p
    LA = p[:, :, None] * (A - np.einsum("nk,nkl->nl", p, A)[:, None, :])
    moved = np.linalg.solve(np.eye(K) - weights[:, :, None] * LA, (weights * residual)[:, :, None])
    return np.asarray((A @ moved)[:, :, 0])


def _shift_by_diagonal(
    block: _Block, slope: Floats, residual: Floats, weights: Matrix, variances: Vector
) -> Matrix:
    """Return the change of each row's u if the row is left out, without covariances between parameters."""
    K, p, slope = residual.shape[1], block.p.astype(np.float64), slope.astype(np.float64)
    A = block.x.astype(np.float64) ** 2 @ variances[1:].reshape(-1, K)
    shift: Matrix = A * residual * weights / (1 - weights * A * p * (1 - p))
    weight = weights[:, 0]
    pull = variances[0] * weight * _dots(residual, slope)
    shift += slope * (pull / (1 - variances[0] * weight * _variances(p, slope)))[:, None]
    return shift


class Kind(NamedTuple):
    """One kind of class bias: its terms, its effective parameters, how well it predicts left-out rows."""

    offsets: Offsets
    effective_parameters: float
    held_out: float
    """The sum of the logarithms of the probabilities of the labels."""
    solution: Solution | None = None
    design_effect: float = 1.0


@dataclass(frozen=True, eq=False)
class ClassBias:
    """The fitted kinds of class bias with their weights; the remaining weight belongs to no change."""

    weights: Vector
    kinds: tuple[Kind, ...]

    @property
    def effective_parameters(self) -> float:
        """The number of parameters, each kind with its weight."""
        return float(self.weights @ [kind.effective_parameters for kind in self.kinds])

    @property
    def failed(self) -> Solution | None:
        """The solution of a kind in use that did not converge, if there is one."""
        used = [kind.solution for weight, kind in zip(self.weights, self.kinds, strict=True) if weight > 0]
        return next((one for one in used if one is not None and not one.converged), None)


def fit_class_bias(data: FitData, on_logits: FitData | None = None, *, auto: bool) -> ClassBias:
    """Fit the kinds of class bias to rows of log-probabilities; without `auto`, only the class bias proper.

    `on_logits` are the same rows with the logarithms of softmax(z / T0), for up to `MAX_INTERACTING` classes.
    Up to this number, the posterior has a full covariance. With more classes, there is only a bias, and
    covariances between classes are neglected: any number of classes is possible, at the cost of about forty
    to eighty passes over the rows.
    """
    K = data.n_classes
    kinds = [Kind(Offsets(1.0, np.zeros(K), None), 0.0, -np.inf)] * n_class_biases(K)
    kinds[1] = _fit_kind(data, _blocks(K, interacting=K <= MAX_INTERACTING), compared=auto)
    if not auto:
        return ClassBias(np.eye(len(kinds))[1], tuple(kinds))
    kinds[0] = _match_frequencies(data, kinds[1].design_effect)
    if on_logits is not None:
        # A classifier that is wrong as often as correct has a large T0, which does not determine the slope.
        (squares,) = on_logits.total(_squares)
        spread = np.sqrt(squares[0] / (on_logits.total_weight * K))
        widening = 1 / np.clip(spread, 1 / MAX_WIDENING, 1.0)
        for kind, (of_interactions, of_bias) in enumerate(WIDTHS_ON_LOGITS, start=ON_LOGITS_FROM):
            scales = (1, LOG_TEMPERATURE_WIDTH), (K, of_bias), (K * K, widening * of_interactions)
            blocks = [Block.of_scale(name, *scale, FIXED) for name, scale in zip(BLOCKS, scales, strict=True)]
            kinds[kind] = _fit_kind(on_logits, blocks)
    (unchanged,) = data.total(
        lambda rows, weights: (weighted_sum((rows.label_gap + rows.peak)[:, None], weights),)
    )
    gains = np.array([(kind.held_out - unchanged[0]) / kind.design_effect for kind in kinds])
    gains *= CAUTION_OF_TWO if K == 2 else CAUTION
    logs = np.append(np.log(NO_CHANGE), np.log(PRIOR_WEIGHTS[: len(kinds)]) + gains)
    shares = np.exp(logs - logs.max())
    shares[1:][shares[1:] < MIN_WEIGHT * shares.sum()] = 0.0
    return ClassBias(shares[1:] / shares.sum(), tuple(kinds))


def _squares(rows: LogitRows, weights: Vector | None) -> tuple[Vector]:
    """Return the sum of x squared over the classes and rows."""
    share = np.ones(rows.n_rows) if weights is None else weights

    def work(z: Floats, i: int, j: int, scratch: Scratch) -> tuple[Vector]:
        x = centred(z).astype(np.float64)
        return (np.array([share[i:j] @ _dots(x, x)]),)

    return (rows.sum(work)[0],)


def _blocks(n_classes: int, *, interacting: bool) -> list[Block]:
    """Return the priors of log T, bias and interactions, or diagonal priors of log T and bias."""
    block = partial(Block.of_scale, diagonal=not interacting)
    blocks = [block(BLOCKS[0], 1, 0.1, FIXED), block(BLOCKS[1], n_classes, 0.2, 2.0)]
    return [*blocks, block(BLOCKS[2], n_classes**2, 0.06, 1.0)] if interacting else blocks


def _fit_kind(data: FitData, blocks: list[Block], *, compared: bool = True) -> Kind:
    """Fit temperature, bias and, with a third block, interactions; if `compared`, also leave rows out."""
    build = partial(ClassBiasLikelihood, interacting=len(blocks) == 3)
    posterior = _posterior(data, build, blocks)
    mode, held_out = posterior.mode, np.zeros(1)
    if compared and data.groups is not None:
        log_probs = data.objective(build).leave_groups_out_log_probs(mode, posterior.inverse_information)
        held_out = _sum_of_logs(log_probs, data.weights)
    elif compared:
        covariance = posterior.covariance

        def left_out(rows: LogitRows, weights: Vector | None) -> tuple[Vector]:
            log_probs = build(rows, weights).leave_one_out_log_probs(mode, covariance)
            return (_sum_of_logs(log_probs, weights),)

        (held_out,) = data.total(left_out)
    effective = sum(list(posterior.effective.values())[1:])
    design_effect = max(posterior.design_effects.values())
    offsets = Offsets.of(mode, data.n_classes)
    return Kind(offsets, effective, float(held_out[0]), posterior.solution, design_effect)


def _sum_of_logs(log_probs: Vector, weights: Vector | None) -> Vector:
    """Return the weighted sum; a row of weight 0 adds nothing, even if its label is impossible."""
    counted = log_probs if weights is None else np.where(weights > 0, log_probs, 0.0)
    return weighted_sum(counted[:, None], weights)


Build = Callable[[LogitRows, Vector | None], ClassBiasLikelihood]


def _posterior(data: FitData, build: Build, blocks: list[Block]) -> Posterior:
    """Return the posterior of the coefficients in the blocks.

    A matrix of many classes would be too large: then L-BFGS finds the coefficients. Each is measured in units
    of its standard error times the square root of the total weight, so that one tolerance fits all of them.
    """
    objective, start = data.objective(build), np.concatenate([block.mean for block in blocks])
    if blocks[0].precision.ndim == 2:
        width_rows = WIDTH_NUMBERS // data.n_classes
        return maximise_evidence(objective, blocks, start, data.n_rows, width_rows=width_rows)
    total = data.total_weight

    def fit(start: Vector, prior: Prior) -> tuple[Solution, Vector]:
        def diagonal(rows: LogitRows, weights: Vector | None) -> tuple[Vector]:
            part = build(rows, weights)
            return (part.diagonal(start) * part.total_weight,)

        information = data.total(diagonal)[0] + prior.precision * total
        solution = lbfgs(
            objective.with_prior(prior),
            start,
            Solver.LBFGS_MANY_PARAMETERS,
            scale=np.sqrt(total / information),
            tolerance=STANDARD_ERRORS / np.sqrt(total),
        )
        # A constant added to all biases changes only the prior, by less than the tolerance.
        bias = solution.parameters[1:]
        centred = np.append(solution.parameters[0], bias - bias.mean())
        return replace(solution, parameters=centred), 1 / information

    return alternate(objective, blocks, start, fit)


def _match_frequencies(data: FitData, design_effect: float = 1.0) -> Kind:
    """Match the predicted class frequencies to the label frequencies, with the best number of pseudo-rows."""
    labels, predicted = data.total(_frequencies)
    pseudo_rows = PSEUDO_ROWS * data.n_classes * design_effect
    if data.groups is None:
        held_out = data.total(partial(_frequencies_held_out, labels, predicted, pseudo_rows))[0]
    else:
        held_out = _frequencies_without_groups(data, labels, predicted, pseudo_rows)
    best = int(np.argmax(held_out))
    total, a = data.total_weight, pseudo_rows[best]
    ratio = _frequency_ratio(labels, predicted, total, a) / (total + a)
    offsets = Offsets(1.0, np.log(ratio), None)
    effective = (data.n_classes - 1) * total / (total + a)
    return Kind(offsets, effective, float(held_out[best]), design_effect=design_effect)


def _frequency_ratio(labels: Floats, predicted: Floats, total: Any, pseudo_rows: float) -> Floats:
    """Return (n_k + a m_k) / m_k."""
    frequency = np.maximum(predicted / total, MIN_FREQUENCY)
    ratio: Floats = np.maximum(labels / frequency + pseudo_rows, MIN_FREQUENCY)
    return ratio


def _frequencies(rows: LogitRows, weights: Vector | None) -> tuple[Vector, Vector]:
    """Return the sums of label indicators and of probabilities."""
    assert rows.labels is not None
    share = np.ones(rows.n_rows) if weights is None else weights

    def work(z: Floats, i: int, j: int, scratch: Scratch) -> tuple[Vector]:
        return (share[i:j] @ np.exp(z, dtype=np.float64),)

    counts = np.bincount(rows.labels, share, rows.n_classes).astype(np.float64)
    return counts, rows.sum(work)[0]


def _frequencies_held_out(
    labels: Vector, predicted: Vector, pseudo_rows: Vector, rows: LogitRows, weights: Vector | None
) -> tuple[Vector]:
    """Return the leave-one-out log-likelihood of matched frequencies, by number of pseudo-rows."""
    assert rows.labels is not None
    share, columns = np.ones(rows.n_rows) if weights is None else weights, rows.labels
    total = float(labels.sum())

    def work(z: Floats, i: int, j: int, scratch: Scratch) -> tuple[Vector]:
        at, own = (np.arange(j - i), columns[i:j]), np.minimum(share[i:j], 1.0)[:, None]
        p = np.exp(z, dtype=np.float64)
        others = np.broadcast_to(labels, p.shape).copy()
        others[at] -= own[:, 0]
        without = predicted - own * p, np.maximum(total - own, MIN_FREQUENCY)
        sums = []
        for a in pseudo_rows:
            ratio = _frequency_ratio(others, *without, a)
            log_p = z[at] + np.log(ratio[at]) - np.log(np.einsum("ij,ij->i", p, ratio))
            sums.append(share[i:j] @ log_p)
        return (np.array(sums),)

    return (rows.sum(work)[0],)


def _frequencies_without_groups(
    data: FitData, labels: Vector, predicted: Vector, pseudo_rows: Vector
) -> Vector:
    """Return the log-likelihood of matched frequencies with groups left out, by number of pseudo-rows."""
    assert data.groups is not None
    sums = np.zeros(len(pseudo_rows))
    for at in rows_by_group(parts_to_leave_out(data.groups)):
        weights = None if data.weights is None else data.weights[at]
        rows = data.rows.take(at)
        own_labels, own_predicted = _frequencies(rows, weights)
        total = max(data.total_weight - own_labels.sum(), MIN_FREQUENCY)
        likelihood = ClassBiasLikelihood(rows, weights, interacting=False)
        for k, a in enumerate(pseudo_rows):
            ratio = _frequency_ratio(labels - own_labels, predicted - own_predicted, total, a)
            losses = likelihood.losses(Offsets(1.0, np.log(ratio), None))
            sums[k] -= float(weighted_sum(losses, weights))
    return sums
