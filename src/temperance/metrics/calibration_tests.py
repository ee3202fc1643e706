"""Tests of calibration: whether the outcomes are compatible with the probabilities.

With probabilities c of an event, outcomes h of 0 or 1 and weights w, the null hypothesis is that h is 1 with
probability c, independently for each row. The event is that the top label is right or, with `class_`, that
the label is a given class.

    Spiegelhalter  z = sum w (h - c) (1 - 2c) / sqrt(sum w^2 (1 - 2c)^2 c (1 - c))
    Cox            P(h = 1) = sigmoid(a + b logit c); the null is a = 0, b = 1
    cumulative     C_k = sum of w (h - c) over the k rows of lowest c, / sqrt(sum w^2 c (1 - c)):
                   under the null a Brownian motion; its largest |C|, or its range

Weights say how much a row counts. They are not repetitions: k rows are k observations, but a row of weight k
is one observation. A common factor of all weights changes nothing.

With groups, only these are independent. The variance of a statistic is then multiplied by its design effect,
and by a factor for few groups, see `metrics.intervals`.

References
----------
.. [1] Rao and Scott (1984). On chi-squared tests for multiway contingency tables with cell proportions
   estimated from survey data. doi:10.1214/aos/1176346391
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from temperance.core.arrays import Indices, Matrix, Vector
from temperance.core.blocks import sampled_rows
from temperance.core.fisher import fisher_scoring
from temperance.core.objective import Objective, ObjectivePoint
from temperance.errors import InputError, listed
from temperance.inputs.containers import names_of
from temperance.inputs.labels import Names
from temperance.inputs.validation import check_choice, check_number
from temperance.metrics.intervals import Estimate, Units
from temperance.metrics.predictions import Predictions, check_fraction, check_rows

LEVEL = 0.05  # significance level in `words`
_PARTS_OF_PATH = 16  # of cumulated residuals, whose variance by groups may be largest before the end
_MIN_DISTANCE = 2.0**-53  # of a probability from 0 and 1, where its logit is taken
_TOLERANCE = 1e-16  # of the predicted decrease of the mean loss: coefficients to 1e-8 standard errors
_MAX_CONDITION = 1e14  # of the information: beyond, rounding hides the coefficients


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
        The result in words.

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

    The standard errors are those of maximum likelihood, and the intervals are normal. A coefficient that the
    rows do not determine is nan, and `words` say why.

    Attributes
    ----------
    statistic : float
        The likelihood ratio.
    p_value : float
        P-value of the null hypothesis: slope 1 and intercept 0.
    words : str
        The result in words.
    slope, intercept : Estimate
        The coefficients, with their intervals. A slope below 1 means overconfident.
    slope_error, intercept_error : float
        Their standard errors.

    Examples
    --------
    Of the rows with probability 0.9, 8 of 10 are of class 1; of those with 0.4, 4 of 10 are:

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


def event_of(
    rows: Predictions, class_: int | str | None = None, probs: Any = None, classes: Names | None = None
) -> Event:
    """Return what a test is about: the top label, or a class by column or name."""
    if class_ is None:
        return rows.confidence.astype(np.float64), rows.correct, rows.weight, rows.groups
    n_classes = rows.probs.shape[1]
    names = names_of(probs, classes, n_classes)
    if names is not None and class_ in list(names):
        column = list(names).index(class_)
    elif isinstance(class_, str):
        if names is None:
            fact = f"class_ must be a column from 0 to {n_classes - 1} where columns have no names"
            raise InputError(f"{fact}; found {class_!r}.", advice="Pass the names of the columns as classes.")
        raise InputError(f"class_ must be one of {listed(list(names))}; found {class_!r}.")
    else:
        check_number("class_", class_, f"from 0 to {n_classes - 1}", lambda k: 0 <= k < n_classes, whole=True)
        column = int(class_)
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
    """Test calibration by Spiegelhalter's z: whether the Brier score is what the probabilities predict.

    Parameters
    ----------
    probs : array of shape (N, K), or (N,) for the second of two classes
    labels : integer array of shape (N,)
    class_ : int or str, optional
        Column or name of the class whose probability is tested; by default the top label's confidence. With
        two classes all three choices give the same z.
    sample_weight : array of shape (N,), optional
        How much a row counts. A row of weight k is one observation, not k.
    classes : sequence of str or int, optional
        Names of the columns, in their order, if labels are names. A DataFrame has its own.
    groups, dim, ignore_index
        As for `evaluate`. The variance is then that of independent groups.

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
    return spiegelhalter_of(*event_of(rows, class_, probs, classes))


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
    """Test calibration without bins: cumulated residuals in the order of the probabilities.

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
        The p-value is that of the range, or of the largest absolute value, of Brownian motion on [0, 1].
        With few rows the steps are coarse, and the test is conservative. Rows of equal probability are added
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
    return cumulative_of(*event_of(rows, class_, probs, classes), statistic)


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
        How much a row counts. The weights are scaled to sum to the effective number of rows,
        (sum w)^2 / sum w^2.

    Returns
    -------
    CoxTest
        `statistic` is the likelihood ratio, chi-squared with two degrees of freedom under the null. A slope
        below 1 means overconfident; an intercept below 0, at slope 1, probabilities that are too high.
        Probabilities of exactly 0 or 1 are moved by 1.1e-16. If all outcomes are equal, or separated by the
        probability, slope and intercept have no finite estimate, and the ratio is that of the limit: a
        perfect fit, except to a probability that both outcomes share. If all probabilities are equal, only
        the intercept is estimated, at slope 1, with one degree of freedom.

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
    return cox_of(*event_of(rows, class_, probs, classes), confidence)


def all_tests(rows: Predictions, confidence: float) -> dict[str, CalibrationTest]:
    """Return each test of the top label, by name."""
    event = event_of(rows)
    return {
        "spiegelhalter": spiegelhalter_of(*event),
        "cox": cox_of(*event, confidence),
        "kuiper": cumulative_of(*event, "kuiper"),
        "kolmogorov_smirnov": cumulative_of(*event, "ks"),
    }


def spiegelhalter_of(c: Vector, outcome: Vector, w: Vector, groups: Indices | None) -> CalibrationTest:
    """Return Spiegelhalter's test of probabilities c, with weights w."""
    from scipy.special import erfc

    excess = (outcome - c) * (1 - 2 * c)
    variance = float(w**2 @ ((1 - 2 * c) ** 2 * c * (1 - c))) * _variance_factor(excess, w, groups)
    z = _over(float(w @ excess), variance)
    p = float(erfc(abs(z) / np.sqrt(2)))
    if not (c != 0.5).any():
        return CalibrationTest(z, p, "It says nothing: every probability is 1/2.")
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
    p = range_survival(value) if statistic == "kuiper" else maximum_survival(value)
    return CalibrationTest(value, p, f"{statistic} = {value:.2f}, {verdict(p)}")


