"""The table of metrics: their meaning, computation and format.

A metric is a record, and a function of checked rows. These define the public function of (probs, labels), the
entry of `evaluate`, headings and units of tables, labels of figures, and glossaries. To add a metric, write
it here and export it in `metrics/__init__.py`.

    accuracy        mean 1[argmax_k p_k = y]
    nll             mean -log p_y
    brier           mean sum_k (p_k - 1[k = y])^2
    overconfidence  mean max_k p_k - accuracy

Accuracy depends only on the order of the probabilities. The negative log-likelihood and the Brier score are
strictly proper: their expectation is smallest for the true probabilities and no others. The formulas of the
other metrics are in the modules that compute them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Literal, ParamSpec, TypeVarTuple

import numpy as np
from numpy.typing import ArrayLike

from temperance.core.arrays import Vector
from temperance.inputs.names import Names
from temperance.metrics.bins import Reliability, bin_rows, check_bins, classwise_error, debiased
from temperance.metrics.intervals import Estimate, influence_interval, mean_interval, proportion_interval
from temperance.metrics.predictions import Predictions, check_rows, risk_curve
from temperance.metrics.smooth import fixed_point, grid_mean

_Parameters = ParamSpec("_Parameters")
_Checked = TypeVarTuple("_Checked")


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A metric's name and format, and how `evaluate` estimates it.

    Attributes
    ----------
    label : str
        Its name in figures and tables.
    help : str
        Its definition, for a glossary.
    interval : str
        Where the interval comes from.
    range : tuple of two floats
    estimate : function of rows, their reliability diagram and the level, optional
        Returns the value and its interval; None if `evaluate` estimates the metric together with others.
    best : {"lowest", "highest", "zero"}
    unit : {"", "%"}
        How it is shown; the numbers are fractions in either case.
    in_report : bool
        Whether reports show it; evaluations always do.
    """

    label: str
    help: str
    interval: Literal["Wilson", "skewness", "bootstrap", "none"]
    range: tuple[float, float]
    estimate: Callable[[Predictions, Reliability, float], Estimate] | None = None
    best: Literal["lowest", "highest", "zero"] = "lowest"
    unit: Literal["", "%"] = ""
    in_report: bool = False

    @property
    def factor(self) -> int:
        """The factor from natural to shown units."""
        return 100 if self.unit == "%" else 1

    @property
    def decimals(self) -> int:
        """The number of decimals to show."""
        return 2 if self.unit == "%" else 4

    def heading(self) -> str:
        """Return the label with its unit."""
        return f"{self.label} {self.unit}".rstrip()

    def shown(self, value: float) -> str:
        """Return a number as text, without the unit."""
        return f"{self.factor * value:.{self.decimals}f}"

    def public(
        self, check: Callable[_Parameters, tuple[*_Checked]]
    ) -> Callable[[Callable[[*_Checked], float]], Callable[_Parameters, float]]:
        """List the metric, and make its public function from its function of checked input.

        The public function has the parameters of `check`, and their description.
        """

        def decorate(of_checked: Callable[[*_Checked], float]) -> Callable[_Parameters, float]:
            @wraps(of_checked)
            def score(*given: _Parameters.args, **options: _Parameters.kwargs) -> float:
                try:
                    signature.bind(*given, **options)
                except TypeError as error:  # which would name `check`
                    message = f"{score.__name__} takes probs and labels, and others by name: {error}"
                    raise TypeError(message) from None
                return of_checked(*check(*given, **options))

            about, returns, rest = (inspect.getdoc(of_checked) or "").partition("Returns\n-------\n")
            _, _, parameters = (inspect.getdoc(check) or "").partition("\n\n")
            score.__doc__ = f"{about}{parameters}\n\n{returns}{rest}"
            signature = inspect.signature(check).replace(return_annotation="float")
            score.__signature__ = signature  # type: ignore[attr-defined]
            METRICS[score.__name__] = self
            return score

        return decorate


METRICS: dict[str, Metric] = {}
"""The metrics that `evaluate` computes, by name."""


