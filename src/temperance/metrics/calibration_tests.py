"""Tests of calibration: whether the outcomes are compatible with the probabilities.

With probabilities c of an event, outcomes h of 0 or 1 and weights w, the null hypothesis is that h is 1 with
probability c, independently in every row. The event is that the top label is correct or, with `class_`, that
the label is a given class.

    Spiegelhalter  z = sum w (h - c) (1 - 2c) / sqrt(sum w^2 (1 - 2c)^2 c (1 - c))
    Cox            P(h = 1) = sigmoid(a + b logit c); the null is a = 0, b = 1
    cumulative     C_k = sum of w (h - c) over the k rows of lowest c, / sqrt(sum w^2 c (1 - c)):
                   under the null a Brownian motion; its largest |C|, or its range

One test covers all K classes at once. With x_k = log(p_k / p_r) of each class k against a class r,

    Cox, all       P(y = k) = softmax(a_k + b_k x_k), a_r = 0; the null is a = 0, b = 1: a likelihood ratio
                   with 2 (K - 1) degrees of freedom

A class with few expected rows keeps a = 0 and b = 1, since the ratio would not be chi-squared.

Weights are importance weights, not repetitions: k rows are k observations, but a row of weight k is one
observation. A common factor of all weights changes nothing.

With groups, only the groups are independent. The variance of a statistic is then multiplied by its design
effect, and by a factor for few groups, see `metrics.intervals`.

References
----------
.. [1] Rao and Scott (1984). On chi-squared tests for multiway contingency tables with cell proportions
   estimated from survey data. doi:10.1214/aos/1176346391
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from temperance.core.arrays import Indices, Matrix, Vector
from temperance.core.blocks import sampled_rows
from temperance.core.fisher import fisher_scoring, solve
from temperance.core.objective import Objective, ObjectivePoint
from temperance.files import scratch_array
from temperance.inputs.names import Names, check_class
from temperance.inputs.validation import check_choice
from temperance.metrics.intervals import Estimate, Units
from temperance.metrics.predictions import Predictions, cached_slices, check_fraction, check_rows

LEVEL = 0.05  # significance level in `words`
_PARTS_OF_PATH = 16  # of cumulated residuals, whose variance by groups can be largest before the end
MIN_DISTANCE = 2.0**-53  # of a probability from 0 and 1, where its logit is taken
_TOLERANCE = 1e-16  # of the predicted decrease of the mean loss: coefficients to 1e-8 standard errors
_MIN_INFORMATION = 10.0  # sum of p (1 - p) of a tested class, so that the ratio is chi-squared
_MAX_TESTED_CLASSES = 20  # at once, so that the test stays a small part of an evaluation
_MAX_CONDITION = 1e14  # of the information: beyond it, rounding hides the coefficients


@dataclass(frozen=True)
class CalibrationTest:
    """A test of calibration, with the null hypothesis "calibrated".

    Attributes
    ----------
    statistic : float
        The test statistic.
    p_value : float
        P-value of the null hypothesis.
    words : str
        The result as a sentence.

    Examples
    --------
    >>> CalibrationTest(1.2, 0.23, "z = 1.20, p = 0.230: compatible with calibration.").p_value
    0.23
    """

    statistic: float
    p_value: float
    words: str


@dataclass(frozen=True)
class CoxTest(CalibrationTest):
    """Calibration slope and intercept, and the likelihood ratio test of slope 1 and intercept 0.

    The standard errors come from maximum likelihood, and the intervals are normal. A coefficient that the
    rows do not determine is nan, and `words` gives the reason.

    Attributes
    ----------
    statistic : float
        The likelihood ratio.
    p_value : float
        P-value of the null hypothesis: slope 1 and intercept 0.
    words : str
        The result as a sentence.
    slope, intercept : Estimate
        The coefficients, with their intervals. A slope below 1 means overconfident.
    slope_error, intercept_error : float
        Their standard errors.

    Examples
    --------
    Of the rows with probability 0.9, 8 of 10 are of class 1; of the rows with 0.4, 4 of 10 are:

    >>> test = cox([0.9] * 10 + [0.4] * 10, [1] * 8 + [0] * 2 + [1] * 4 + [0] * 6, class_=1)
    >>> round(test.slope.value, 2), round(test.slope_error, 2)
    (0.69, 0.39)
    """

    slope: Estimate
    intercept: Estimate
    slope_error: float
    intercept_error: float


Event = tuple[Vector, Vector, Vector, Indices | None]
"""The probabilities of an event, its outcomes, the weights and the groups of the rows."""


def event_of(rows: Predictions, class_: int | str | None = None) -> Event:
    """Return the event of a test: the top label, or a class by column or name."""
    if class_ is None:
        return rows.confidence.astype(np.float64), rows.correct, rows.weight, rows.groups
    column = check_class("class_", class_, rows.names, rows.probs.shape[1])
    outcome = (rows.labels == column).astype(np.float64)
    return rows.probs[:, column].astype(np.float64), outcome, rows.weight, rows.groups


def spiegelhalter(
    probs: ArrayLike,
    labels: ArrayLike,
    *,
    class_: int | str | None = None,
    sample_weight: ArrayLike | None = None,
    classes: Names | None = None,
    groups: ArrayLike | None = None,
    dim: int = -1,
    ignore_index: int | None = None,
) -> CalibrationTest:
    """Test calibration by Spiegelhalter's z: whether the Brier score matches its expectation.

    Parameters
    ----------
    probs : array of shape (N, K), or (N,) for the second of two classes
    labels : integer array of shape (N,)
    class_ : int or str, optional
        Column or name of the class whose probability is tested; by default the top label's confidence. With
        two classes, all three choices give the same z.
    sample_weight : array of shape (N,), optional
        Importance weights: a row of weight k is one observation, not k.
    classes : sequence of str or int, optional
        Names of the columns, in their order, if labels are names. A DataFrame has its own.
    groups, dim, ignore_index
        As for `evaluate`. The variance then assumes independent groups, not independent rows.

    Returns
    -------
    CalibrationTest
        `statistic` is z, standard normal under the null; the p-value is two-sided. It detects errors that
        grow with the distance from 1/2: z is above 0 if probabilities are too extreme.

    References
    ----------
    .. [1] Spiegelhalter (1986). Probabilistic prediction in patient management and clinical trials.
       doi:10.1002/sim.4780050506

    Examples
    --------
    >>> test = spiegelhalter([[0.9, 0.1]] * 20, [0] * 15 + [1] * 5)
    >>> round(test.statistic, 2), round(test.p_value, 3)
    (2.24, 0.025)
    """
    rows = check_rows(
        probs, labels, sample_weight, classes, groups=groups, dim=dim, ignore_index=ignore_index
    )
    return spiegelhalter_of(*event_of(rows, class_))


def cumulative_differences(
    probs: ArrayLike,
    labels: ArrayLike,
    *,
    statistic: str = "kuiper",
    class_: int | str | None = None,
    sample_weight: ArrayLike | None = None,
    classes: Names | None = None,
    groups: ArrayLike | None = None,
    dim: int = -1,
    ignore_index: int | None = None,
) -> CalibrationTest:
    """Test calibration without bins, by cumulated residuals in the order of the probabilities.

    Parameters
    ----------
    probs, labels, class_, sample_weight, classes, groups, dim, ignore_index
        As for `spiegelhalter`.
    statistic : {"kuiper", "ks"}
        The range of the cumulated residuals, or the largest of their absolute values (Kolmogorov and
        Smirnov), in units of the standard deviation of their sum.

    Returns
    -------
    CalibrationTest
        The p-value comes from the range, or the largest absolute value, of Brownian motion on [0, 1]. With
        few rows the steps are coarse, and the test is conservative. Rows of equal probability are added
        together, so the order of rows does not matter.

    References
    ----------
    .. [1] Arrieta-Ibarra et al. (2022). Metrics of calibration for probabilistic predictions.
       arXiv:2205.09680
    .. [2] Feller (1951). The asymptotic distribution of the range of sums of independent random variables.

    Examples
    --------
    >>> test = cumulative_differences([[0.9, 0.1]] * 20, [0] * 15 + [1] * 5)
    >>> round(test.statistic, 2), round(test.p_value, 3)
    (2.24, 0.101)
    """
    check_choice("statistic", statistic, ("kuiper", "ks"))
    rows = check_rows(
        probs, labels, sample_weight, classes, groups=groups, dim=dim, ignore_index=ignore_index
    )
    return cumulative_of(*event_of(rows, class_), statistic)


def cox(
    probs: ArrayLike,
    labels: ArrayLike,
    *,
    class_: int | str | None = None,
    confidence: float = 0.95,
    sample_weight: ArrayLike | None = None,
    classes: Names | None = None,
    groups: ArrayLike | None = None,
    dim: int = -1,
    ignore_index: int | None = None,
) -> CoxTest:
    """Estimate calibration slope and intercept, and test whether they are 1 and 0.

    Parameters
    ----------
    probs, labels, class_, classes, groups, dim, ignore_index
        As for `spiegelhalter`.
    confidence : float
        Level of the intervals of slope and intercept.
    sample_weight : array of shape (N,), optional
        Importance weights, scaled to sum to the effective number of rows, (sum w)^2 / sum w^2.

    Returns
    -------
    CoxTest
        `statistic` is the likelihood ratio, chi-squared with two degrees of freedom under the null. A slope
        below 1 means overconfident; an intercept below 0, at slope 1, probabilities that are too high.
        Probabilities of exactly 0 or 1 are moved by 1.1e-16. If all outcomes are equal, or separated by the
        probability, slope and intercept have no finite estimate. The ratio is then its limit: a perfect fit,
        except at a probability that both outcomes share. If all probabilities are equal, only the intercept
        is estimated, at slope 1, with one degree of freedom.

    References
    ----------
    .. [1] Cox (1958). Two further applications of a model for binary regression.
       doi:10.1093/biomet/45.3-4.562

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> z = rng.normal(size=(1000, 2))
    >>> honest = 1 / (1 + np.exp(-z[:, 0]))
    >>> test = cox(1 / (1 + np.exp(-2 * z[:, 0])), rng.uniform(size=1000) < honest, class_=1)
    >>> round(test.slope.value, 1), test.p_value < 0.001
    (0.6, True)
    """
    check_fraction("confidence", confidence)
    rows = check_rows(
        probs, labels, sample_weight, classes, groups=groups, dim=dim, ignore_index=ignore_index
    )
    return cox_of(*event_of(rows, class_), confidence)


def cox_classes(
    probs: ArrayLike,
    labels: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    classes: Names | None = None,
    groups: ArrayLike | None = None,
    dim: int = -1,
    ignore_index: int | None = None,
) -> CalibrationTest:
    """Test the calibration of all classes at once: one intercept and slope per class, against the last class.

    `cox` tests only the top label, and misses classes whose errors cancel: some too likely, others too
    unlikely.

    Parameters
    ----------
    probs, labels, classes, groups, dim, ignore_index
        As for `spiegelhalter`.
    sample_weight : array of shape (N,), optional
        As for `cox`.

    Returns
    -------
    CalibrationTest
        `statistic` is the likelihood ratio, chi-squared with 2 (K - 1) degrees of freedom under the null. A
        class whose sum of p (1 - p) is below 10 has too few rows to be tested: it keeps slope 1 and intercept
        0, without degrees of freedom. So does a class that is not among the 20 with the largest sums.

    References
    ----------
    .. [1] Cox (1958). Two further applications of a model for binary regression.
       doi:10.1093/biomet/45.3-4.562
    .. [2] Hoorde et al. (2014). Assessing calibration of multinomial risk prediction models.
       doi:10.1002/sim.6114

    Examples
    --------
    A confidence of 0.6 is correct on average, but class 0 is too likely and class 1 too unlikely:

    >>> probs = [[0.6, 0.2, 0.2]] * 100 + [[0.2, 0.6, 0.2]] * 100
    >>> labels = [0] * 45 + [1] * 35 + [2] * 20 + [0] * 10 + [1] * 75 + [2] * 15
    >>> round(cox(probs, labels).p_value, 2), cox_classes(probs, labels).p_value < 0.001
    (1.0, True)
    """
    rows = check_rows(
        probs, labels, sample_weight, classes, groups=groups, dim=dim, ignore_index=ignore_index
    )
    return cox_classes_of(rows)


def all_tests(rows: Predictions, confidence: float) -> dict[str, CalibrationTest]:
    """Return the tests of the top label, and the test of all classes, by name."""
    event = event_of(rows)
    return {
        "spiegelhalter": spiegelhalter_of(*event),
        "cox": cox_of(*event, confidence),
        "kuiper": cumulative_of(*event, "kuiper"),
        "kolmogorov_smirnov": cumulative_of(*event, "ks"),
        "cox_classes": cox_classes_of(rows),
    }


def spiegelhalter_of(c: Vector, outcome: Vector, w: Vector, groups: Indices | None) -> CalibrationTest:
    """Return Spiegelhalter's test of probabilities c, with weights w."""
    from scipy.special import erfc

    excess = (outcome - c) * (1 - 2 * c)
    variance = float(w**2 @ ((1 - 2 * c) ** 2 * c * (1 - c))) * _variance_factor(excess, w, groups)
    z = _over(float(w @ excess), variance)
    p = float(erfc(abs(z) / np.sqrt(2)))
    if not (c != 0.5).any():
        return CalibrationTest(z, p, "Not informative: every probability is 1/2.")
    return CalibrationTest(z, p, f"z = {z:.2f}, {verdict(p)}")


