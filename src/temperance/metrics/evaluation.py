"""Every metric at once, with intervals, and tests of calibration; metrics of a caller's own besides."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from temperance import loaders
from temperance.core.arrays import Indices, Matrix
from temperance.errors import InputError
from temperance.inputs.names import Names
from temperance.inputs.validation import random_generator
from temperance.metrics.bins import Reliability, bin_rows, check_bins, debiased, places_in_bins
from temperance.metrics.bootstrap import DRAWS, bootstrap, expected_noise, norm_interval, scaled
from temperance.metrics.by_group import CalibrationByGroup, calibration_by_group
from temperance.metrics.calibration_tests import CalibrationTest, all_tests
from temperance.metrics.finding import Finding
from temperance.metrics.intervals import Estimate, mean_interval, without_nan
from temperance.metrics.predictions import Predictions, check_fraction, check_integer, check_rows
from temperance.metrics.smooth import coarse_cells, fixed_point, grid_mean, places_on_grid, smoothed
from temperance.metrics.table import METRICS
from temperance.progress import reporting

MetricFunction = Callable[[Matrix, Indices], float]
Metrics = Sequence[MetricFunction | str] | Mapping[str, MetricFunction | str]
"""Functions or `package.module:function`, or a mapping of names to these."""


@dataclass(frozen=True)
class Uncalibrated:
    """The classifier's own probabilities of the rows whose calibrated ones are evaluated.

    Attributes
    ----------
    finding : Finding
        What the rows show about them.
    nll, calibrated_nll : float
        The NLL of both.
    gain : Estimate
        How much calibration lowers the NLL, with its interval, paired over rows.
    confidence : float
        Level of the interval.

    Examples
    --------
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=2000, n_classes=2)
    >>> p = 1 / (1 + np.exp(task.logits[:, 0] - task.logits[:, 1]))
    >>> print(evaluate(p**2, task.labels, before=p, draws=20).before)
    Calibration raises the log loss from ... to ..., by ... (95% interval ... to ...): leave the classifier as it is.
    """  # noqa: E501

    finding: Finding
    nll: float
    calibrated_nll: float
    gain: Estimate
    confidence: float

    @classmethod
    def of(cls, before: Predictions, after: Predictions, confidence: float) -> Uncalibrated:
        """Compare the probabilities of the same rows before and after calibration."""
        wrong = before.pseudo_error
        at_wrong = (replace(rows, labels=wrong.labels).nll for rows in (before, after))
        with np.errstate(invalid="ignore"):  # both can be infinite
            gains, of_wrong = before.nll - after.nll, next(at_wrong) - next(at_wrong)
        gains = np.where(np.isnan(gains), 0.0, gains)
        pseudo = np.where(np.isnan(of_wrong), 0.0, of_wrong), wrong.weight
        gain = mean_interval(gains, before.weight, confidence, -np.inf, np.inf, pseudo, before.groups)
        nll, calibrated = (rows.mean(rows.nll) for rows in (before, after))
        return cls(Finding.of(before), nll, calibrated, gain, confidence)

    def __str__(self) -> str:
        if np.isinf(self.nll) and np.isfinite(self.calibrated_nll):
            return f"Calibration makes the log loss finite: {self.calibrated_nll:.4f}."
        low, high = sorted(abs(end) for end in (self.gain.low, self.gain.high))
        change = f"the log loss from {self.nll:.4f} to {self.calibrated_nll:.4f}"
        by = f"by {abs(self.gain.value):.4f} ({100 * self.confidence:g}% interval {low:.4f} to {high:.4f})"
        if self.gain.low > 0:
            return f"Calibration lowers {change}, {by}."
        if self.gain.high < 0:
            return f"Calibration raises {change}, {by}: leave the classifier as it is."
        ends = f"{-self.gain.high:+.4f} to {-self.gain.low:+.4f}"
        return f"Calibration changes {change}: no more than chance explains ({ends})."

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and words, ready for JSON; None for what is unknown."""
        numbers = {"nll": self.nll, "nll_gain": asdict(self.gain), "words": str(self)}
        plain: dict[str, Any] = without_nan(numbers | {"finding": self.finding.to_dict()})
        return plain


