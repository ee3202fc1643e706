"""Rows with known probabilities, and the true value of every metric: the worlds of the study of intervals.

Labels are drawn from known probabilities. The truth of a metric is its value on a large sample with the
probabilities of the labels in place of labels.
"""

from __future__ import annotations

import numpy as np
from scipy.special import softmax

from temperance.core.ece_loss import assign_bins, equal_width_edges
from temperance.metrics.predictions import Predictions, risk_curve
from temperance.metrics.smooth import fixed_point, grid_mean

TUNED = {
    "calibrated": "p is the truth",
    "overconfident": "logits times 1.8",
    "underconfident": "logits times 0.6",
    "biased": "1 added to the logit of the first class",
}
FRESH = {
    "heavy tails": "logits times 1.4, where they have the tails of t with 3 degrees of freedom, and classes "
    "are up to 55 times rarer than the first",
    "label noise": "p is the truth of half of the rows; in the other half a tenth of the labels are random",
    "wave": "0.8 sin(12 confidence) is missing from the logit of the top label",
    "subgroup": "logits times 2.5 in 30 % of the rows; in the others p is the truth",
}
ACCURATE = {
    "95 %": "p is the truth, and the classifier is correct in 95 % of the rows",
    "95 %, sharp": "logits times 2.5",
    "95 %, blunt": "logits times 0.6",
    "99 %": "p is the truth, and the classifier is correct in 99 % of the rows",
    "99.8 %": "p is the truth, and the classifier is correct in 99.8 % of the rows",
    "99.8 %, sharp": "logits times 2.5",
}
SCENARIOS = TUNED | FRESH | ACCURATE
# Distances of classes, with normal features around their means, at which so many rows are correct.
_DISTANCES = {
    3: {"95": 3.84, "99": 5.12, "99.8": 6.15},
    20: {"95": 5.27, "99": 6.4, "99.8": 7.34},
}
GROUPS = {2: 200, 20: 50, 500: 20}
"""How many groups there are of each size."""
IN_GROUPS = {"calibrated": 1.0, "overconfident": 1.8}
"""By what the logits of rows in groups are multiplied, as in these scenarios."""
GROUPED_CLASSES = 3
BINS = 15
POPULATION = 200_000
PARTS = 2  # of the population, each of so many rows
NLL_GAIN = "nll difference"


def draw(n_rows, n_classes, scenario, rng):
    """Return the true probabilities, those to evaluate, and those of a rival classifier."""
    if scenario in ACCURATE:
        return _draw_accurate(n_rows, n_classes, scenario, rng)
    if scenario == "heavy tails":
        logits = 1.5 * rng.standard_t(3, size=(n_rows, n_classes)) + np.linspace(0, -4, n_classes)
        truth = softmax(logits, axis=1)
        return truth, softmax(1.4 * logits, axis=1), truth
    logits = 2 * rng.normal(size=(n_rows, n_classes))
    truth = softmax(logits, axis=1)
    if scenario == "biased":
        return truth, softmax(logits + np.eye(n_classes)[0], axis=1), truth
    if scenario == "label noise":
        noisy = 0.9 * truth + 0.1 / n_classes
        mixed = np.where(rng.uniform(size=(n_rows, 1)) < 0.5, noisy, truth)
        return mixed, truth, softmax(0.9 * logits, axis=1)
    if scenario == "wave":
        top = truth.argmax(axis=1)
        shift = 0.8 * np.sin(12 * truth.max(axis=1, keepdims=True)) * np.eye(n_classes)[top]
        return softmax(logits + shift, axis=1), truth, softmax(0.9 * logits, axis=1)
    if scenario == "subgroup":
        group = rng.uniform(size=(n_rows, 1)) < 0.3
        return truth, softmax(np.where(group, 2.5, 1.0) * logits, axis=1), truth
    factor = {"calibrated": 1.0, "overconfident": 1.8, "underconfident": 0.6}[scenario]
    rival = softmax(1.3 * logits, axis=1) if factor == 1 else truth
    return truth, softmax(factor * logits, axis=1), rival


