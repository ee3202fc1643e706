"""Features of rows computed from whole arrays of logits, over `ops`: what PyTorch and ONNX run.

With t the top class (of equal logits, the first) and d = z - z_t, as in `kernels`:

    r = sum_{k != t} exp(beta d_k)     log s = log1p(r)     H = log s - beta sum d exp(beta d) / s

The top is left out of r, so nothing cancels when a row is confident. A masked class (-inf) has a finite d
from the start, far below all others: replacing a NaN afterwards would leave it in the derivative.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from temperance.core.features import IMPOSSIBLE, LOG_ENTROPY_FLOOR, LOG_PROB_FLOOR, ON_LOGITS_FROM
from temperance.core.maps import MAP_SEGMENTS
from temperance.core.ops import Array, Index, Mask, TensorOps

LOWEST = -1e18  # stands for -inf: times any beta its exponential is 0, and no product of it overflows


@dataclass(frozen=True)
class _Gaps:
    """The top of each row, and the gaps of all classes to it."""

    top: Index
    is_top: Mask
    d: Array


def _gaps_of(z: Array, n_classes: Any, ops: TensorOps) -> _Gaps:
    top = ops.argmax(z)
    d = ops.clip(z - ops.gather(z, top), LOWEST, math.inf)
    return _Gaps(top, ops.one_hot(top, n_classes), d)


class TensorRows:
    """Logits (..., K); outputs are calibrated logits or log-probabilities.

    K may be an array of the framework, if it is known only when the rows are.
    """

    def __init__(self, z: Array, n_classes: Any, ops: TensorOps) -> None:
        self.z, self.n_classes, self.ops = z, n_classes, ops
        self._found: _Gaps | None = None

    @property
    def _gaps(self) -> _Gaps:
        if self._found is None:
            self._found = _gaps_of(self.z, self.n_classes, self.ops)
        return self._found

    @property
    def top(self) -> Index:
        """The column of each row's largest logit."""
        return self._gaps.top

    def _others(self, scaled: Array, gaps: _Gaps) -> Array:
        """Return exp of the scaled gaps, with 0 for the top."""
        return self.ops.where(gaps.is_top, 0.0, self.ops.exp(scaled))

    def _log_sum(self, scaled: Array, gaps: _Gaps) -> Array:
        """Return log sum exp of scaled gaps."""
        return self.ops.log1p(self.ops.sum(self._others(scaled, gaps)))

    def log_confidence(self) -> Array:
        """Return the logarithm of the largest probability."""
        return -self._log_sum(self._gaps.d, self._gaps)

    def log_entropy(self) -> Array:
        """Return log H."""
        return self._log_entropy(self._gaps.d)

    def _log_entropy(self, scaled: Array) -> Array:
        ops = self.ops
        e = self._others(scaled, self._gaps)
        r = ops.sum(e)
        entropy = ops.log1p(r) - ops.sum(scaled * e) / (r + 1.0)
        # The floor comes first: the logarithm of 0 has no derivative. That of two classes is the lowest.
        return ops.log(ops.clip(entropy, math.log(2) * math.exp(LOG_ENTROPY_FLOOR), math.inf))

    def shape_at(self, beta: Array) -> tuple[Array, Array, Array]:
        """Return the shape of beta z."""
        scaled = self._gaps.d * beta
        return self._log_entropy(scaled), self._gap_to_third(scaled), self._gap_to_mean(scaled)

    def _possible(self, scaled: Array) -> Mask:
        return self.ops.greater(scaled, -IMPOSSIBLE)

    def _gap_to_third(self, scaled: Array) -> Array:
        """Return the gap to the third logit; to the second if there is no third; 0 if there is no second."""
        ops, is_at = self.ops, self._gaps.is_top
        gap = ops.gather(scaled, self.top)
        for _ in range(2):
            scaled = ops.where(is_at, LOWEST, scaled)
            at = ops.argmax(scaled)
            is_at = ops.one_hot(at, self.n_classes)
            found = ops.gather(scaled, at)
            gap = ops.where(self._possible(found), found, gap)
        return -gap

    def _gap_to_mean(self, scaled: Array) -> Array:
        """Return the gap to the mean of the possible classes."""
        ops, possible = self.ops, self._possible(scaled)
        number = ops.sum(ops.where(possible, scaled * 0.0 + 1.0, 0.0))
        return -ops.sum(ops.where(possible, scaled, 0.0)) / number

    def _centred(self) -> Array:
        """Return z - mean z; all NaN in a row with a masked class."""
        ops = self.ops
        d = self.z - ops.gather(self.z, ops.argmax(self.z))  # a constant added to the row loses no digits
        mean = ops.sum(d) / float(self.n_classes)
        return d - ops.where(ops.isfinite(mean), mean, math.nan)

    def topk(self, k: int) -> Array:
        """Return the k largest logits minus the row's mean, in descending order."""
        return self.ops.topk(self._centred(), k)

    def project(self, weights: Array) -> Array:
        """Return (z - mean z) . weights."""
        return self.ops.dot(self._centred(), weights)

    def divide(self, temperature: Array) -> Array:
        """Return z / T; a masked class stays at -inf, and out of the derivative by T."""
        ops, possible = self.ops, self.ops.isfinite(self.z)
        return ops.where(possible, ops.where(possible, self.z, 0.0) / temperature, self.z)

    def mixture(self, betas: Sequence[Array], weights: Array | Sequence[Array]) -> Array:
        """Return log sum_j w_j softmax(beta_j z); a masked class stays at -inf."""
        ops = self.ops
        total = None
        for j, beta in enumerate(betas):
            scaled = self._gaps.d * beta
            term = scaled - self._log_sum(scaled, self._gaps) + self._log_weight(weights[j])
            total = term if total is None else self._log_add(total, term)
        return ops.where(ops.isfinite(self.z), total, self.z)

    def mapped_mixture(
        self, reference: Array, knots: Array, slopes: Array, scales: Sequence[Array], weights: Sequence[Array]
    ) -> Array:
        """Return log sum_j w_j softmax(-scale_j map(-log softmax(z / T0))); a masked class stays at -inf."""
        scaled = self._gaps.d / reference
        e = self._log_sum(scaled, self._gaps) - scaled
        mapped = TensorRows(-self._map(e, knots, slopes), self.n_classes, self.ops)
        return self.ops.where(self.ops.isfinite(self.z), mapped.mixture(scales, weights), self.z)

    def _map(self, e: Array, knots: Array, slopes: Array) -> Array:
        """Return the map of e: the slopes times the lengths of [0, e] in the segments."""
        last = MAP_SEGMENTS - 1
        total = self.ops.relu(e - knots[last]) * slopes[last]
        for j in range(last):
            total = total + (self.ops.clip(e, knots[j], knots[j + 1]) - knots[j]) * slopes[j]
        return total

    def shift_classes(self, output: Array, log_ratio: Array) -> Array:
        """Return log-probabilities under new class frequencies; a masked class stays at -inf."""
        shifted = self._log_softmax(output + log_ratio)
        return self.ops.where(self.ops.isfinite(self.z), shifted, self.z)

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
        """Return log softmax(z / T0), not below the floor; far below where a class is impossible."""
        scaled = self._gaps.d / reference
        floored = self.ops.clip(scaled - self._log_sum(scaled, self._gaps), LOG_PROB_FLOOR, math.inf)
        return self.ops.where(self._possible(scaled), floored, LOWEST)

    def _floored_and_centred(self, log_probs: Array) -> Array:
        """Return `kernels.centred`."""
        ops, possible = self.ops, self._possible(log_probs)
        floored = ops.where(possible, ops.clip(log_probs, LOG_PROB_FLOOR, math.inf), 0.0)
        if self.n_classes == 2:
            return ops.where(possible, floored + math.log(2), 0.0)
        number = ops.sum(ops.where(possible, floored * 0.0 + 1.0, 0.0))
        return ops.where(possible, floored - ops.sum(floored) / number, 0.0)

    def _log_weight(self, weight: Array | float) -> Array | float:
        if isinstance(weight, float):
            return math.log(weight)
        # For a weight of 0, a logarithm so low that it adds nothing: -inf minus -inf would be NaN.
        return self.ops.clip(self.ops.log(weight), LOWEST, 0.0)

    def _log_softmax(self, u: Array) -> Array:
        gaps = _gaps_of(u, self.n_classes, self.ops)
        return gaps.d - self._log_sum(gaps.d, gaps)

    def _log_add(self, x: Array, y: Array) -> Array:
        ops, larger = self.ops, self.ops.greater(y, x)
        low, high = ops.where(larger, x, y), ops.where(larger, y, x)
        return high + ops.log1p(ops.exp(low - high))
