"""Standard errors of fits: how often the true parameter is within 1.96 of them.

Labels are drawn from the model that is fitted.

    ts       logits divided by a temperature of 1.7
    hts      T(z) = softplus(w_H log Hbar(z) + b) with w_H = 0.4, b = 1.5
    bayes    a temperature of 1.7: b = log 1.7, all other coefficients 0. Its prior is that of a population of
             classifiers, to which a single truth is not a draw.
"""

from __future__ import annotations

import numpy as np
from coverage_worlds import draw_labels
from scipy.special import entr, softmax

from temperance import make_calibrator

TEMPERATURE, ENTROPY_WEIGHT, INTERCEPT = 1.7, 0.4, 1.5
METHODS = ("ts", "hts", "bayes")
SIZES, CLASSES = (200, 1000), (4, 20)


def simulate(method, n_rows, n_classes, rng):
    """Return logits and labels of the method's own model."""
    logits = 4 * rng.normal(size=(n_rows, n_classes))
    temperature = TEMPERATURE
    if method == "hts":
        log_entropy = np.log(entr(softmax(logits, axis=1)).sum(axis=1, keepdims=True) / np.log(n_classes))
        temperature = np.logaddexp(0, ENTROPY_WEIGHT * log_entropy + INTERCEPT)
    return logits, draw_labels(softmax(logits / temperature, axis=1), rng)


def deviations(method, n_rows, n_classes, rng):
    """Return how many standard errors each fitted parameter is from the truth."""
    fitted = make_calibrator(method).fit(*simulate(method, n_rows, n_classes, rng))
    errors = fitted.standard_errors_
    if method == "ts":
        return {"T": (fitted.temperature_ - TEMPERATURE) / errors["temperature"]}
    if method == "hts":
        return {
            "w_H": (fitted.entropy_weight_ - ENTROPY_WEIGHT) / errors["entropy_weight"],
            "b": (fitted.intercept_ - INTERCEPT) / errors["intercept"],
        }
    truth = np.append(np.log(TEMPERATURE), np.zeros(len(fitted.coefficients_) - 1))
    names = ("b", *(f"w{i}" for i in range(1, len(truth))))
    off = (fitted.coefficients_ - truth) / errors["coefficients"]
    return dict(zip(names, off, strict=True))


def misses(method, n_rows, n_classes, seeds):
    """Return how often each parameter was more than 1.96 standard errors above and below the truth."""
    above, below = {}, {}
    for seed in seeds:
        rng = np.random.default_rng([n_rows, n_classes, METHODS.index(method), seed])
        for name, off in deviations(method, n_rows, n_classes, rng).items():
            above[name] = above.get(name, 0) + int(off > 1.96)
            below[name] = below.get(name, 0) + int(off < -1.96)
    return above, below