def _variance_factor(values: Vector, w: Vector, groups: Indices | None, parts: int = 1) -> float:
    """Return the variance of the sum of w values of groups, relative to that of independent rows.

    With more `parts`, that of the sum up to the end of a part, where it is largest.
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
    """Return a sum in units of its standard deviation: infinite if that is 0 and the sum is not."""
    if variance > 0:
        return total / float(np.sqrt(variance))
    # Up to rounding, certain predictions have no variance.
    return 0.0 if abs(total) < 1e-12 else float(np.copysign(np.inf, total))


def range_survival(x: float) -> float:
    """Return the probability that the range of Brownian motion on [0, 1] exceeds x (Feller, 1951)."""
    from scipy.special import ndtr

    if x < 0.4:  # P(range < 0.4) is below 1e-12
        return 1.0
    k = np.arange(1, int(40 / x) + 2) if np.isfinite(x) else np.ones(1)
    signs = np.where(k % 2 == 1, 1.0, -1.0)
    return float(np.clip(8 * np.sum(signs * k * ndtr(-k * x)), 0.0, 1.0))


def maximum_survival(x: float) -> float:
    """Return the probability that the largest |value| of Brownian motion on [0, 1] exceeds x."""
    from scipy.special import ndtr

    if x < 0.2:  # P(maximum < 0.2) is below 1e-12
        return 1.0
    k = np.arange(int(20 / x) + 2) if np.isfinite(x) else np.zeros(1)
    signs = np.where(k % 2 == 0, 1.0, -1.0)
    return float(np.clip(4 * np.sum(signs * ndtr(-(2 * k + 1) * x)), 0.0, 1.0))


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

    c = np.clip(probability, _MIN_DISTANCE, 1 - _MIN_DISTANCE)
    logit, weight = np.log(c) - np.log1p(-c), weight * weight.sum() / (weight @ weight)
    loss = _LogisticLoss(np.column_stack([np.ones(len(c)), logit]), outcome, weight)
    has_slope, total = bool(np.ptp(logit) > 0), loss.total_weight
    theta, errors = np.full((2, 2), np.nan)
    factor, freedom = _variance_factor(outcome - c, weight, groups), 1.0 + has_slope
    if _separated(logit, outcome):
        best, rate = _lowest_loss(logit, outcome, weight), float(weight @ outcome) / total
        if not has_slope and 0 < rate < 1:
            theta[0] = np.log(rate) - np.log1p(-rate) - logit[0]
            errors[0] = np.sqrt(factor / (total * rate * (1 - rate)))
    else:
        # From where every rate is 1/2: at the null, certain rows would have no information.
        solution = fisher_scoring(loss, np.zeros(2), _TOLERANCE)
        end = loss(solution.parameters)
        best, (gradient, fisher) = end.value, end.derivatives
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
    """Return what to divide a likelihood ratio by, and its degrees of freedom, if rows belong to groups.

    With S the sums of outer products of the scores, of groups and of rows, and M = S_rows^-1 S_groups, the
    ratio is a sum of chi-squared variables times the eigenvalues of M. Over tr M^2 / tr M, it is nearly
    chi-squared with (tr M)^2 / tr M^2 degrees of freedom (Rao and Scott, 1984).
    """
    sums = np.column_stack([np.bincount(groups, column) for column in scores.T])
    effects = np.linalg.pinv(scores.T @ scores, hermitian=True) @ (sums.T @ sums)
    first, second = float(np.trace(effects)), float(np.sum(effects * effects.T))
    if second <= 0:  # no row can move the estimate
        return 1.0, float(scores.shape[1])
    return max(second / first, 1.0), min(first**2 / second, float(scores.shape[1]))


def _of_groups(
    loss: _LogisticLoss, theta: Vector, inverse: Matrix, groups: Indices
) -> tuple[Vector, float, float]:
    """Return how much groups widen the errors, by the sandwich, and the result of `_rao_scott`."""
    rate = 0.5 * (1 + np.tanh(loss.design @ theta / 2))
    residual = loss.outcome - rate
    scores = loss.design * (loss.weight * residual)[:, None]
    moved = scores @ inverse
    sums = np.column_stack([np.bincount(groups, column) for column in moved.T])
    times = np.sum(sums**2, axis=0) / np.sum(moved**2, axis=0)
    share = loss.weight / loss.total_weight
    widening = Units.of(share * residual, share, groups).widening(1 - LEVEL)
    factor, freedom = _rao_scott(scores, groups)
    errors: Vector = np.sqrt(np.maximum(times, 1.0)) * widening
    return errors, factor * widening**2, freedom


class _LogisticLoss(Objective):
    """The mean negative log-likelihood of outcomes with the log odds `design @ theta`.

    The other objectives of the solver are about temperatures, which are positive; a slope may be negative.
    """

    order = 2  # the Fisher matrix is the second derivative
    passes = 0

    def __init__(self, design: Matrix, outcome: Vector, weight: Vector) -> None:
        super().__init__(float(weight.sum()), np.dtype(np.float64), prior=None)
        self.design, self.outcome, self.weight = design, outcome, weight

    def every(self, step: int) -> Self:
        """Return the loss of one of each `step` rows."""
        at = sampled_rows(step, len(self.weight))
        return type(self)(self.design[at], self.outcome[at], self.weight[at])

    def evaluate(self, theta: Vector) -> ObjectivePoint:
        """Return the value and the derivatives."""
        odds, share = self.design @ theta, self.weight / self.total_weight

        def derive(with_fisher: bool) -> tuple[Vector, Matrix]:
            rate = 0.5 * (1 + np.tanh(odds / 2))
            fisher = (self.design * (share * rate * (1 - rate))[:, None]).T @ self.design
            return self.design.T @ (share * (rate - self.outcome)), fisher

        return ObjectivePoint(float(share @ (np.logaddexp(0, odds) - self.outcome * odds)), derive)


def _separated(logit: Vector, outcome: Vector) -> bool:
    """Say whether outcomes do not overlap, except at one value: then no slope and intercept are best."""
    of_0, of_1 = logit[outcome == 0], logit[outcome == 1]
    if not len(of_0) or not len(of_1):
        return True
    return bool(of_0.max() <= of_1.min() or of_1.max() <= of_0.min())


def _lowest_loss(logit: Vector, outcome: Vector, weight: Vector) -> float:
    """Return the infimum of the mean loss of separated outcomes: that of the value that both share."""
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