def cumulative_of(
    c: Vector, outcome: Vector, w: Vector, groups: Indices | None, statistic: str
) -> CalibrationTest:
    """Return the test of the cumulated residuals of probabilities c, with weights w."""
    order = np.argsort(c, kind="stable")
    c, w, factor = c[order], w[order], 1.0
    if groups is not None:
        factor = _variance_factor(outcome[order] - c, w, groups[order], parts=_PARTS_OF_PATH)
    ends = np.append(np.flatnonzero(np.diff(c)), len(c) - 1)  # of each tied group
    path = np.append(0.0, (w * (outcome[order] - c)).cumsum()[ends])
    size = float(np.ptp(path) if statistic == "kuiper" else np.abs(path).max())
    value = _over(size, float(w**2 @ (c * (1 - c))) * factor)
    p = brownian_survival(value, statistic)
    return CalibrationTest(value, p, f"{statistic} = {value:.2f}, {verdict(p)}")


def _variance_factor(values: Vector, w: Vector, groups: Indices | None, parts: int = 1) -> float:
    """Return the variance of a weighted sum with groups, relative to its variance with independent rows.

    With several `parts`, use the sum up to the end of the part at which the variance is largest.
    """
    if groups is None:
        return 1.0
    share = w / w.sum()
    moves = share * (values - share @ values)
    units = Units.of(moves, share, groups)
    ends = np.linspace(0, len(w), parts + 1).astype(int)[1:-1]
    sums = [float(np.sum(np.bincount(groups[:end], moves[:end]) ** 2)) for end in ends]
    squares = float(moves @ moves)
    effect = max(units.effect, *(sum_ / squares for sum_ in sums)) if sums and squares > 0 else units.effect
    return effect * units.widening(1 - LEVEL) ** 2