def scored(
    probs: ArrayLike,
    labels: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    classes: Names | None = None,
    dim: int = -1,
    ignore_index: int | None = None,
) -> tuple[Predictions]:
    """Check the input of a score.

    Parameters
    ----------
    probs : array of shape (N, K), or (N,) for the second of two classes
    labels : integer array of shape (N,)
    sample_weight : array of shape (N,), optional
        A row of weight k counts as k equal rows.
    classes : sequence of str or int, optional
        Names of the columns, in their order, if labels are names. A DataFrame has its own.
    dim : int
        Axis of the classes in `probs`: 1 for pixels, (N, K, H, W). `labels` and `sample_weight`
        have the shape without it.
    ignore_index : int, optional
        Label of rows to leave out, such as 255 for pixels without a class.
    """
    return (check_rows(probs, labels, sample_weight, classes, dim=dim, ignore_index=ignore_index),)


def scored_in_bins(
    probs: ArrayLike,
    labels: ArrayLike,
    *,
    bins: int = 15,
    strategy: str = "width",
    sample_weight: ArrayLike | None = None,
    classes: Names | None = None,
    dim: int = -1,
    ignore_index: int | None = None,
) -> tuple[Predictions, int, str]:
    """Check the input of a score with bins.

    Parameters
    ----------
    probs : array of shape (N, K), or (N,) for the second of two classes
    labels : integer array of shape (N,)
    bins : int
        Number of bins. More bins resolve finer miscalibration, and add more noise.
    strategy : {"width", "mass"}
        Bins of equal width, or of equal weight; rows of equal confidence stay together.
    sample_weight : array of shape (N,), optional
        A row of weight k counts as k equal rows.
    classes : sequence of str or int, optional
        Names of the columns, in their order, if labels are names. A DataFrame has its own.
    dim : int
        Axis of the classes in `probs`: 1 for pixels, (N, K, H, W). `labels` and `sample_weight`
        have the shape without it.
    ignore_index : int, optional
        Label of rows to leave out, such as 255 for pixels without a class.
    """
    bins = check_bins(bins, strategy)
    rows = check_rows(probs, labels, sample_weight, classes, dim=dim, ignore_index=ignore_index)
    return rows, bins, strategy


def _estimated_mean(
    of_rows: Callable[[Predictions], Vector], low: float, high: float
) -> Callable[[Predictions, Reliability, float], Estimate]:
    """Return a function that estimates the mean of one number per row, within [low, high]."""

    def estimate(rows: Predictions, _: Reliability, level: float) -> Estimate:
        wrong = rows.pseudo_error
        pseudo = of_rows(wrong), wrong.weight
        return mean_interval(of_rows(rows), rows.weight, level, low, high, pseudo, rows.groups)

    return estimate


@Metric(
    label="accuracy",
    help="the fraction of rows whose predicted class is the label",
    estimate=lambda rows, _, level: proportion_interval(rows.correct, rows.weight, level, rows.groups),
    interval="Wilson",
    range=(0, 1),
    best="highest",
    unit="%",
    in_report=True,
).public(scored)
def accuracy(rows: Predictions) -> float:
    """Fraction of rows in which the label has the largest probability.

    Returns
    -------
    float
        From 0 to 1. If the largest probabilities are tied, the first one counts.

    Examples
    --------
    >>> accuracy([[0.9, 0.1], [0.4, 0.6]], [0, 0])
    0.5
    """
    return rows.mean(rows.correct)


@Metric(
    label="log loss",
    help="negative log-likelihood: the mean of -log of the probability given to the true class. A proper "
    "score, lowest for true probabilities; methods are ranked by it",
    estimate=_estimated_mean(lambda rows: rows.nll, 0, np.inf),
    interval="skewness",
    range=(0, np.inf),
    in_report=True,
).public(scored)
def nll(rows: Predictions) -> float:
    """Negative log-likelihood: mean of -log of the probability of the label, in nats.

    Returns
    -------
    float
        At least 0. It is infinite if a label has probability exactly 0: the prediction excluded what
        happened, and no clipping hides it. If the 0 is an underflow, compute the softmax in float64.

    References
    ----------
    .. [1] Gneiting and Raftery (2007). Strictly proper scoring rules, prediction, and estimation.
       doi:10.1198/016214506000001437

    Examples
    --------
    >>> round(nll([[0.5, 0.5], [0.2, 0.8]], [0, 1]), 4)
    0.4581
    >>> nll([[1.0, 0.0]], [1])
    inf
    """
    return rows.mean(rows.nll)


