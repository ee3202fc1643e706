"""The objectives of `mono`, `bayes` and `bayes-bias`, written from docs/bayesian.md and docs/file-format.md.

Every row is handled with whole arrays of (rows, classes, segments), and nothing is shared with the library.
"""

import json
from importlib import resources

import numpy as np
from scipy.linalg import block_diag
from scipy.optimize import minimize, minimize_scalar

KNOTS = np.array([0, 0.1, 0.7, 1.5, 2.5, 4, 6, 9, 14])
WIDTHS = np.append(np.diff(KNOTS), np.inf)
TOP_LABEL = 0.4
PRIOR = json.loads(resources.files("temperance").joinpath("population.json").read_bytes())


def draw_case(rng):
    """Return few logits with ties, labels of which some are wrong, and weights."""
    n_rows, n_classes = rng.integers(2, 9), rng.integers(2, 5)
    logits = rng.integers(-4, 5, size=(n_rows, n_classes)) * rng.choice([0.25, 1.0, 3.0])
    if rng.random() < 0.3:
        logits = logits + rng.normal(size=logits.shape)
    if rng.random() < 0.3:
        logits = logits[rng.integers(0, n_rows, n_rows)]
    return logits, rng.integers(0, n_classes, n_rows), rng.integers(1, 5, n_rows) / 2.0


def log_softmax(z):
    d = z - z.max(axis=1, keepdims=True)
    others = np.exp(np.where(np.arange(z.shape[1]) == z.argmax(axis=1)[:, None], -np.inf, d))
    return d - np.log1p(others.sum(axis=1, keepdims=True))


def entropy(z):
    log_p = log_softmax(z)
    return -np.sum(np.exp(log_p) * log_p, axis=1)


def lengths(logits, reference):
    """Return how much of [0, e] lies in each segment, (rows, classes, segments)."""
    e = -log_softmax(logits / reference)
    return np.clip(e[:, :, None] - KNOTS, 0, WIDTHS)


def label_losses(log_p, labels):
    return -log_p[np.arange(len(labels)), labels]


def temperature_loss(log_t, logits, labels, weights):
    return weights @ label_losses(log_softmax(logits / np.exp(log_t)), labels)


def mono_loss(slopes, logits, labels, weights, reference):
    """Return the sum of losses, plus the prior: the first slope near 1, adjacent slopes similar."""
    log_p = log_softmax(-lengths(logits, reference) @ slopes)
    prior = ((slopes[0] - 1) / 0.5) ** 2 + np.sum((np.diff(slopes) / 0.3) ** 2)
    return weights @ label_losses(log_p, labels) + prior / 2


def features(logits, reference):
    row = logits / reference
    ordered = np.sort(row, axis=1)[:, ::-1]
    to_third = ordered[:, 0] - ordered[:, min(2, row.shape[1] - 1)]
    to_mean = ordered[:, 0] - row.mean(axis=1)
    h = np.maximum(np.log(entropy(row) / np.log(row.shape[1])), -20)
    return np.column_stack([h, h**2 / 10, np.log1p(to_third), np.log1p(to_mean)])


def expected_level(logits, weights):
    """Return the prior mean of log T: a line in the mean log entropy of the rows."""
    log_entropy = np.maximum(np.log(entropy(logits)), -20)
    return PRIOR["intercept"][0] + PRIOR["intercept"][1] * (weights @ log_entropy) / weights.sum()