def _over(total: float, variance: float) -> float:
    """Return a sum in units of its standard deviation; infinite if only the deviation is 0."""
    if variance > 0:
        return total / float(np.sqrt(variance))
    # Up to rounding, certain predictions have no variance.
    return 0.0 if abs(total) < 1e-12 else float(np.copysign(np.inf, total))


def brownian_survival(x: float, statistic: str) -> float:
    """Return the probability that the range, or the largest |value|, of Brownian motion on [0, 1] exceeds x.

    With k = 1, 2, ..., they are sums of 8 (-1)^(k - 1) k Phi(-k x) (Feller, 1951), and of 4 Phi(-x) -
    4 Phi(-3x) + 4 Phi(-5x) - ...
    """
    from scipy.special import ndtr

    if x < (0.4 if statistic == "kuiper" else 0.2):  # P(statistic < x) is below 1e-12
        return 1.0
    k = np.arange(1, int(40 / x) + 2) if np.isfinite(x) else np.ones(1, int)
    factors = 8 * k * (-1.0) ** (k - 1) if statistic == "kuiper" else 4 * np.array([0, 1, 0, -1])[k % 4]
    return float(np.clip(np.sum(factors * ndtr(-k * x)), 0.0, 1.0))


def verdict(p_value: float) -> str:
    """Say what a p-value means."""
    shown = f"p = {p_value:.3f}" if p_value >= 0.001 else "p < 0.001"
    significant = p_value < LEVEL
    return f"{shown}: {'not calibrated' if significant else 'compatible with calibration'}."


