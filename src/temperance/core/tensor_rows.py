"""Features of rows, computed from whole arrays of logits with `ops`: what PyTorch and ONNX run.

With d = z - max z, and n the number of classes at the top (more than one if logits are equal):

    r = n - 1 + sum_{d < 0} exp(beta d)     log s = log1p(r)     H = log s - beta sum d exp(beta d) / s

Top classes are left out of the sum, so nothing cancels when a row is confident. A masked class (-inf) has a
finite d from the start, far below all others: replacing a NaN afterwards would leave it in the derivative.
Conditions are factors of 0 or 1: choosing between two arrays, or looking for the index of the largest number,
takes PyTorch ten times as long.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from temperance.core.features import (
    ALMOST_CERTAIN,
    IMPOSSIBLE,
    LOG_ENTROPY_FLOOR,
    LOG_PROB_FLOOR,
    ON_LOGITS_FROM,
)
from temperance.core.maps import MAP_SEGMENTS
from temperance.core.ops import Array, Index, Mask, TensorOps

SMALLEST = 1e-37  # smaller probabilities are raised to it before the logarithm
LOWEST = -1e18  # replaces -inf: times any beta its exponential is 0, and none of its products overflows


@dataclass(frozen=True)
class _Gaps:
    """The gaps of all classes to the top of their row, which of them are below it, and how many are at it."""

    d: Array
    below: Array
    n_top: Array


def _gaps_of(z: Array, ops: TensorOps) -> _Gaps:
    d = ops.clip(z - ops.max(z), LOWEST, math.inf)
    below = ops.number(ops.greater(-d, 0.0), d)
    return _Gaps(d, below, ops.sum(1.0 - below))


class TensorRows:
    """Logits (..., K); outputs are calibrated logits or log-probabilities.

    K can be an array of the framework, if it is known only when the rows are.
    """

    def __init__(self, z: Array, n_classes: Any, ops: TensorOps) -> None:
        self.z, self.n_classes, self.ops = z, n_classes, ops
        self._found: _Gaps | None = None

    @property
    def _gaps(self) -> _Gaps:
        if self._found is None:
            self._found = _gaps_of(self.z, self.ops)
        return self._found

    @property
    def top(self) -> Index:
        """The column of each row's largest logit; the first if there are several."""
        return self.ops.argmax(self.z)

    def _log_sum(self, scaled: Array, gaps: _Gaps) -> Array:
        """Return log sum exp of scaled gaps."""
        ops = self.ops
        return ops.log1p(ops.sum(ops.exp(scaled) * gaps.below) + (gaps.n_top - 1.0))

    def log_confidence(self) -> Array:
        """Return the logarithm of the largest probability."""
        return -self._log_sum(self._gaps.d, self._gaps)

    def log_entropy(self) -> Array:
        """Return log H."""
        return self._log_entropy(self._gaps.d)

    def _log_entropy(self, scaled: Array) -> Array:
        ops, gaps = self.ops, self._gaps
        e = ops.exp(scaled) * gaps.below
        r = ops.sum(e) + (gaps.n_top - 1.0)
        entropy = ops.log1p(r) - ops.sum(scaled * e) / (r + 1.0)
        # The floor comes first: the logarithm of 0 has no derivative. The floor of two classes is the lowest.
        return ops.log(ops.clip(entropy, math.log(2) * math.exp(LOG_ENTROPY_FLOOR), math.inf))

    def shape_at(self, beta: Array) -> tuple[Array, Array, Array]:
        """Return the shape of beta z."""
        scaled = self._gaps.d * beta
        return self._log_entropy(scaled), self._gap_to_third(scaled), self._gap_to_mean(scaled)

    def _possible(self, scaled: Array) -> Mask:
        return self.ops.greater(scaled, -IMPOSSIBLE)

    def _gap_to_third(self, scaled: Array) -> Array:
        """Return the gap to the third logit, else to the second, else 0."""
        ops, gaps = self.ops, self._gaps
        second = ops.max(scaled + (gaps.below - 1.0) * -LOWEST)
        below = ops.number(ops.greater(second - scaled, 0.0), scaled)
        third = ops.max(scaled + (below - 1.0) * -LOWEST)
        gap = ops.max(scaled)
        # Tied logits count separately: go down until three are as high or higher.
        for lower, n_above in ((second, gaps.n_top), (third, ops.sum(1.0 - below))):
            found = ops.where(self._possible(lower), lower, gap)
            gap = ops.where(ops.greater(n_above, 2.0), gap, found)
        return -gap

    def _gap_to_mean(self, scaled: Array) -> Array:
        """Return the gap to the mean of the possible classes."""
        ops = self.ops
        possible = ops.number(self._possible(scaled), scaled)
        return -ops.sum(scaled * possible) / ops.sum(possible)

    def _centred(self) -> Array:
        """Return z - mean z; all NaN in a row with a masked class."""
        ops = self.ops
        d = self.z - ops.gather(self.z, ops.argmax(self.z))  # a constant in the row loses no precision
        mean = ops.sum(d) / float(self.n_classes)
        return d - ops.where(ops.isfinite(mean), mean, math.nan)

    def topk(self, k: int) -> Array:
        """Return the k largest logits minus the row's mean, in descending order."""
        return self.ops.topk(self._centred(), k)

    def project(self, weights: Array) -> Array:
        """Return (z - mean z) . weights."""
        return self.ops.dot(self._centred(), weights)

    def divide(self, temperature: Array) -> Array:
        """Return z / T; a masked class stays at -inf, and out of the derivative by T of the row."""
        ops = self.ops
        if getattr(temperature, "shape", None) == ():  # one for all rows
            return self.z / temperature
        possible = ops.isfinite(self.z)
        return ops.where(possible, ops.where(possible, self.z, 0.0) / temperature, self.z)

    def mixture(self, betas: Sequence[Array], weights: Array | Sequence[Array]) -> Array:
        """Return log sum_j w_j softmax(beta_j z); a masked class stays at -inf."""
        return self._unmasked(self._log_mixture(self._gaps, betas, weights))

    def _log_mixture(self, gaps: _Gaps, betas: Sequence[Array], weights: Array | Sequence[Array]) -> Array:
        total = None
        for j, beta in enumerate(betas):
            scaled = gaps.d * beta
            term = scaled - self._log_sum(scaled, gaps) + self._log_weight(weights[j])
            total = term if total is None else self._log_add(total, term)
        return total

    def mapped_mixture(
        self,
        reference: Array,
        knots: Array,
        slopes: Array,
        scales: Sequence[Array],
        weights: Sequence[Array],
        uniform: Array | None = None,
    ) -> Array:
        """Return log(sum_j w_j softmax(-scale_j map(-log softmax(z / T0))) + uniform); -inf stays."""
        ops, gaps = self.ops, self._gaps
        scaled = gaps.d / reference
        u = -self._map(self._log_sum(scaled, gaps) - scaled, knots, slopes)
        d = u - ops.max(u)
        if uniform is None:
            mapped = _Gaps(d, gaps.below, gaps.n_top)
            return self._unmasked(self._log_mixture(mapped, scales, weights))
        probs = None
        for j, scale in enumerate(scales):
            e = ops.exp(d * scale)
            part = e * (weights[j] / ops.sum(e))
            probs = part if probs is None else probs + part
        unmasked = ops.number(ops.greater(self.z, -math.inf), d)
        return self._unmasked(self._log_of(probs + unmasked * (uniform / ops.sum(unmasked))))

    def _log_of(self, probs: Array) -> Array:
        """Return the logarithm, without cancellation for a top class that is almost certain."""
        ops, below = self.ops, self._gaps.below
        # Without a uniform part, a probability can underflow.
        logs, top = ops.log(ops.clip(probs, SMALLEST, math.inf)), ops.max(probs)
        others = ops.clip(ops.sum(probs * below), 0.0, 0.5)
        exact = ops.where(ops.greater(top, ALMOST_CERTAIN), ops.log1p(-others) - ops.log(top), 0.0)
        return logs + (1.0 - below) * exact

    def _unmasked(self, output: Array) -> Array:
        """Return the output, with -inf for a masked class."""
        return self.ops.where(self.ops.greater(self.z, -math.inf), output, self.z)

    def _map(self, e: Array, knots: Array, slopes: Array) -> Array:
        """Return the map of e >= 0: each knot changes the slope beyond it."""
        total = e * slopes[0]
        for j in range(1, MAP_SEGMENTS):
            total = total + self.ops.relu(e - knots[j]) * (slopes[j] - slopes[j - 1])
        return total

    def shift_classes(self, output: Array, log_ratio: Array) -> Array:
        """Return log-probabilities under new class frequencies; a masked class stays at -inf."""
        shifted = self._log_softmax(output + log_ratio)
        return self._unmasked(shifted)

    def class_biases(
        self,
        log_probs: Array,
        reference: Array,
        weights: Array,
        betas: Array,
        biases: Array,
        interactions: Array | None,
    ) -> Array:
        """Return log((1 - sum_j w_j) p + sum_j w_j softmax(beta_j l_j + b_j + M_j x_j)); -inf stays."""
        ops, n_biases = self.ops, weights.shape[0]
        base = ops.clip(log_probs, LOWEST, math.inf)
        rest = 1.0 - weights[0]
        for j in range(1, n_biases):
            rest = rest - weights[j]
        total = base + self._log_weight(ops.clip(rest, 0.0, 1.0))
        inputs = [base, self._floored_log_probs(reference)] if n_biases > ON_LOGITS_FROM else [base]
        for j in range(n_biases):
            given = inputs[int(j >= ON_LOGITS_FROM)]
            u = given * betas[j] + biases[j]
            if interactions is not None and j > 0:
                u = u + ops.matmul(self._floored_and_centred(given), ops.transpose(interactions[j - 1]))
            total = self._log_add(total, self._log_softmax(u) + self._log_weight(weights[j]))
        return ops.where(ops.isfinite(log_probs), total, log_probs)

    def _floored_log_probs(self, reference: Array) -> Array:
        """Return log softmax(z / T0), at least the floor; far below it where a class is impossible."""
        scaled = self._gaps.d / reference
        floored = self.ops.clip(scaled - self._log_sum(scaled, self._gaps), LOG_PROB_FLOOR, math.inf)
        return self.ops.where(self._possible(scaled), floored, LOWEST)

    def _floored_and_centred(self, log_probs: Array) -> Array:
        """Return `kernels.centred`."""
        ops, possible = self.ops, self._possible(log_probs)
        floored = ops.where(possible, ops.clip(log_probs, LOG_PROB_FLOOR, math.inf), 0.0)
        if self.n_classes == 2:
            return ops.where(possible, floored + math.log(2), 0.0)
        number = ops.sum(ops.number(possible, floored))
        return ops.where(possible, floored - ops.sum(floored) / number, 0.0)

    def _log_weight(self, weight: Array | float) -> Array | float:
        if isinstance(weight, float):
            return math.log(weight)
        # For a weight of 0, use a logarithm so low that it adds nothing: -inf minus -inf would be NaN.
        return self.ops.clip(self.ops.log(weight), LOWEST, 0.0)

    def _log_softmax(self, u: Array) -> Array:
        gaps = _gaps_of(u, self.ops)
        return gaps.d - self._log_sum(gaps.d, gaps)

    def _log_add(self, x: Array, y: Array) -> Array:
        ops, larger = self.ops, self.ops.greater(y, x)
        low, high = ops.where(larger, x, y), ops.where(larger, y, x)
        return high + ops.log1p(ops.exp(low - high))