class BayesObjective:
    """The negative log posterior of [b, w, v of each class, steps of the logs of the slopes]."""

    def __init__(self, cal, logits, labels, weights):
        self.logits, self.labels, self.weights, self.cal = logits, labels, weights, cal
        self.top, n_classes = logits.argmax(axis=1), logits.shape[1]
        scaled = (features(logits, cal.reference_) - cal.centre_) / cal.spread_
        self.x = np.column_stack([np.ones(len(logits)), scaled, np.eye(n_classes)[self.top]])
        self.lengths = lengths(logits, cal.reference_)
        self.share = self.information_shares()
        self.mean = np.concatenate(
            [[expected_level(logits, weights)], PRIOR["mean"], np.zeros(n_classes), PRIOR["map_mean"]]
        )
        self.blocks = [slice(0, 1), slice(1, 5), slice(5, 5 + n_classes), slice(5 + n_classes, None)]
        self.precisions = [
            np.eye(1) / PRIOR["intercept_scale"] ** 2,
            np.linalg.inv(PRIOR["covariance"]),
            np.eye(n_classes) / PRIOR["class_scale"] ** 2,
            np.linalg.inv(PRIOR["map_covariance"]),
        ]

    def fitted(self):
        """Return the parameters of the calibrator in the order of this objective."""
        cal = self.cal
        return np.concatenate([cal.coefficients_, cal.class_shift_, np.diff(np.log(cal.map_slopes_))])

    def information_shares(self):
        """Return the shares of the segments in what the rows tell about a common factor of the slopes."""
        p = np.exp(log_softmax(self.logits / self.cal.reference_))
        total = np.zeros(len(KNOTS))
        for weight, prob, q in zip(self.weights, p, self.lengths, strict=True):
            covariance = (q * prob[:, None]).T @ q - np.outer(prob @ q, prob @ q)
            total += weight * covariance.sum(axis=1)
        total = np.maximum(total, 0)
        return total / total.sum() if total.sum() > 0 else np.full(len(KNOTS), 1 / len(KNOTS))

    def slopes(self, steps):
        """Return the slopes with these steps: the mean of their logs, weighted by information, is 0."""
        logs = np.append(0.0, np.cumsum(steps))
        return np.exp(logs - self.share @ logs)

    def log_probabilities(self, theta):
        n = self.x.shape[1]
        T = np.clip(np.exp(self.x @ theta[:n]), *self.cal.temperature_limits_)
        u = -self.lengths @ self.slopes(theta[n:])
        return log_softmax(u * (self.cal.reference_ / T)[:, None])

    def likelihood(self, theta):
        """Return the sum of losses, with the extra weight of the predicted class."""
        log_p = self.log_probabilities(theta)
        of_top = log_p[np.arange(len(log_p)), self.top]
        right = self.top == self.labels
        extra = -np.where(right, of_top, np.log(np.maximum(-np.expm1(of_top), 1e-38)))
        return self.weights @ (label_losses(log_p, self.labels) + TOP_LABEL * extra)

    def squares(self, theta):
        """Return the squared distance of each block from its mean, in units of its prior at tau = 1."""
        off = theta - self.mean
        return [off[at] @ Q @ off[at] for at, Q in zip(self.blocks, self.precisions, strict=True)]

    def covariance(self, theta):
        """Return the posterior covariance of all parameters."""
        precision = block_diag(*(Q / t for Q, t in zip(self.precisions, self.cal.taus_, strict=False)))
        log_p = self.log_probabilities(theta)
        jacobian = differences(self.log_probabilities, theta)
        return posterior_of(jacobian, log_p, self.weights, precision, self.top)

    def better_taus(self, theta):
        """Return the widths that the next round would choose."""
        C, freedom = self.covariance(theta), [PRIOR["freedom"], PRIOR["freedom"], PRIOR["class_freedom"]]
        result = []
        for nu, at, Q, square, tau in zip(
            [*freedom, PRIOR["freedom"]],
            self.blocks,
            self.precisions,
            self.squares(theta),
            self.cal.taus_,
            strict=False,
        ):
            used = len(Q) - np.sum(Q * C[at, at]) / tau
            result.append((nu + square) / (nu + used))
        return np.array(result)

    def __call__(self, theta):
        return self.likelihood(theta) + sum(self.squares(theta) / self.cal.taus_[:4]) / 2


def posterior_of(jacobian, log_p, weights, precision, top=None):
    """Return the covariance at the mode: of the expected curvature of the losses, and of the prior.

    `jacobian` holds the derivatives of log p, (rows, classes, parameters). With `top`, whether the predicted
    class is right is a second observation.
    """
    p = np.exp(log_p)
    fisher = np.einsum("n,nk,nki,nkj->ij", weights, p, jacobian, jacobian)
    if top is not None:
        each = np.arange(len(p))
        odds = p[each, top] / np.maximum(-np.expm1(log_p[each, top]), 1e-38)
        of_top = jacobian[each, top]
        fisher += TOP_LABEL * np.einsum("n,ni,nj->ij", weights * odds, of_top, of_top)
    return np.linalg.inv(fisher + precision)


def centred(logs):
    """Return what the interactions multiply: log(2 p) of two classes, else the logs minus their mean."""
    floored = np.maximum(logs, -12)
    return floored + np.log(2) if logs.shape[1] == 2 else floored - floored.mean(axis=1, keepdims=True)


