"""Named features of rows, in which all formulas are written, and the shape of a row.

`RowFeatures` lists what a formula can ask of its rows: blocks of rows in NumPy (`core.row_block`), or whole
arrays in PyTorch or ONNX (`core.tensor_rows`). A fit asks its rows only for features (`core.logit_rows`).

The shape of a row is comparable for any number of classes in any order. It is computed at a reference
temperature T0, which makes classifiers of different scale comparable:

    h = log(H / log K)      its square      log(1 + gap to the third logit)      log(1 + gap to the mean)

with H the entropy (h at least `LOG_ENTROPY_FLOOR`) and gaps measured from the largest logit. K is the number
of columns at the fit. If columns are positions, predictions can have more or fewer, and a formula stores the
log K of the fit as `max_entropy`: a row has the same features whether or not missing columns are filled with
-inf.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from temperance.core.ops import Array, Index, Ops

SHAPE_FEATURES = ("log entropy", "its square", "gap to third", "gap to mean")
LOG_ENTROPY_FLOOR = -20.0
# Below this, a log-probability has no further effect on the bias of other classes.
LOG_PROB_FLOOR = -12.0
# Up to this many classes, a bias can depend on all log-probabilities: the parameters grow with its square.
MAX_INTERACTING = 20
# The kinds of class bias that a prediction averages. The first two change calibrated log-probabilities; the
# others change log softmax(z / T0), for up to `MAX_INTERACTING` classes. All but the first have interactions.
CLASS_BIASES = ("class frequencies", "class bias", "narrow class bias of logits", "wide class bias of logits")
ON_LOGITS_FROM = 2


def n_class_biases(n_classes: int) -> int:
    """Return how many kinds of class bias there are for this number of classes."""
    return len(CLASS_BIASES) if n_classes <= MAX_INTERACTING else ON_LOGITS_FROM


# A class this far below the top, at the inverse temperature of a row shape, counts as impossible, like one
# at -inf: masks are often written as -1e9 or as the lowest finite number, and must not enter a mean.
IMPOSSIBLE = 2e4
# An inverse temperature: uniform over the possible classes, while a masked one still gets exp(-inf) = 0.
ALMOST_ZERO = 1e-15


# Above this probability, log(1 - the others) is more precise; tied classes are never above it.
ALMOST_CERTAIN = 0.75


class RowNumbers(Protocol):
    """Numbers that describe rows of logits. One number per row has the shape (..., 1)."""

    n_classes: int

    @property
    def ops(self) -> Ops:
        """The operations of the framework that the rows are in."""

    @property
    def top(self) -> Index:
        """The column of each row's largest logit."""

    def log_entropy(self) -> Array:
        """Return log H; it can be floored where log(H / log K) would be below `LOG_ENTROPY_FLOOR`."""

    def log_confidence(self) -> Array:
        """Return the logarithm of the largest probability."""

    def shape_at(self, beta: Array) -> tuple[Array, Array, Array]:
        """Return the log entropy of beta z, and its gaps from the largest to the third and to the mean."""

    def topk(self, k: int) -> Array:
        """Return the k largest logits minus the row's mean, in descending order."""

    def project(self, weights: Array) -> Array:
        """Return (z - mean z) . weights."""


class RowFeatures(RowNumbers, Protocol):
    """Rows of logits, as formulas see them: their numbers, and outputs for all their classes."""

    def divide(self, temperature: Array) -> Array:
        """Return the output of softmax(z / T)."""

    def mixture(self, betas: Sequence[Array], weights: Array) -> Array:
        """Return the output of sum_j w_j softmax(beta_j z)."""

    def mapped_mixture(
        self,
        reference: Array,
        knots: Array,
        slopes: Array,
        scales: Sequence[Array],
        weights: Sequence[Array],
        uniform: Array | None = None,
    ) -> Array:
        """Return the output of sum_j w_j softmax(-scale_j map(-log softmax(z / T0))), see `core.maps`.

        `uniform` is the weight of equal probabilities for all classes that are not masked.
        """

    def shift_classes(self, output: Array, log_ratio: Array) -> Array:
        """Return an output of these rows under new class frequencies, with (K,) log ratios new / old.

        Logits become log-probabilities. The function can overwrite the output.
        """

    def class_biases(
        self,
        output: Array,
        reference: Array,
        weights: Array,
        betas: Array,
        biases: Array,
        interactions: Array | None,
    ) -> Array:
        """Return the output of (1 - sum_j w_j) p + sum_j w_j softmax(beta_j l_j + b_j + M_j x_j).

        `output` is another method's result for p. l_j is log p or, for j >= `ON_LOGITS_FROM`, the logarithm
        of softmax(z / T0), at least `LOG_PROB_FLOOR`. x_j is l_j with that floor, minus its mean over the
        possible classes. M_0 is 0, and `interactions` has the other M_j.
        """


def normalised_log_entropy(
    log_entropy: Array, n_classes: int, ops: Ops, max_entropy: Array | None = None
) -> Array:
    """Return log(H / log K), at least the floor; `max_entropy` replaces the log K of these rows."""
    log_max = math.log(math.log(n_classes)) if max_entropy is None else ops.log(max_entropy)
    return ops.clip(log_entropy - log_max, LOG_ENTROPY_FLOOR, math.inf)


def shape_features(rows: RowNumbers, reference: Array, max_entropy: Array | None = None) -> Array:
    """Return the features of each row, (..., 4), at the reference temperature."""
    (log_entropy, gap_to_third, gap_to_mean), ops = rows.shape_at(1.0 / reference), rows.ops
    h = normalised_log_entropy(log_entropy, rows.n_classes, ops, max_entropy)
    return ops.concat([h, h * h / 10.0, ops.log1p(gap_to_third), ops.log1p(gap_to_mean)])