@dataclass(frozen=True)
class Evaluation(Mapping[str, Estimate]):
    """All metrics of one set of predictions: a mapping from name to `Estimate`, printed as a table.

    Attributes
    ----------
    estimates : dict from str to Estimate
    n_rows, n_classes : int
        Size of what was evaluated; rows of weight 0 are not counted.
    bins : int
        Number of bins of the calibration errors.
    confidence : float
        Level of the intervals.
    draws : int
        Bootstrap resamples behind them.
    tests : dict from str to CalibrationTest
        Tests of calibration of the top label, and of all classes; not part of the mapping.
    n_groups : int or None
        Number of groups of rows that intervals and tests take as independent; None if these are the rows.
    of_first_axis : bool
        Whether the groups are the entries of the first axis of `probs`.
    by_group : CalibrationByGroup or None
        Calibration per value of `by`: findings with corrected p-values, and whether the values differ.
    finding : Finding or None
        What the rows show about the probabilities, as every command says it.
    before : Uncalibrated or None
        The same before calibration, and what calibration does to the NLL.

    Examples
    --------
    >>> result = Evaluation({"ece": Estimate(0.02, 0.01, 0.03)}, 100, 3, 15, 0.95, 1000)
    >>> result["ece"].value, list(result)
    (0.02, ['ece'])
    >>> print(result)
    100 rows, 3 classes, 15 bins; 95% intervals from 1,000 resamples
    <BLANKLINE>
    metric                     value         low        high
    ece                        2.00%       1.00%       3.00%
    """

    estimates: dict[str, Estimate]
    n_rows: int
    n_classes: int
    bins: int
    confidence: float
    draws: int
    tests: Mapping[str, CalibrationTest] = field(default_factory=dict)
    n_groups: int | None = None
    of_first_axis: bool = False
    by_group: CalibrationByGroup | None = None
    finding: Finding | None = None
    before: Uncalibrated | None = None

    def __getitem__(self, name: str) -> Estimate:
        return self.estimates[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.estimates)

    def __len__(self) -> int:
        return len(self.estimates)

    def __str__(self) -> str:
        head = (
            f"{self.n_rows:,} rows, {self.n_classes:,} classes, {self.bins:,} bins; "
            f"{100 * self.confidence:g}% intervals from {self.draws:,} resamples"
        )
        if self.n_groups is not None:
            head += f"\n{self.groups_in_words}"
        head = "\n".join([*self.answer, head])
        lines = [
            f"{name:<20}" + "".join(f"{self.shown(name, number):>12}" for number in astuple(estimate))
            for name, estimate in self.items()
        ]
        table = [head, "", f"{'metric':<20}{'value':>12}{'low':>12}{'high':>12}", *lines]
        tests = ["", *self._test_lines()] if self.tests else []
        return "\n".join([*table, *tests, *([] if self.by_group is None else ["", str(self.by_group)])])

    @property
    def answer(self) -> tuple[str, ...]:
        """What the rows show: about calibration, if there are probabilities before it, and what remains."""
        if self.finding is None or self.before is None:
            return () if self.finding is None else (str(self.finding),)
        return str(self.before), f"Before: {self.before.finding}", f"After: {self.finding}"

    @property
    def groups_in_words(self) -> str:
        """What intervals and tests take as independent."""
        which = ", the entries of the first axis" if self.of_first_axis else ""
        if self.n_groups is None:
            return "Intervals and tests take rows as independent."
        return f"Intervals and tests are by groups: {self.n_groups:,} groups{which}."

    def _test_lines(self) -> list[str]:
        rows = [("test of calibration", "statistic", "p-value"), *self.shown_tests()]
        lines = [f"{name:<20}{statistic:>12}{p_value:>12}" for name, statistic, p_value in rows]
        cox = self.tests.get("cox")
        return lines if cox is None else [*lines, "", *textwrap.wrap(f"Cox: {cox.words}", 80)]

    def shown_tests(self) -> list[tuple[str, str, str]]:
        """Return name, statistic and p-value of each test as a table shows them."""
        return [
            (name, f"{test.statistic:.2f}", f"{test.p_value:.3f}" if test.p_value >= 0.001 else "< 0.001")
            for name, test in self.tests.items()
        ]

    @staticmethod
    def shown(name: str, number: float) -> str:
        """Format a number: fractions in percent, losses unchanged, "-" if unknown."""
        if number != number:
            return "-"
        metric = METRICS.get(name)
        return f"{number:.4f}" if metric is None else f"{metric.shown(number)}{metric.unit}"

    def _repr_html_(self) -> str:
        html: str = loaders.load("evaluation html")(self)
        return html

    def to_dict(self) -> dict[str, dict[str, float | None]]:
        """Return plain numbers in natural units, ready for JSON: name -> value, low, high; None for nan."""
        return {name: without_nan(asdict(estimate)) for name, estimate in self.items()}

    def tests_to_dict(self) -> dict[str, dict[str, Any]]:
        """Return the tests as plain numbers, ready for JSON: name -> statistic, p_value, words and others."""
        return {name: without_nan(asdict(test)) for name, test in self.tests.items()}