def cox_of(
    probability: Vector, outcome: Vector, weight: Vector, groups: Indices | None, confidence: float
) -> CoxTest:
    """Return Cox's test, with intervals of this level."""
    from scipy.special import chdtrc

    c = np.clip(probability, MIN_DISTANCE, 1 - MIN_DISTANCE)
    logit, weight = np.log(c) - np.log1p(-c), weight * weight.sum() / (weight @ weight)
    loss = _ClassLoss(np.column_stack([logit, np.zeros(len(c))]), 1 - outcome.astype(np.intp), weight, 1)
    has_slope, total = bool(np.ptp(logit) > 0), loss.total_weight
    theta, errors = np.full((2, 2), np.nan)
    factor, freedom = _variance_factor(outcome - c, weight, groups), 1.0 + has_slope
    if _separated(logit, outcome):
        best, rate = _lowest_loss(logit, outcome, weight), float(weight @ outcome) / total
        if not has_slope and 0 < rate < 1:
            theta[0] = np.log(rate) - np.log1p(-rate) - logit[0]
            errors[0] = np.sqrt(factor / (total * rate * (1 - rate)))
    else:
        # Start where every rate is 1/2: at the null, certain rows would have no information.
        solution = fisher_scoring(loss, np.zeros(2), _TOLERANCE)
        end = loss(solution.parameters)
        best, gradient, fisher = end
        assert fisher is not None
        if solution.converged and np.linalg.cond(fisher) < _MAX_CONDITION:
            inverse = np.linalg.inv(fisher).astype(np.float64)
            theta = solution.parameters - inverse @ gradient  # one more step of Newton's method
            errors = np.sqrt(inverse.diagonal() / total)
            if groups is not None:
                times, factor, freedom = _of_groups(loss, theta, inverse, groups)
                errors = errors * times
    ratio = max(0.0, 2 * total * (loss(np.array([0.0, 1.0])).value - best)) / factor
    p = float(chdtrc(freedom, ratio))
    half = NormalDist().inv_cdf((1 + confidence) / 2)
    intercept, slope = (
        Estimate(float(a), float(a - half * error), float(a + half * error))
        for a, error in zip(theta, errors, strict=True)
    )
    words = cox_in_words(slope, intercept, p)
    return CoxTest(ratio, p, words, slope, intercept, float(errors[1]), float(errors[0]))