def _draw_accurate(n_rows, n_classes, scenario, rng):
    accuracy, _, kind = scenario.partition(" %")
    scale = _DISTANCES[n_classes][accuracy] / np.sqrt(2)
    features = rng.normal(size=(n_rows, n_classes))
    features[np.arange(n_rows), rng.integers(n_classes, size=n_rows)] += scale
    truth = softmax(scale * features, axis=1)
    factor = {"": 1.0, ", sharp": 2.5, ", blunt": 0.6}[kind]
    rival = truth if kind else softmax(1.3 * scale * features, axis=1)
    return truth, softmax(factor * scale * features, axis=1), rival


def draw_groups(size, correlation, scenario, rng):
    """Return probabilities, labels and groups, with the marginal distribution of a scenario.

    With correlation r, logits are sqrt(r) times those of their group plus sqrt(1 - r) times their own, and
    with probability sqrt(r) a row has the random number of its group, which decides whether the label is the
    most likely class.
    """
    n_groups, shape = GROUPS[size], (GROUPS[size], size, GROUPED_CLASSES)
    shared, own = rng.normal(size=(n_groups, 1, GROUPED_CLASSES)), rng.normal(size=shape)
    logits = 2 * (np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * own)
    of_group, chance = rng.uniform(size=(n_groups, 1)), rng.uniform(size=shape[:2])
    chance = np.where(rng.uniform(size=shape[:2]) < np.sqrt(correlation), of_group, chance)
    truth = softmax(logits, axis=2)
    order = np.argsort(-truth, axis=2)
    rank = (np.take_along_axis(truth, order, axis=2).cumsum(axis=2) < chance[..., None]).sum(axis=2)
    labels = np.take_along_axis(order, np.minimum(rank, GROUPED_CLASSES - 1)[..., None], axis=2)
    probs = softmax(IN_GROUPS[scenario] * logits, axis=2).reshape(-1, GROUPED_CLASSES)
    return probs, labels.reshape(-1), np.repeat(np.arange(n_groups), size)


def draw_labels(truth, rng):
    """Return labels with these probabilities."""
    labels = (truth.cumsum(axis=1) < rng.uniform(size=(len(truth), 1))).sum(axis=1)
    return np.minimum(labels, truth.shape[1] - 1)


def true_values(n_classes, scenario):
    """Return the truth of every metric: the mean over parts of the population."""
    parts = []
    for part in range(PARTS):
        rng = np.random.default_rng([9, n_classes, part])
        parts.append(_values(*draw(POPULATION, n_classes, scenario, rng)))
    values = {name: float(np.mean([part[name] for part in parts])) for name in parts[0]}
    assert np.isfinite(list(values.values())).all(), (n_classes, scenario, values)
    return values


def _log(probs):
    """Return the logarithm, finite also where a probability is too small for a float."""
    return np.log(np.maximum(probs, np.finfo(np.float64).tiny))


def _values(truth, probs, rival):
    rows, error = _with_truth(truth, probs), _binned_error(truth, probs)
    nll, brier = _losses(truth, probs)
    return {
        "accuracy": rows.correct.mean(),
        "nll": nll,
        "brier": brier,
        "ece": error,
        "debiased_ece": error,
        "smooth_ece": fixed_point(grid_mean(rows)),
        "overconfidence": -rows.residual.mean(),
        "aurc": risk_curve(rows)[0],
        NLL_GAIN: (truth * (_log(rival) - _log(probs))).sum(axis=1).mean(),
    }


def _with_truth(truth, probs):
    """Return predictions that see the probability of being right in place of 0 and 1."""
    rows = Predictions(probs, np.zeros(len(probs), int), np.ones(len(probs)))
    rows.__dict__["correct"] = np.take_along_axis(truth, probs.argmax(axis=1)[:, None], axis=1)[:, 0]
    return rows


def _binned_error(truth, probs):
    rows = _with_truth(truth, probs)
    index = assign_bins(rows.confidence, equal_width_edges(BINS, rows.confidence.dtype))
    return np.abs(np.bincount(index, rows.residual, minlength=BINS)).sum() / len(probs)


def _losses(truth, probs):
    """Return the mean negative log-likelihood and Brier score."""
    nll = -(truth * _log(probs)).sum(axis=1).mean()
    return nll, 1 + (probs**2).sum(axis=1).mean() - 2 * (truth * probs).sum(axis=1).mean()
