"""Calibrated outputs under new class frequencies, by Bayes' rule.

With r_k = log(frequency of class k at use / frequency at fit):

    p_k exp(r_k) / sum_j p_j exp(r_j)

The result replaces the input, block by block: no second N x K array is needed.
"""

from __future__ import annotations

import numpy as np

from temperance.core.arrays import Floats, Vector
from temperance.core.blocks import Scratch, for_each_block

LEAST_RATIO = 1e-300  # times the largest probability of a row, this is still above 0


def shift_outputs(outputs: Floats, log_ratio: Vector, *, log: bool) -> None:
    """Replace probabilities, or calibrated logits if `log`, by those under the new frequencies."""
    (shift_logits if log else shift_probabilities)(outputs, log_ratio)


def shift_probabilities(probs: Floats, log_ratio: Vector) -> None:
    """Replace probabilities by those under the new frequencies; an impossible class stays at 0."""
    ratio = np.maximum(np.exp(log_ratio - log_ratio.max()), LEAST_RATIO)

    def work(block: Floats, i: int, j: int, scratch: Scratch) -> None:
        shifted = probs[i:j] * ratio
        shifted /= shifted.sum(axis=1, keepdims=True)
        probs[i:j] = shifted

    for_each_block(probs, work)


def shift_logits(logits: Floats, log_ratio: Vector) -> None:
    """Replace logits by log-probabilities under the new frequencies; an impossible class stays at -inf."""

    def work(block: Floats, i: int, j: int, scratch: Scratch) -> None:
        shifted = logits[i:j] + log_ratio
        top = shifted.argmax(axis=1)[:, None]
        shifted -= np.take_along_axis(shifted, top, axis=1)
        others = np.exp(shifted)
        np.put_along_axis(others, top, 0.0, axis=1)  # nothing cancels when a row is confident
        shifted -= np.log1p(others.sum(axis=1, keepdims=True))
        logits[i:j] = shifted

    for_each_block(logits, work)