def _rao_scott(scores: Matrix, groups: Indices) -> tuple[float, float]:
    """Return the divisor of a likelihood ratio, and its degrees of freedom, if rows belong to groups.

    With S the sums of outer products of the scores, of groups and of rows, and M = S_rows^-1 S_groups, the
    ratio is a sum of chi-squared variables times the eigenvalues of M. Divided by tr M^2 / tr M, it is nearly
    chi-squared with (tr M)^2 / tr M^2 degrees of freedom (Rao and Scott, 1984).
    """
    sums = np.column_stack([np.bincount(groups, column) for column in scores.T])
    effects = np.linalg.pinv(scores.T @ scores, hermitian=True) @ (sums.T @ sums)
    first, second = float(np.trace(effects)), float(np.sum(effects * effects.T))
    if second <= 0:  # no row can move the estimate
        return 1.0, float(scores.shape[1])
    return max(second / first, 1.0), min(first**2 / second, float(scores.shape[1]))


def _of_groups(
    loss: _ClassLoss, theta: Vector, inverse: Matrix, groups: Indices
) -> tuple[Vector, float, float]:
    """Return by how much groups widen the errors (sandwich estimator), and the result of `_rao_scott`."""
    scores = loss.scores(theta)
    moved = scores @ inverse
    sums = np.column_stack([np.bincount(groups, column) for column in moved.T])
    times = np.sum(sums**2, axis=0) / np.sum(moved**2, axis=0)
    of_intercept, share = scores[:, 0] / loss.total_weight, loss.weight / loss.total_weight
    widening = Units.of(of_intercept, share, groups).widening(1 - LEVEL)
    factor, freedom = _rao_scott(scores, groups)
    errors: Vector = np.sqrt(np.maximum(times, 1.0)) * widening
    return errors, factor * widening**2, freedom


