"""Bins of equal width for confidences, and the ECE of the top class as a training loss, for PTS.

Bin i of M holds (i - 1) / M < c <= i / M. Confidences are compared with edges in their own dtype. Rounding is
monotone, so a confidence that is i / M up to the rounding of its dtype equals the edge, and goes to bin i.
Computing ceil(c * M) instead errs at some edges in float64, and at many more edges for float32 confidences
converted to float64.

Each evaluation of the loss assigns the rows to bins by their confidence:

    L = sum_b | sum_{i in b} share_i (correct_i - conf_i) |,       d conf / d beta = -conf mu

The gradient holds the bins fixed; where a row changes bins, L jumps.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

from temperance.core.arrays import Floats, Indices, Vector
from temperance.core.objective import LogLikelihood, ObjectivePoint

BINS = 10  # as in the authors' code


def equal_width_edges(bins: int, dtype: DTypeLike = np.float64) -> Floats:
    """Return the bins + 1 edges from 0 to 1, in the dtype of the confidences."""
    # Division in float64, then rounding to float32 or float16, gives the nearest number to i / M:
    # the quotient has more than twice the digits, so rounding twice is harmless.
    edges: Floats = (np.arange(bins + 1) / bins).astype(dtype)
    return edges


def assign_bins(confidence: Floats, edges: Floats) -> Indices:
    """Return the bin of each confidence, from 0 to bins - 1."""
    return np.searchsorted(edges[1:-1], confidence, side="left")


class EceLoss(LogLikelihood):
    """The ECE loss of the same rows, predictor, link, weights and prior."""

    def evaluate(self, theta: Vector, with_fisher: bool) -> ObjectivePoint:
        """Return the value and the derivatives; the Fisher matrix is replaced by 0."""
        group, gap, slope = self._by_bin(theta)
        gradient, _ = self.predictor.pull_back(theta, np.sign(gap)[group] * slope, None)
        fisher = np.zeros((len(theta), len(theta))) if with_fisher else None
        return ObjectivePoint(float(np.abs(gap).sum()), gradient, fisher)

    def _by_bin(self, theta: Vector) -> tuple[Indices, Vector, Vector]:
        """Return each row's bin, each bin's gap, and the derivative of that gap by each row's a."""
        beta = self.link.beta(self.predictor.predict(theta))
        moments = self.rows.moments(beta.value, variance=False)
        confidence = np.exp(-moments.log_s)
        edges = equal_width_edges(BINS, self.rows.dtype)
        group = assign_bins(confidence.astype(self.rows.dtype), edges)
        correct = self.rows.top == self.rows.labels
        gap = np.bincount(group, self.share * (correct - confidence), BINS).astype(np.float64, copy=False)
        return group, gap, self.share * confidence * moments.mu * beta.first

    def terms(self, theta: Vector, with_fisher: bool) -> tuple[Vector, ...]:
        """Return the gap of each bin, whose sign depends on all rows together, and its gradient."""
        group, gap, slope = self._by_bin(theta)
        gradients = [self.predictor.pull_back(theta, slope * (group == b), None)[0] for b in range(BINS)]
        fisher = (np.zeros((len(theta), len(theta))),) if with_fisher else ()
        return gap, np.array(gradients), *fisher