@Metric(
    label="Brier score",
    help="mean squared distance between the probabilities and the outcome, summed over classes",
    estimate=_estimated_mean(lambda rows: rows.brier, 0, 2),
    interval="skewness",
    range=(0, 2),
    in_report=True,
).public(scored)
def brier(rows: Predictions) -> float:
    """Brier score: mean over rows of the sum over classes of (p - onehot)^2.

    Returns
    -------
    float
        From 0 to 2. For two classes this is twice the score of only the second class, which
        `sklearn.metrics.brier_score_loss` returns by default.

    References
    ----------
    .. [1] Brier (1950). Verification of forecasts expressed in terms of probability.
       doi:10.1175/1520-0493(1950)078<0001:VOFEIT>2.0.CO;2
    .. [2] Gneiting and Raftery (2007). Strictly proper scoring rules, prediction, and estimation.
       doi:10.1198/016214506000001437

    Examples
    --------
    >>> round(brier([[0.5, 0.5], [0.2, 0.8]], [0, 1]), 4)
    0.29
    """
    return rows.mean(rows.brier)


@Metric(
    label="ECE",
    help="expected calibration error: the mean distance between confidence and accuracy, over bins",
    interval="bootstrap",
    range=(0, 1),
    unit="%",
    in_report=True,
).public(scored_in_bins)
def ece(rows: Predictions, bins: int, strategy: str) -> float:
    """Top-label expected calibration error: mean over rows of the absolute gap of their bin.

    Returns
    -------
    float
        From 0 to 1. The noise of the bins makes it too large on average, see `debiased_ece`.

    References
    ----------
    .. [1] Naeini et al. (2015). Obtaining well calibrated probabilities using Bayesian binning.
       doi:10.1609/aaai.v29i1.9602
    .. [2] Guo et al. (2017). On calibration of modern neural networks. arXiv:1706.04599

    Examples
    --------
    >>> round(ece([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6]], [0, 1, 1], bins=5), 4)
    0.4333
    """
    return bin_rows(rows, bins, strategy).error


@Metric(
    label="debiased ECE",
    help="the ECE without the part that noise adds on average",
    interval="bootstrap",
    range=(0, 1),
    unit="%",
).public(scored_in_bins)
def debiased_ece(rows: Predictions, bins: int, strategy: str) -> float:
    """Top-label expected calibration error minus its finite-sample bias, in closed form.

    The absolute value turns the noise of a bin's accuracy into error: a perfectly calibrated classifier has
    an ECE above 0. Bröcker (2012) showed that binned estimates of reliability have this bias. Kumar, Liang
    and Ma (2019) proposed to subtract the bias that a normal approximation of each bin's accuracy predicts.
    They simulate it; here it is the mean of the folded normal.

    Returns
    -------
    float
        From 0 to 1, never above `ece`. Part of the bias remains where the true gap is near 0, because the
        observed gap is used in its place. A bin with one row, or whose rows are all correct or all wrong, has
        an estimated variance of 0 and is not corrected at all: with many such bins the result is unreliable,
        and fewer bins, or `strategy="mass"`, are better. Empty bins add nothing. Weights count as numbers of
        rows; other weights misstate the noise.

    References
    ----------
    .. [1] Bröcker (2012). Estimating reliability and resolution of probability forecasts through
       decomposition of the empirical score. doi:10.1007/s00382-011-1191-1
    .. [2] Kumar et al. (2019). Verified uncertainty calibration. arXiv:1909.10155

    Examples
    --------
    >>> probs, labels = [[0.7, 0.3]] * 4, [0, 0, 1, 1]
    >>> round(ece(probs, labels), 4), round(debiased_ece(probs, labels), 4)
    (0.2, 0.1399)
    """
    return debiased(bin_rows(rows, bins, strategy))


@Metric(
    label="MCE",
    help="maximum calibration error: the distance between confidence and accuracy in the worst bin",
    estimate=lambda _, diagram, level: Estimate(float(np.abs(diagram.gap).max()), np.nan, np.nan),
    interval="none",
    range=(0, 1),
    unit="%",
).public(scored_in_bins)
def mce(rows: Predictions, bins: int, strategy: str) -> float:
    """Maximum calibration error of the top label: the absolute gap of the worst bin.

    Returns
    -------
    float
        From 0 to 1. The worst bin is often one with few rows; with `strategy="mass"` no bin is nearly empty.
        `evaluate` gives no interval for it: resampling cannot show the noise of a bin with one row, so no
        interval would have the correct coverage.

    References
    ----------
    .. [1] Naeini et al. (2015). Obtaining well calibrated probabilities using Bayesian binning.
       doi:10.1609/aaai.v29i1.9602

    Examples
    --------
    >>> round(mce([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6]], [0, 1, 1], bins=5), 4)
    0.8
    """
    return float(np.abs(bin_rows(rows, bins, strategy).gap).max())