def evaluate(
    probs: ArrayLike,
    labels: ArrayLike,
    *,
    bins: int = 15,
    confidence: float = 0.95,
    random_state: int | np.random.Generator | None = 0,
    draws: int = DRAWS,
    sample_weight: ArrayLike | None = None,
    classes: Names | None = None,
    groups: ArrayLike | None = None,
    dim: int = -1,
    ignore_index: int | None = None,
    by: ArrayLike | None = None,
    positive: int | str | None = None,
    positions: bool = False,
    before: ArrayLike | None = None,
    progress: Callable[[float], None] | bool | None = True,
) -> Evaluation:
    """Compute all metrics, with intervals.

    Intervals of means take the skewness of the rows into account; the accuracy has Wilson's interval.
    Calibration errors are biased upwards. Their intervals invert a test that accounts for the noise of the
    rows, from resamples with random factors, see `metrics.bootstrap`. They cover the error of the same bins
    in the population, even if that is 0, and contain the estimate. `debiased_ece` estimates the same number
    as `ece`, and has its interval.

    Rows without an error do not show what an error would cost. So the moments behind all intervals contain
    one pseudo-error, at a class that the classifier finds likely, see `metrics.intervals`. It widens the
    intervals of accurate classifiers, and is one row of many elsewhere.

    `mce` and `classwise_ece` have no interval: its ends are nan. The worst bin of `mce` is often the one with
    the fewest rows, whose noise resampling cannot show. Most bins of `classwise_ece` have few events, and
    intervals of the kind of `ece`, tried before, contained its true value in 87 to 99.7% of simulations.

    A single row has no interval except for the accuracy. docs/benchmarks/coverage.md shows the coverage on
    simulated data. How much of the log loss is due to calibration is what it falls by with the best
    calibrator: `temperance.compare`.

    `finding` says whether the probabilities are calibrated, by the one test that all commands use. `tests`
    has other tests, which no sentence uses: `spiegelhalter`, `cox`, and `cumulative_differences` with both of
    its statistics, all for the top label, and `cox_classes`.

    Parameters
    ----------
    probs : array of shape (N, K), or (N,) for the second of two classes
    labels : integer array of shape (N,)
    bins : int
        Bins of equal width for `ece`, `debiased_ece`, `mce` and `classwise_ece`.
    confidence : float
        Level of the intervals.
    random_state : int, numpy Generator or None
        The same integer gives the same numbers.
    draws : int
        Number of resamples behind the intervals of calibration errors.
    sample_weight : array of shape (N,), optional
        In values, a row of weight k counts as k rows. Intervals resample the rows with their weights: a row
        of weight k is one observation.
    classes : sequence of str or int, optional
        The names of the columns, as for `accuracy`.
    groups : array of shape (N,), optional
        An id per row, the same for rows that belong together, such as the visits of a patient. Intervals and
        tests then take the groups as independent, not the rows; the fewer groups, the wider the intervals.
        Values stay the same, except `debiased_ece`, which depends on noise.
    dim : int
        Axis of the classes in `probs`: 1 for pixels, (N, K, H, W). `labels`, `sample_weight` and
        `groups` have the shape without it. Without `groups`, the entries of the first axis are the groups.
    ignore_index : int, optional
        Label of rows to leave out, such as 255 for pixels without a class.
    by : array of shape (N,), optional
        Values for which calibration is shown separately, such as the hospital: `by_group` of the result.
    positive : int or str, optional
        The class whose probability people act on, which `finding` judges. Of two classes it is the second by
        default; of several, `finding` judges the confidence in the top class and the frequencies.
    positions : bool
        Whether columns are positions without a meaning, as for `Calibrator.fit`.
    before : array like probs, optional
        The probabilities of the same rows before calibration: `before` of the result compares both.
    progress : bool, or function of the share done
        By default a line on standard error, if that is a terminal or a notebook and the call takes longer
        than two seconds; False turns it off. A function is called after each block of resamples.

    Returns
    -------
    Evaluation
        A mapping from the name of each metric to its `Estimate`; `print` shows a table.

    References
    ----------
    .. [1] Mammen (1993). Bootstrap and wild bootstrap for high dimensional linear models.
       doi:10.1214/aos/1176349025
    .. [2] Hall (1992). On the removal of skewness by transformation.
       doi:10.1111/j.2517-6161.1992.tb01876.x

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(size=500)
    >>> result = evaluate(p, rng.uniform(size=500) < p, draws=200)
    >>> result["ece"].low, round(result["accuracy"].value, 2)
    (0.0, 0.76)
    """
    given: dict[str, Any] = {
        "dim": dim, "ignore_index": ignore_index, "groups": groups, "by": by, "positive": positive,
        "positions": positions,
    }  # fmt: skip
    rows = check_rows(probs, labels, sample_weight, classes, examine=True, **given)
    scorer = Scorer(bins, confidence, draws, random_state)
    if callable(progress):
        result = scorer.evaluate(rows, progress)
    else:
        with reporting("Evaluating", progress) as report:
            result = scorer.evaluate(rows, lambda share: report("intervals", share))
    if before is not None:
        uncalibrated = check_rows(before, labels, sample_weight, classes, **given)
        uncalibrated = replace(uncalibrated, groups=rows.groups)
        result = replace(result, before=Uncalibrated.of(uncalibrated, rows, confidence))
    of_first_axis = groups is None and rows.groups is not None and np.ndim(probs) > 2
    return replace(result, of_first_axis=of_first_axis)