def cox_classes_of(rows: Predictions) -> CalibrationTest:
    """Return Cox's test of all classes."""
    from scipy.special import chdtrc

    information = rows.class_totals.copy()  # sums of w p, then of w p (1 - p)
    for block in cached_slices(*rows.probs.shape):
        part = rows.probs[block].astype(np.float64, copy=False)
        information -= np.einsum("i,ij,ij->j", rows.weight[block], part, part)
    weight = rows.weight * rows.total / (rows.weight @ rows.weight)
    information *= float(weight.sum()) / rows.total / rows.units.effect  # of independent rows
    largest = np.argsort(-information, kind="stable")[:_MAX_TESTED_CLASSES]
    tested = np.sort(largest[information[largest] >= _MIN_INFORMATION])
    if len(tested) < 2:
        return CalibrationTest(0.0, 1.0, "Not informative: each class has too few rows.")
    loss = _ClassLoss(*_log_ratios(rows, tested), weight, len(tested) - 1)
    # Start from equal probabilities: at the null, certain rows would have no information.
    solution = solve(loss, np.zeros(2 * loss.n_free), len(weight))
    null = loss(np.repeat([0.0, 1.0], loss.n_free)).value
    ratio, degrees = max(0.0, 2 * loss.total_weight * (null - solution.value)), 2.0 * loss.n_free
    if rows.groups is not None:
        factor, degrees = _rao_scott(loss.scores(solution.parameters), rows.groups)
        ratio /= factor * rows.units.widening(1 - LEVEL) ** 2
    p = float(chdtrc(degrees, ratio))
    return CalibrationTest(ratio, p, f"{ratio:.1f} with {degrees:.3g} degrees of freedom, {verdict(p)}")


def _log_ratios(rows: Predictions, tested: Indices) -> tuple[Matrix, Indices]:
    """Return log(p_k / p_r) of the tested classes k, of r, the last of them, and of all others together.

    The labels refer to these columns. Merging the others changes losses by a constant.
    """
    n_rows, n_classes = rows.probs.shape
    column = np.full(n_classes, len(tested))
    column[tested] = np.arange(len(tested))
    ratios = scratch_array((n_rows, len(tested) + (len(tested) < n_classes)), np.float64)
    for block in cached_slices(n_rows, n_classes):
        probs = rows.probs[block].astype(np.float64, copy=False)
        part = ratios[block]
        part[:, : len(tested)] = probs[:, tested]
        part[:, len(tested) :] = np.delete(probs, tested, axis=1).sum(axis=1, keepdims=True)
        np.log(np.maximum(part, MIN_DISTANCE, out=part), out=part)
        part -= part[:, len(tested) - 1 : len(tested)].copy()
    return ratios, column[rows.labels]


