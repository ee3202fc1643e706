"""The likelihood with extra weight on what users act on: whether the predicted class is right.

With p = 1/s the confidence of the predicted class and c whether it is right, each row adds to its negative
log-likelihood EMPHASIS times

    b = -c log p - (1 - c) log(1 - p)         d b / d beta = (c - p) mu / (1 - p)
    Fisher: p mu^2 / (1 - p)                  (mu / (1 - p) is the mean gap of the other classes)

One temperature has to serve the top probability and all the others. Where they disagree, the many small ones
dominate the likelihood, and the top probability is less well calibrated.
"""

from __future__ import annotations

import numpy as np

from temperance.core.arrays import Matrix, Vector
from temperance.core.objective import Derive, LogLikelihood

# Chosen by leaving data sets out, see docs/bayesian.md: less calibration error at no cost in likelihood.
EMPHASIS = 0.4
LEAST = 1e-38  # floor of 1 - p, which may underflow


class TopLabelLikelihood(LogLikelihood):
    """The same rows, predictor, link, weights and prior."""

    def evaluate(self, theta: Vector) -> tuple[float, Derive]:
        """Return the value, and the function that gives the derivatives, both without the prior."""
        beta = self.link.beta(self.predictor.predict(theta))
        moments = self.rows.moments(beta.value)
        gap, right, share = self.rows.label_gap, self.rows.top == self.rows.labels, self.share
        doubt = np.maximum(-np.expm1(-moments.log_s), LEAST)
        top = np.where(right, moments.log_s, -np.log(doubt))
        value = float(np.sum((moments.log_s - beta.value * gap + EMPHASIS * top) * share))

        def derive(with_fisher: bool) -> tuple[Vector, Matrix | None]:
            confidence = np.exp(-moments.log_s)
            others = moments.mu / doubt
            slope = moments.mu - gap + EMPHASIS * (right - confidence) * others
            curvature = moments.v + EMPHASIS * confidence * others * moments.mu
            return self.predictor.pull_back(
                theta, slope * beta.first * share, curvature * beta.first**2 * share if with_fisher else None
            )

        return value, derive