@Metric(
    label="class-wise ECE",
    help="the ECE of the probability of every class, not only of the predicted one",
    estimate=lambda rows, diagram, _: Estimate(classwise_error(rows, len(diagram.count)), np.nan, np.nan),
    interval="none",
    range=(0, 1),
    unit="%",
    in_report=True,
).public(scored_in_bins)
def classwise_ece(rows: Predictions, bins: int, strategy: str) -> float:
    """Mean over classes of the calibration error of each class's probability.

    Returns
    -------
    float
        From 0 to 1. With many classes most probabilities are near 0, and so is the value. Compare it only
        between classifiers of the same classes.

    References
    ----------
    .. [1] Kull et al. (2019). Beyond temperature scaling: Obtaining well-calibrated multi-class probabilities
       with Dirichlet calibration. arXiv:1910.12656
    .. [2] Nixon et al. (2019). Measuring calibration in deep learning. arXiv:1904.01685

    Examples
    --------
    >>> round(classwise_ece([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6]], [0, 1, 1], bins=5), 4)
    0.4
    """
    return classwise_error(rows, bins, strategy)


@Metric(
    label="smooth ECE",
    help="the ECE without bins",
    interval="bootstrap",
    range=(0, 1),
    unit="%",
    in_report=True,
).public(scored)
def smooth_ece(rows: Predictions) -> float:
    """Smooth calibration error of the top label: no bins to choose, and continuous in the probabilities.

    Returns
    -------
    float
        From 0 to 1. Up to constants and a square root, it is a lower and an upper bound of the distance to
        the nearest perfectly calibrated predictor. Like `ece`, it is above 0 for a sample of a calibrated
        classifier.

    References
    ----------
    .. [1] Błasiok and Nakkiran (2024). Smooth ECE: Principled reliability diagrams via kernel smoothing.
       arXiv:2309.12236

    Examples
    --------
    >>> round(smooth_ece([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6]], [0, 1, 1]), 3)
    0.171
    """
    return fixed_point(grid_mean(rows))


@Metric(
    label="overconfidence",
    help="mean confidence minus accuracy",
    estimate=lambda rows, _, level: rows.gap(level),
    interval="skewness",
    range=(-1, 1),
    best="zero",
    unit="%",
).public(scored)
def overconfidence(rows: Predictions) -> float:
    """Mean confidence minus accuracy: the direction and size of the error.

    Returns
    -------
    float
        From -1 to 1: above 0 overconfident, below 0 underconfident. Its absolute value is the ECE with one
        bin.

    Examples
    --------
    >>> round(overconfidence([[0.9, 0.1], [0.2, 0.8]], [0, 0]), 4)
    0.35
    """
    return -rows.mean(rows.residual)


def _risk_area(rows: Predictions, _: Reliability, level: float) -> Estimate:
    """Return the area under the risk-coverage curve, to first order the mean of each row's contribution."""
    (area, influence, if_wrong), share = risk_curve(rows), rows.weight / rows.total
    pseudo = if_wrong, rows.pseudo_error.weight
    return influence_interval(area, influence, share, level, 0, 1, pseudo, rows.groups)


@Metric(
    label="AURC",
    help="area under the risk-coverage curve: the error rate of the most confident rows, averaged over "
    "how many of them are answered",
    estimate=_risk_area,
    interval="skewness",
    range=(0, 1),
    unit="%",
).public(scored)
def aurc(rows: Predictions) -> float:
    """Area under the risk-coverage curve of selective classification.

    A temperature that is the same for all rows hardly changes it; one that depends on the row can.

    Returns
    -------
    float
        From 0 to 1. Rows of equal confidence are answered together, so the order of rows does not matter.
        If the confidence is uninformative, it is the error rate.

    References
    ----------
    .. [1] Geifman et al. (2019). Bias-reduced uncertainty estimation for deep neural classifiers.
       arXiv:1805.08206

    Examples
    --------
    >>> round(aurc([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6]], [0, 1, 1]), 4)
    0.2778
    """
    return risk_curve(rows)[0]