class _ClassLoss(Objective):
    """The mean negative log-likelihood of labels with the log odds a_k + b_k x_k of the first classes.

    Other classes have the log odds x_k. theta has all a, then all b. The solver's other objectives are about
    temperatures, which are positive; a slope can be negative.
    """

    order = 2  # the Fisher matrix is the second derivative
    passes = 0

    def __init__(self, x: Matrix, labels: Indices, weight: Vector, n_free: int) -> None:
        super().__init__(float(weight.sum()), np.dtype(np.float64), prior=None)
        self.x, self.labels, self.weight, self.n_free = x, labels, weight, n_free

    def every(self, step: int) -> Self:
        """Return the loss of every `step`-th row."""
        at = sampled_rows(step, len(self.weight))
        return type(self)(self.x[at], self.labels[at], self.weight[at], self.n_free)

    def scores(self, theta: Vector) -> Matrix:
        """Return what each row adds to the derivative of the log-likelihood."""
        (a, b), n = theta.reshape(2, -1), self.n_free
        odds, x = self.x.copy(), self.x[:, :n]
        odds[:, :n] = a + b * x
        odds -= odds.max(axis=1, keepdims=True)
        np.exp(odds, out=odds)
        rates = odds[:, :n] / odds.sum(axis=1, keepdims=True)
        residual = self.weight[:, None] * ((self.labels[:, None] == np.arange(n)) - rates)
        return np.concatenate([residual, residual * x], axis=1)

    def evaluate(self, theta: Vector, with_fisher: bool) -> ObjectivePoint:
        """Return the value and the derivatives, in one pass over the rows."""
        (a, b), n = theta.reshape(2, -1), self.n_free
        value, gradient, fisher = 0.0, np.zeros(2 * n), np.zeros((2 * n, 2 * n))
        of_a, of_b = np.arange(n), np.arange(n, 2 * n)
        for block in cached_slices(*self.x.shape):
            share, labels = self.weight[block] / self.total_weight, self.labels[block]
            odds, x = self.x[block].copy(), self.x[block, :n]
            odds[:, :n] = a + b * x
            odds -= odds.max(axis=1, keepdims=True)
            at_label = odds[np.arange(len(labels)), labels]
            np.exp(odds, out=odds)
            sums = odds.sum(axis=1)
            value += float(share @ (np.log(sums) - at_label))
            rates = odds[:, :n] / sums[:, None]
            residual = share[:, None] * (rates - (labels[:, None] == of_a))
            gradient += np.concatenate([residual.sum(axis=0), (residual * x).sum(axis=0)])
            moved = np.concatenate([rates, rates * x], axis=1)
            fisher -= (share[:, None] * moved).T @ moved
            fisher[of_a, of_a] += share @ rates
            fisher[of_a, of_b] += (mixed := share @ (rates * x))
            fisher[of_b, of_a] += mixed
            fisher[of_b, of_b] += share @ (rates * x**2)
        return ObjectivePoint(value, gradient, fisher)


def _separated(logit: Vector, outcome: Vector) -> bool:
    """Say whether outcomes overlap at one value at most: then no slope and intercept are best."""
    of_0, of_1 = logit[outcome == 0], logit[outcome == 1]
    if not len(of_0) or not len(of_1):
        return True
    return bool(of_0.max() <= of_1.min() or of_1.max() <= of_0.min())


def _lowest_loss(logit: Vector, outcome: Vector, weight: Vector) -> float:
    """Return the infimum of the mean loss of separated outcomes: the loss at the value that both share."""
    from scipy.special import entr

    shared = np.isin(logit, np.intersect1d(logit[outcome == 0], logit[outcome == 1]))
    counts = np.array([weight[shared & (outcome == h)].sum() for h in (0, 1)])
    total = counts.sum()
    return float(total * entr(counts / total).sum() / weight.sum()) if total else 0.0


def cox_in_words(slope: Estimate, intercept: Estimate, p_value: float) -> str:
    """Say what slope and intercept are, and what the p-value means."""
    if np.isnan(intercept.value):
        return f"slope and intercept not identified (outcomes are separated), {verdict(p_value)}"
    if np.isnan(slope.value):
        return f"one probability, so no slope; intercept {intercept.value:z.2f}, {verdict(p_value)}"
    return (
        f"slope {slope.value:z.2f} ({slope.low:z.2f} to {slope.high:z.2f}), intercept {intercept.value:z.2f} "
        f"({intercept.low:z.2f} to {intercept.high:z.2f}), {verdict(p_value)}"
    )