@dataclass
class Scorer:
    """The settings of an evaluation; with the same seed, as many rows have the same resamples.

    `metrics` are the caller's, besides ours; without `metric_intervals`, the ends of their intervals are nan.
    """

    bins: int
    confidence: float
    draws: int
    random_state: int | np.random.Generator | None
    metrics: Mapping[str, MetricFunction] = field(default_factory=dict)
    metric_intervals: bool = False

    def __post_init__(self) -> None:
        self.bins, self.draws = check_bins(self.bins), check_integer("draws", self.draws, 1)
        check_fraction("confidence", self.confidence)

    def evaluate(self, rows: Predictions, progress: Callable[[float], None] | None = None) -> Evaluation:
        """Return all metrics of the rows, and the tests.

        What several metrics share is done once: the fit of recalibrators, which gives the parts of losses and
        tells which residuals are plausible, and the resamples, which give the noise of calibration errors.
        """
        by_group = None if rows.by is None else calibration_by_group(rows)
        generator = random_generator("random_state", self.random_state)
        n_rows, n_classes = rows.probs.shape
        diagram = bin_rows(rows, self.bins)
        shared = {
            name: metric.estimate(rows, diagram, self.confidence)
            for name, metric in METRICS.items()
            if metric.estimate is not None
        }
        # A calibration error is at least the mean residual, whose interval has the skewness of few errors.
        furthest = max(abs(shared["overconfidence"].low), abs(shared["overconfidence"].high))
        seed = int(generator.integers(2**63))
        shared |= self._calibration_errors(rows, diagram, furthest, seed, progress)
        estimates = {name: shared[name] for name in METRICS}
        if self.metrics:
            probs = rows.probs.astype(np.float64)  # a copy: they might keep it, and the memory is used again
            for name, metric in self.metrics.items():
                estimates[name] = self._own_estimate(name, metric, probs, rows.labels, rows.groups)
        return Evaluation(
            estimates,
            *(n_rows, n_classes, self.bins, self.confidence, self.draws),
            all_tests(rows, self.confidence),
            None if rows.groups is None else int(rows.groups.max()) + 1,
            by_group=by_group,
            finding=Finding.of(rows),
        )

    def _calibration_errors(
        self,
        rows: Predictions,
        diagram: Reliability,
        least_high: float,
        seed: int,
        progress: Callable[[float], None] | None,
    ) -> dict[str, Estimate]:
        """Return the calibration errors with intervals."""
        width = fixed_point(grid_mean(rows))
        in_bins, on_grid = places_in_bins(rows, self.bins), places_on_grid(rows, coarse_cells(width))
        noise_in_bins, noise_on_grid = bootstrap(rows, (in_bins, on_grid), self.draws, seed, progress)
        weight, widening = rows.weight, np.float32(rows.units.widening(self.confidence))
        residual = weight * rows.residual
        count, stated = in_bins @ weight, in_bins @ (weight * rows.confidence.astype(np.float64))
        chance = in_bins @ rows.pseudo_error.weight
        expected = expected_noise(count, stated, chance, weight, diagram.effect)
        error = norm_interval(
            diagram.error,
            in_bins @ residual / rows.total,
            scaled(noise_in_bins, expected) * widening,
            self.confidence,
            least_high,
        )
        smooth_error = norm_interval(
            width,
            smoothed(on_grid @ residual / rows.total, width),
            smoothed(noise_on_grid * widening, width),
            self.confidence,
            least_high,
        )
        without_bias = debiased(diagram)  # of the same true number
        return {
            "ece": error,
            "debiased_ece": replace(error, value=without_bias, low=min(error.low, without_bias)),
            "smooth_ece": smooth_error,
        }

    def _own_estimate(
        self, name: str, metric: MetricFunction, probs: Matrix, labels: Indices, groups: Indices | None
    ) -> Estimate:
        """Return a metric of a caller, with percentiles of resampled rows or groups."""
        value = value_of(name, metric, probs, labels)
        if not self.metric_intervals:
            return Estimate(value, np.nan, np.nan)
        rng = np.random.default_rng(self.random_state)
        by_unit = np.arange(len(labels)) if groups is None else groups
        units = np.split(np.argsort(by_unit, kind="stable"), np.cumsum(np.bincount(by_unit))[:-1])
        sample = []
        for _ in range(self.draws):
            rows = np.concatenate([units[one] for one in rng.integers(len(units), size=len(units))])
            sample.append(value_of(name, metric, probs[rows], labels[rows]))
        tails = [(1 - self.confidence) / 2, (1 + self.confidence) / 2]
        # Order statistics, since draws can be infinite.
        low, high = np.quantile(sample, tails, method="inverted_cdf")
        return Estimate(value, float(low), float(high))


def named_metrics(given: Metrics | None) -> dict[str, MetricFunction]:
    """Return metrics by name: a function's own name, unless a mapping names it."""
    if not isinstance(given, Mapping):
        functions = [_function(one) for one in given or ()]
        return {getattr(function, "__name__", repr(function)): function for function in functions}
    return {name: _function(one) for name, one in given.items()}


def _function(given: MetricFunction | str) -> MetricFunction:
    function: MetricFunction = loaders.load_object(given) if isinstance(given, str) else given
    if not callable(function):
        raise InputError(f"a metric must be a function of (probs, labels); found {given!r}.")
    return function


def value_of(name: str, metric: MetricFunction, probs: Matrix, labels: Indices) -> float:
    """Return a metric of some rows; raise with its name if it cannot be computed."""
    try:
        return float(metric(probs, labels))
    except Exception as error:
        raise InputError(f"the metric {name} failed: {type(error).__name__}: {error}") from error
