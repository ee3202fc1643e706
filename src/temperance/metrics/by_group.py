"""Is it calibrated for women over 60? Confidence minus accuracy in each part of the rows.

With c the confidence of a row and h = 1 where the prediction is correct, the rows with one value v of `by`
have the gap d_v = mean of c - h. Its interval is computed as for `overconfidence`, from these rows. Two
questions are tested.

Is it calibrated for v? The number of wrong predictions has the mean sum (1 - c) and the variance
f sum c (1 - c), where f is 1 for independent rows. In groups of k rows f = 1 + (k - 1) r, where the
correlation r within groups comes from all values together, since one value can have few groups. The number is
compared with a binomial count of the same mean and variance. The tails of that count are close to the exact
ones, of a sum of unequal chances, even where few errors are expected. p-values are two-sided mid-p values, of
Student's t where few groups determine the variance. Of several, the smallest is small by chance: Holm's
correction multiplies the i-th smallest of m by m - i + 1, and keeps their order.

Do the values differ? The same intercept for all, sigmoid(logit c + a), is fitted to the number of errors.
With z_v the normal quantile of each value's tail, sum z_v^2 is chi-squared with one degree of freedom less
than there are values. Where next to no errors are expected z_v varies less, and the test is conservative.

A value with few rows has a large gap by chance. In a model of random effects, with s_v the standard error
of d_v and t the standard deviation of the true gaps around their mean m, each gap is moved towards m:

    B_v = s_v^2 / (s_v^2 + t^2)         d_v + B_v (m - d_v)

Two or three values tell little about t. Its prior is half-normal with a scale of 20 points (Gelman, 2006), m
has a flat one, and results are averaged over the posterior of t, which is computed on a grid. The standard
error includes the uncertainty of m and of t.

References
----------
.. [1] Holm (1979). A simple sequentially rejective multiple test procedure.
.. [2] Gelman (2006). Prior distributions for variance parameters in hierarchical models.
   doi:10.1214/06-BA117A
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np

from temperance.core.arrays import Indices, Vector
from temperance.errors import listed, on_one_line
from temperance.inputs.groups import check_by
from temperance.metrics.bins import bin_rows
from temperance.metrics.calibration_tests import LEVEL, MIN_DISTANCE
from temperance.metrics.intervals import Estimate, without_nan
from temperance.metrics.predictions import Predictions
from temperance.metrics.table import METRICS

VISIBLE_GAP = 0.1  # rows whose interval is wider than this to either side are too few
_GAP_SCALE = 0.2  # of the prior of the standard deviation of true gaps
_MAX_SHIFT = 40.0  # of log odds


@dataclass(frozen=True)
class GroupCalibration:
    """The calibration of the rows with one value of `by`.

    Attributes
    ----------
    value : str
    n_rows : int
    n_groups : int or None
        Number of groups that these rows belong to, if there are groups.
    accuracy : float
    gap : Estimate
        Confidence minus accuracy: above 0 is overconfident.
    shrunk : Estimate
        The same, moved towards the other values as far as the rows are few.
    nll : Estimate
    p_value : float
        Of the test that the gap is 0; nan if every value has a single group.
    corrected : float
        The p-value after Holm's correction for the number of values.

    Examples
    --------
    >>> of_a = GroupCalibration("a", 9, None, 0.7, Estimate(0.2, -0.1, 0.5), Estimate(0.1, 0, 0.2),
    ...                         Estimate(0.6, 0.4, 0.9), 0.14, 0.28)
    >>> of_a.too_few, of_a.in_words
    (True, 'too few rows')
    """

    value: str
    n_rows: int
    n_groups: int | None
    accuracy: float
    gap: Estimate
    shrunk: Estimate
    nll: Estimate
    p_value: float
    corrected: float

    @property
    def too_few(self) -> bool:
        """Whether the rows are too few to show a gap of 10 points."""
        return not max(self.gap.high - self.gap.value, self.gap.value - self.gap.low) <= VISIBLE_GAP

    @property
    def in_words(self) -> str:
        """What these rows show."""
        if self.corrected < LEVEL:
            return "overconfident" if self.gap.value > 0 else "underconfident"
        if self.n_groups == 1:
            return "a single group"
        return "too few rows" if self.too_few else "no gap detectable"


@dataclass(frozen=True)
class CalibrationByGroup:
    """Calibration per value of `by`, those with the most evidence of a gap first.

    Attributes
    ----------
    values : tuple of GroupCalibration
    statistic, degrees_of_freedom, p_value : float
        The chi-squared test that all values have the same gap.
    confidence : float
        Level of the intervals.

    Examples
    --------
    >>> from temperance.metrics import evaluate
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0.5, 1, 2000)
    >>> hospital = np.repeat(["A", "B"], 1000)
    >>> right = rng.uniform(size=2000) < p - 0.1 * (hospital == "B")
    >>> found = evaluate(p, right, by=hospital, draws=20).by_group
    >>> [(one.value, one.in_words) for one in found.values]
    [('B', 'overconfident'), ('A', 'no gap detectable')]
    >>> print(found.words)
    Calibration differs between the 2 values (chi-squared test, p < 0.001). Overconfident: B. Not detectably miscalibrated: A.
    """  # noqa: E501  the words are on one line

    values: tuple[GroupCalibration, ...]
    statistic: float
    degrees_of_freedom: int
    p_value: float
    confidence: float

    @property
    def words(self) -> str:
        """Whether calibration differs between values, and for which it is off."""
        p = f"p {'< 0.001' if self.p_value < 0.001 else f'= {self.p_value:.3f}'}"
        test = f"between the {len(self.values)} values (chi-squared test, {p})"
        differs = (
            "Calibration differs" if self.p_value < LEVEL else "No difference of calibration is detectable"
        )
        sentences = [f"{differs} {test}."]
        if np.isnan(self.p_value):
            sentences = [f"Too few rows of the {len(self.values)} values to test whether they differ."]
        for state, words in (
            ("overconfident", "Overconfident"),
            ("underconfident", "Underconfident"),
            ("no gap detectable", "Not detectably miscalibrated"),
            ("too few rows", f"Too few rows to show a gap of {100 * VISIBLE_GAP:g} points"),
            ("a single group", "Rows of a single group, and so without an interval"),
        ):
            if named := [one.value for one in self.values if one.in_words == state]:
                sentences.append(f"{words}: {listed(named, on_one_line)}.")
        return " ".join(sentences)

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return headings, and one row of text per value."""
        head = [
            "value",
            "rows",
            "gap",
            f"{100 * self.confidence:g}% interval",
            "shrunk",
            "log loss",
            "p (Holm)",
        ]
        rows = []
        for one in self.values:
            gap, shrunk, low, high = (
                f"{100 * number:+.1f}"
                for number in (one.gap.value, one.shrunk.value, one.gap.low, one.gap.high)
            )
            p = f"{one.corrected:.3f}" if one.corrected >= 0.001 else "< 0.001"
            said = one.in_words if one.in_words in ("too few rows", "a single group") else p
            interval = "-" if np.isnan(one.gap.low) else f"{low} to {high}"
            rows.append([one.value, f"{one.n_rows:,}", gap, interval, shrunk, f"{one.nll.value:.4f}", said])
        return head, rows

    def __str__(self) -> str:
        head, rows = self.table()
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        lines = [
            "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])
            for row in (head, *rows)
        ]
        return "\n".join([self.words, "", *lines])

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and words, ready for JSON; None for nan."""
        about = {"words": self.words, "statistic": self.statistic, "p_value": self.p_value}
        values = [asdict(one) | {"finding": one.in_words, "too_few": one.too_few} for one in self.values]
        found = about | {"degrees_of_freedom": self.degrees_of_freedom, "correction": "Holm"}
        plain: dict[str, Any] = without_nan(found | {"values": values})
        return plain


def calibration_by_group(rows: Predictions, confidence: float) -> CalibrationByGroup:
    """Return the calibration of the rows with each value of `rows.by`."""
    from scipy.special import chdtrc, ndtri

    names, codes = check_by(rows.by, len(rows.probs))
    shifted, correlation = _with_common_gap(rows), _Correlation.of(rows, codes)
    counts, scores, errors, found = [], [], [], []
    for code, name in enumerate(names):
        index = np.flatnonzero(codes == code)
        part = rows.take(index)
        if part.groups is not None:  # numbered without gaps
            part = replace(part, groups=np.unique(part.groups, return_inverse=True)[1])
        stated, common = part.confidence.astype(np.float64), shifted[index]
        factor = correlation.factor(part)
        counts.append(_tail(part, stated, factor, correlation.freedom))
        scores.append(_tail(part, common, factor, correlation.freedom))
        share = part.weight / part.total
        errors.append(float(np.sqrt(factor * (share**2 @ (common * (1 - common))))))
        n_groups = None if part.groups is None else int(part.groups.max()) + 1
        gap, nll = (_estimate(name, part, confidence) for name in ("overconfidence", "nll"))
        accuracy = part.mean(part.correct)
        found.append(GroupCalibration(name, len(index), n_groups, accuracy, gap, gap, nll, np.nan, np.nan))
    tested = np.isfinite(errors)
    p_values = 2 * np.minimum(counts, 1 - np.array(counts))
    corrected = np.full(len(found), np.nan)
    corrected[tested] = holm(p_values[tested])
    gaps = np.array([one.gap.value for one in found])
    means, spreads = shrunk_gaps(gaps, np.array(errors))
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    values = [
        replace(
            one,
            shrunk=Estimate(mean, mean - z * spread, mean + z * spread),
            p_value=float(p_values[i]) if tested[i] else np.nan,
            corrected=float(corrected[i]),
        )
        for i, (one, mean, spread) in enumerate(zip(found, means.tolist(), spreads.tolist(), strict=True))
    ]
    values.sort(key=lambda one: (np.isnan(one.p_value), one.p_value, one.value))
    of_scores = ndtri(np.clip(np.array(scores)[tested], 1e-300, 1 - 1e-16))
    statistic, freedom = float(np.sum(of_scores**2)), max(int(tested.sum()) - 1, 0)
    p = float(chdtrc(freedom, statistic)) if freedom else np.nan
    return CalibrationByGroup(tuple(values), statistic, freedom, p, confidence)


def _estimate(name: str, rows: Predictions, confidence: float) -> Estimate:
    """Return a metric of some rows with its interval, which a single row or group does not have."""
    estimate = METRICS[name].estimate
    assert estimate is not None  # of both metrics that are asked for
    return estimate(rows, bin_rows(rows, 1), confidence)


def _with_common_gap(rows: Predictions) -> Vector:
    """Return the confidences with one shift of all log odds, so that their mean is the accuracy."""
    from scipy.optimize import brentq
    from scipy.special import expit, logit

    odds = logit(np.clip(rows.confidence.astype(np.float64), MIN_DISTANCE, 1 - MIN_DISTANCE))

    def excess(shift: float) -> float:
        return float(rows.weight @ (expit(odds + shift) - rows.correct))

    low, high = -_MAX_SHIFT, _MAX_SHIFT
    if excess(low) >= 0 or excess(high) <= 0:  # all predictions are wrong, or all correct
        return rows.correct.copy()
    shifted: Vector = expit(odds + brentq(excess, low, high))
    return shifted


@dataclass(frozen=True)
class _Correlation:
    """How much alike the residuals of a group are, within values, and from how many groups this is known."""

    value: float
    freedom: float

    @classmethod
    def of(cls, rows: Predictions, codes: Indices) -> _Correlation:
        if rows.groups is None:
            return cls(0.0, np.inf)
        mean = np.bincount(codes, rows.weight * rows.residual) / np.bincount(codes, rows.weight)
        moves = rows.weight * (rows.residual - mean[codes])
        pairs, pair = np.unique(rows.groups * len(mean) + codes, return_inverse=True)
        n_groups = np.bincount(pairs % len(mean))  # of each value
        sums, several = np.bincount(pair, moves), n_groups[pairs % len(mean)] > 1
        n_groups, kept = n_groups[n_groups > 1], several[pair]
        if not several.any():
            return cls(np.inf, np.inf)
        # A group is part of the mean of its value: so much of its variance is left.
        left = 1 - 1 / np.bincount(pairs % len(mean))[pairs % len(mean)][several]
        squares, weights = float(moves[kept] @ moves[kept]), rows.weight[kept]
        largest = float(np.sum(np.bincount(pair, rows.weight)[several] ** 2) / (weights @ weights))
        if largest <= 1 + 1e-9 or squares == 0:
            return cls(0.0 if largest <= 1 + 1e-9 else 1.0, np.inf)
        effect = min(max(float(np.sum(sums[several] ** 2 / left)) / squares, 1.0), largest)
        freedom, of_rows = float(np.sum(n_groups - 1)), len(weights) / effect - len(n_groups)
        known = 1 / freedom - 1 / of_rows if of_rows > freedom * (1 + 1e-9) else 0.0
        return cls((effect - 1) / (largest - 1), 1 / known if known else np.inf)

    def factor(self, part: Predictions) -> float:
        """Return how many times the variance of independent rows the number of errors of a value has."""
        if part.groups is None:
            return 1.0
        sums, weight = np.bincount(part.groups, part.weight), part.weight
        return float(1 + (sums @ sums / (weight @ weight) - 1) * self.value)


def _tail(rows: Predictions, chance: Vector, factor: float, freedom: float) -> float:
    """Return the mid-p value of at least as many wrong predictions, if each is correct with this chance.

    Their variance is `factor` times the variance of independent rows, known with so many degrees of freedom.
    """
    from scipy.special import ndtri, stdtr

    if not np.isfinite(factor):
        return 0.5
    one_row = factor * float(rows.weight @ rows.weight) / rows.total
    wrong = float(rows.weight @ (1 - rows.correct)) / one_row
    mean = max(float(rows.weight @ (1 - chance)) / one_row, 1e-12)
    variance = factor * float(rows.weight**2 @ (chance * (1 - chance))) / one_row**2
    p = min(max(1 - variance / mean, 1e-9), 1 - 1e-9)
    tail = 0.5 * (_at_least(wrong, mean / p, p) + _at_least(wrong + 1, mean / p, p))
    return tail if np.isinf(freedom) else float(stdtr(freedom, ndtri(min(max(tail, 1e-300), 1 - 1e-16))))


def _at_least(count: float, n: float, p: float) -> float:
    """Return the probability of a binomial count of at least `count`, even if n is no integer."""
    from scipy.special import betainc

    if count <= 1e-9:
        return 1.0
    return float(betainc(count, n - count + 1, p)) if count < n + 1 else 0.0


def holm(p_values: Vector) -> Vector:
    """Return p-values corrected for their number by Holm's method.

    Examples
    --------
    >>> holm(np.array([0.01, 0.04, 0.03])).round(2).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    times = len(p_values) - np.arange(len(p_values))
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(np.maximum.accumulate(p_values[order] * times), 1.0)
    return corrected