class BiasObjective:
    """The negative log posterior of [log T, bias, columns of M], of log-probabilities or of logits.

    `deviations` are those of the priors of log T, bias and M.
    """

    def __init__(self, cal, kind, logs, labels, weights, deviations):
        self.cal, self.kind, self.logs, self.labels, self.weights = cal, kind, logs, labels, weights
        self.x = centred(logs)
        n_classes = logs.shape[1]
        self.variances = np.repeat(np.square(deviations), [1, n_classes, n_classes**2])

    def fitted(self):
        p, j = self.cal.parameters(), self.kind
        columns = np.asarray(p["interactions"])[j - 1].T
        return np.concatenate([[-np.log(p["bias_betas"][j])], p["biases"][j], columns.ravel()])

    def odds(self, theta):
        n_classes = self.logs.shape[1]
        M = theta[1 + n_classes :].reshape(n_classes, n_classes).T
        return self.logs / np.exp(theta[0]) + theta[1 : 1 + n_classes] + self.x @ M.T

    def log_probabilities(self, theta):
        return log_softmax(self.odds(theta))

    def __call__(self, theta):
        losses = label_losses(self.log_probabilities(theta), self.labels)
        return self.weights @ losses + theta**2 @ (1 / self.variances) / 2

    def left_out(self, theta):
        """Return log p of each label by one Newton step of a fit without one such row."""
        log_p = self.log_probabilities(theta)
        precision = np.diag(1 / self.variances)
        C = posterior_of(differences(self.log_probabilities, theta), log_p, self.weights, precision)
        J, result = differences(self.odds, theta), np.empty(len(log_p))
        for i, (label, w) in enumerate(zip(self.labels, np.minimum(self.weights, 1), strict=True)):
            p = np.exp(log_p[i])
            A, L, y = J[i] @ C @ J[i].T, np.diag(p) - np.outer(p, p), np.eye(len(p))[label]
            shift = A @ np.linalg.solve(np.eye(len(p)) - w * L @ A, w * (p - y))
            result[i] = log_softmax((log_p[i] + shift)[None])[0, label]
        return result


def matched_frequencies(logs, labels, weights, pseudo_rows):
    """Return b = log(q / m), and the sum of log p of each label without one such row."""

    def bias_of(w):
        m = np.append(w, 0) @ np.vstack([np.exp(logs), np.zeros(logs.shape[1])]) / max(w.sum(), 1e-300)
        n = np.bincount(labels, w, logs.shape[1])
        return np.log((n / np.maximum(m, 1e-12) + pseudo_rows) / (w.sum() + pseudo_rows))

    total = 0.0
    for i, label in enumerate(labels):
        others = weights - np.minimum(weights, 1) * (np.arange(len(labels)) == i)
        total += weights[i] * log_softmax(logs[i : i + 1] + bias_of(others))[0, label]
    return bias_of(weights), total


def weights_of_kinds(unchanged, held_out, power):
    """Return the weights of the four kinds by their sums over left-out rows."""
    gains = power * (np.array([unchanged, *held_out]) - unchanged)
    shares = np.array([0.3, 0.2, 0.3, 0.15, 0.05]) * np.exp(gains)
    shares[1:] *= shares[1:] >= 0.02 * shares.sum()
    return shares[1:] / shares.sum()


def differences(function, theta, size=1e-4):
    """Return the derivatives on a new last axis, by central differences of the fourth order."""

    def along(step):
        near, far = function(theta + step) - function(theta - step), function(theta + 2 * step)
        return (8 * near - far + function(theta - 2 * step)) / (12 * size)

    return np.stack([along(size * direction) for direction in np.eye(len(theta))], axis=-1)


def reference_temperature(logits, labels, weights):
    """Return T0: the better of two fixed points of the level and the width of its prior."""
    mean, scale, freedom = expected_level(logits, weights), PRIOR["intercept_scale"], PRIOR["freedom"]

    def loss(log_t):
        return temperature_loss(log_t, logits, labels, weights)

    right = logits[np.arange(len(labels)), labels] == logits.max(axis=1)
    limits = {"bounds": (-9.2, 13.8), "method": "bounded", "options": {"xatol": 1e-10}}
    best = minimize_scalar(loss, **limits).x
    if right.all() or best > 13.7:
        best = minimize_scalar(lambda t: loss(t) + t**2 / 2, **limits).x
    found = []
    for log_t in (mean, best):
        tau = max(1.0, (freedom + ((log_t - mean) / scale) ** 2) / (freedom + 1))
        for _ in range(200):
            variance = scale**2 * tau
            near = {"x0": [log_t], "method": "Nelder-Mead", "options": {"xatol": 1e-9, "fatol": 1e-12}}
            log_t = minimize(lambda t, v=variance: loss(t[0]) + (t[0] - mean) ** 2 / (2 * v), **near).x[0]
            z = logits / np.exp(log_t)
            p = np.exp(log_softmax(z))
            information = weights @ (np.sum(p * z**2, axis=1) - np.sum(p * z, axis=1) ** 2)
            used = information / (information + 1 / variance)
            before, tau = tau, (freedom + ((log_t - mean) / scale) ** 2) / (freedom + used)
            if abs(np.log(tau / before)) < 1e-6:
                break
        tail = (freedom + 1) / 2 * np.log1p(((log_t - mean) / scale) ** 2 / freedom)
        found.append((loss(log_t) + tail, log_t))
    return np.exp(min(found)[1])