def shrunk_gaps(gaps: Vector, errors: Vector) -> tuple[Vector, Vector]:
    """Return gaps that are moved towards their mean by a model of random effects, and their standard errors.

    A gap with an infinite error is moved to the mean.

    Examples
    --------
    >>> means, errors = shrunk_gaps(np.array([0.2, 0.01, 0.0, -0.01, 0.0]), np.array([0.2, 0.01, 0.01, 0.01, 0.01]))
    >>> means.round(2).tolist()
    [0.0, 0.0, 0.0, -0.0, 0.0]
    """  # noqa: E501
    known = np.isfinite(errors) & (errors > 0)
    means, spreads = gaps.copy(), np.where(np.isfinite(errors), errors, np.nan)
    if known.sum() < 2:
        return means, spreads
    d, variance = gaps[known], errors[known] ** 2
    u = np.arange(1, 401) / 400
    t = 3 * _GAP_SCALE * u**2  # dense near 0
    weight = 1 / (variance + t[:, None] ** 2)
    total = weight.sum(axis=1)
    centre = weight @ d / total
    fit = np.log(weight).sum(axis=1) - np.log(total) - np.sum(weight * (d - centre[:, None]) ** 2, axis=1)
    log_posterior = (fit - (t / _GAP_SCALE) ** 2) / 2 + np.log(u)
    posterior = np.exp(log_posterior - log_posterior.max())
    posterior /= posterior.sum()
    share = variance * weight
    mean = d + share * (centre[:, None] - d)
    mean_square = (1 - share) * variance + share**2 / total[:, None] + mean**2
    means[known] = posterior @ mean
    spreads[known] = np.sqrt(posterior @ mean_square - means[known] ** 2)
    common = float(posterior @ centre)
    means[np.isinf(errors)] = common
    spreads[np.isinf(errors)] = np.sqrt(posterior @ (t**2 + 1 / total + (centre - common) ** 2))
    return means, spreads
