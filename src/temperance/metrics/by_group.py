"""Is it calibrated for women over 60? The one test in each part of the rows.

Two questions are tested. They share the level of 5%, so that both p-values are doubled.

Is it calibrated for v? Each value v of `by` gets the test and the finding that `metrics.evaluate` has for
such rows. Of several p-values, the smallest is small by chance: Holm's correction multiplies the i-th
smallest of m by m - i + 1, and keeps their order. The state of a finding is by the corrected p-value.

Do the values differ? All rows are first shifted to their common level, by one bias per class (for two
classes, one shift of the log-odds) with which the mean probabilities are the rates. Each value then has a
squared statistic of its level: z_v^2 of an event, otherwise r_v' V_v^+ r_v with the classes in columns, as in
`metrics.one_test`. Their sum is chi-squared. A value with f_v degrees of freedom and the share s_v of the
rows loses s_v f_v of them to the common level. So sum f_v (1 - s_v) are left: V - 1 for an event, and
(V - 1) (K - 1) if every value has a column per class.

Rows of a group are alike. A value can have few groups, so that the correlation r of rows within groups comes
from all values together: of the numbers of the classes, or of the number of correct predictions if that is
larger. In groups of k rows, variances are 1 + (k - 1) r times as large as of independent rows. Where few
groups determine r, p-values are Student's t.

A value with few rows is far off by chance. In a model of random effects, with d_v the difference of what is
predicted and what happened, s_v its standard error, and t the standard deviation of the true differences
around their mean m, each difference is moved towards m:

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

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from statistics import NormalDist
from typing import Any

import numpy as np

from temperance.core.arrays import Floats, Indices, Matrix, Vector
from temperance.errors import MAX_LISTED, listed, on_one_line
from temperance.inputs.groups import check_by
from temperance.metrics.calibration_tests import LEVEL, MIN_DISTANCE
from temperance.metrics.finding import (
    CONFIDENCE,
    Finding,
    capital,
    p_in_words,
    rates,
    ratio_in_words,
)
from temperance.metrics.intervals import Estimate, without_nan
from temperance.metrics.one_test import Design, level_statistic
from temperance.metrics.predictions import Predictions, cached_slices

_GAP_SCALE = 0.2  # of the prior of the standard deviation of true gaps
_MAX_STEPS = 50
_CLOSE = 1e-9  # of the logarithm of a mean probability to the rate's
_QUESTIONS = 2  # about the values, and about their difference


@dataclass(frozen=True)
class GroupCalibration:
    """The calibration of the rows with one value of `by`.

    Attributes
    ----------
    value : str
    n_groups : int or None
        Number of groups that these rows belong to, if there are groups.
    alone : Finding
        What `metrics.evaluate` says of these rows; with groups, by the correlation in all rows.
    finding : Finding
        The same, by a p-value that counts all values and both questions: nan if every value has a single
        group.
    shrunk : Estimate
        The gap of the finding, moved towards the other values as far as the rows are few.
    """

    value: str
    n_groups: int | None
    alone: Finding
    finding: Finding
    shrunk: Estimate


@dataclass(frozen=True)
class CalibrationByGroup:
    """Calibration per value of `by`, those with the most evidence against it first.

    Attributes
    ----------
    values : tuple of GroupCalibration
    statistic, degrees_of_freedom, p_value : float
        The chi-squared test that all values have the same level; its p-value counts both questions.

    Examples
    --------
    >>> from temperance.metrics import evaluate
    >>> rng = np.random.default_rng(0)
    >>> p = rng.uniform(0, 1, 2000)
    >>> hospital = np.repeat(["A", "B"], 1000)
    >>> y = np.where(rng.uniform(size=2000) < p - 0.1 * (hospital == "B"), "yes", "no")
    >>> found = evaluate(p, y, classes=["no", "yes"], by=hospital, draws=20).by_group
    >>> [(one.value, str(one.finding.state)) for one in found.values]
    [('B', 'level'), ('A', 'none')]
    >>> print(found.words)
    P(yes) is too high in B: 48.1% on average, 38.5% observed (O/E 0.80, 0.75 to 0.85). Not detectable in A. The values differ (p < 0.001).
    """  # noqa: E501  the words are on one line

    values: tuple[GroupCalibration, ...]
    statistic: float
    degrees_of_freedom: float
    p_value: float

    @property
    def words(self) -> str:
        """For which values calibration is off, and whether they differ."""
        named = [one for one in self.values if one.finding.state.miscalibrated]
        others = [one for one in self.values if not one.finding.state.miscalibrated]
        may_be = [one for one in others if one.finding.is_off]
        few = [one for one in others if one.finding.is_few and not one.finding.is_off]
        clear = sorted(one.value for one in others if not (one.finding.is_few or one.finding.is_off))
        differ, p = self.p_value < LEVEL, f" ({p_in_words(self.p_value)})" if self.p_value >= 0 else ""
        said = []
        if named:
            one = named[0]
            alone = one.finding.words_in(f" in {on_one_line(one.value)}")
            said.append(alone if len(named) == 1 else f"{capital(_claims(named))}.")
            if not differ:
                said[-1] = f"{said[-1][:-1]}; whether values differ cannot be shown{p}."
            if clear:
                said.append(f"Not detectable in {listed(clear, on_one_line)}.")
            if differ:
                said.append(f"The values differ{p}.")
        elif differ:
            said.append(f"Values differ{p}, but no single one can be named. {self._furthest()}.")
        elif clear:
            shown = "confirmed" if may_be else "detectable"
            of_all = f"any of the {len(self.values)} values, nor a difference between them"
            said.append(f"No miscalibration is {shown} in {of_all}.")
        if may_be:
            said.append(f"Not confirmed: {_claims(may_be)}.")
        for what, is_alone in (("rows", False), ("groups", True)):
            names = sorted(one.value for one in few if np.isnan(one.finding.p_value) == is_alone)
            if names:
                said.append(f"Too few {what} to tell: {listed(names, on_one_line)}.")
        return " ".join(said)

    def _furthest(self) -> str:
        """Name the two values that are furthest apart, of those with enough rows if there are two."""
        enough = [one for one in self.values if not one.alone.is_few]
        known = enough if len(enough) > 1 else list(self.values)
        if self.of_event:
            known.sort(key=lambda one: -np.nan_to_num(one.alone.ratio.value, nan=1.0))
            two, words = (known[0], known[-1]), "Furthest apart"
        else:
            known.sort(key=lambda one: one.alone.level_p)
            two, words = (known[0], known[1]), "Furthest off"
        shown = (f"{on_one_line(one.value)} ({_ratio(one.alone)})" for one in two)
        return f"{words}: {', '.join(shown)}"

    @property
    def of_event(self) -> bool:
        """Whether this is about P(class), not about the confidence in the top class."""
        return self.values[0].alone.of_event

    @property
    def about(self) -> str:
        """What the numbers of the table are."""
        gap = "" if self.of_event else "gap: confidence minus accuracy, in points; "
        return f"{gap}intervals are of each value alone, p counts all values"

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Return headings, and one row of text per value."""
        of_event, level = self.of_event, f"{100 * CONFIDENCE:g}% interval"
        # Positions have no frequencies.
        has_class = any(one.alone.level_p >= 0 for one in self.values)
        head = ["rows", f"gap, {level}", *["worst class, O/E"] * has_class]
        if of_event:
            head = ["rows", self.values[0].alone.name, "mean P", "observed", f"O/E, {level}"]
        rows = []
        for one in self.values:
            found, p = one.alone, p_in_words(one.finding.p_value)
            cells = [one.value, f"{found.n_rows:,}"]
            if of_event:
                ratio = ratio_in_words(found.ratio).removeprefix("O/E ")
                cells += [f"{found.events:,}", *rates(found.mean, found.rate), ratio]
            else:
                cells += [_points(found.gap), *[f"{found.name}, {_ratio(found)}"] * has_class]
            rows.append([*cells, p.removeprefix("p ").removeprefix("= ")])
        return ["value", *head, "p"], rows

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
        values = [
            {
                "value": one.value,
                "n_rows": one.alone.n_rows,
                "n_groups": one.n_groups,
                "p_value": one.alone.p_value,
                "finding": one.finding.to_dict(),
                "shrunk": asdict(one.shrunk),
            }
            for one in self.values
        ]
        about = {"words": self.words, "statistic": self.statistic, "p_value": self.p_value}
        found = about | {"degrees_of_freedom": self.degrees_of_freedom, "correction": "Holm"}
        plain: dict[str, Any] = without_nan(found | {"values": values})
        return plain


def _claims(values: Iterable[GroupCalibration]) -> str:
    """Say what is wrong in which values."""
    where: dict[str, list[str]] = {}
    for one in values:
        where.setdefault(one.finding.claim, []).append(on_one_line(one.value))
    return "; ".join(f"{claim} in {_joined(names)}" for claim, names in where.items())


def _joined(names: list[str]) -> str:
    if len(names) > MAX_LISTED:
        return listed(names, str)
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _ratio(found: Finding) -> str:
    """Return O/E without its interval."""
    return ratio_in_words(found.ratio).partition(", ")[0]


def _points(gap: Estimate) -> str:
    value, low, high = (f"{100 * end:+.1f}" for end in (gap.value, gap.low, gap.high))
    return value if np.isnan(gap.low) else f"{value}, {low} to {high}"


def calibration_by_group(rows: Predictions) -> CalibrationByGroup:
    """Return the calibration of the rows with each value of `rows.by`."""
    from scipy.special import chdtrc

    names, codes = check_by(rows.by, len(rows.probs))
    correlation, level = _Correlation.of(rows, codes), _with_level(rows)
    bias = _common_bias(level)
    alone, n_groups, errors, p_values = [], [], [], []
    statistic = freedom = 0.0
    for code in range(len(names)):
        index = np.flatnonzero(codes == code)
        part, common = rows.take(index), level.take(index)
        if part.groups is not None:  # numbered without gaps
            part = replace(part, groups=np.unique(part.groups, return_inverse=True)[1])
        design = correlation.design(part)
        found, is_known = Finding.of(part, design), bool(np.isfinite(design.effect))
        alone.append(found)
        # Rows of a single group show no chance, but a label of probability 0 is impossible.
        p_values.append(found.p_value if is_known or found.impossible else np.nan)
        n_groups.append(None if part.groups is None else int(part.groups.max()) + 1)
        common = replace(common, probs=_shifted(common.probs, bias))
        predicted = common.probs[:, 1] if rows.event is not None else common.confidence
        share = part.weight / part.total
        errors.append(float(np.sqrt(design.effect * (share**2 @ (predicted * (1 - predicted))))))
        if is_known:
            squared, of_value = level_statistic(common, design)
            statistic += squared
            freedom += of_value * (1 - part.total / rows.total)
    corrected = np.array(p_values)
    tested = corrected >= 0
    corrected[tested] = np.minimum(_QUESTIONS * holm(corrected[tested]), 1.0)
    means, spreads = shrunk_gaps(np.array([found.gap.value for found in alone]), np.array(errors))
    ends = NormalDist().inv_cdf((1 + CONFIDENCE) / 2) * spreads
    shrunk = np.column_stack([means, means - ends, means + ends]).tolist()
    values = [
        GroupCalibration(name, of_value, found, found.at(p), Estimate(*gap))
        for name, of_value, found, p, gap in zip(
            names, n_groups, alone, corrected.tolist(), shrunk, strict=True
        )
    ]
    values.sort(key=lambda one: (np.isnan(one.finding.p_value), one.alone.p_value, one.value))
    p = min(1.0, _QUESTIONS * float(chdtrc(freedom, statistic))) if freedom > 1e-9 else np.nan
    return CalibrationByGroup(tuple(values), statistic, freedom, p)


def _with_level(rows: Predictions) -> Predictions:
    """Return the rows whose level is compared: if columns are positions, whether predictions are correct."""
    if rows.event is not None:
        return rows.of_class(rows.event)
    if not rows.positions:
        return rows
    probs = np.stack([1 - rows.confidence, rows.confidence], axis=1)
    return replace(rows, probs=probs, labels=rows.correct.astype(np.intp), positions=False)


def _common_bias(rows: Predictions) -> Vector:
    """Return one bias per class with which the mean probabilities are the rates, by Newton's method."""
    n_rows, n_classes = rows.probs.shape
    share = rows.weight / rows.total
    rate = np.bincount(rows.labels, share, n_classes)
    rate = np.maximum(rate, float(share @ share) / 2)  # a class without labels has half a row
    rate = rate / rate.sum()
    bias = np.zeros(n_classes)
    for _ in range(_MAX_STEPS):
        mean, products = np.zeros(n_classes), np.zeros((n_classes, n_classes))
        for block in cached_slices(n_rows, n_classes):
            p = _shifted(rows.probs[block], bias)
            mean += share[block] @ p
            products += p.T @ (share[block, None] * p)
        step = np.log(rate / mean)
        if np.abs(step).max() < _CLOSE:
            break
        newton = np.linalg.pinv(np.diag(mean) - products, hermitian=True) @ (rate - mean)
        bias += newton if np.abs(newton).max() < 1 else step  # which is short, but safe
    return bias


def _shifted(probs: Floats, bias: Vector) -> Matrix:
    """Return probabilities with a bias per class."""
    logits = np.log(np.maximum(probs.astype(np.float64), MIN_DISTANCE)) + bias
    logits -= logits.max(axis=1, keepdims=True)
    np.exp(logits, out=logits)
    logits /= logits.sum(axis=1, keepdims=True)
    return logits


@dataclass(frozen=True)
class _Correlation:
    """How much alike the residuals of a group are, within values, and from how many groups this is known."""

    value: float
    freedom: float

    @classmethod
    def of(cls, rows: Predictions, codes: Indices) -> _Correlation:
        if rows.groups is None:
            return cls(0.0, np.inf)
        of_value, n_values = np.bincount(codes, rows.weight), len(np.bincount(codes))
        pairs, pair = np.unique(rows.groups * n_values + codes, return_inverse=True)
        n_groups = np.bincount(pairs % n_values)  # of each value
        several = n_groups[pairs % n_values] > 1
        kept = several[pair]
        if not several.any():
            return cls(np.inf, np.inf)
        # A group is part of the mean of its value: so much of its variance is left.
        left = 1 - 1 / n_groups[pairs % n_values][several]
        weights = rows.weight[kept]
        largest = float(np.sum(np.bincount(pair, rows.weight)[several] ** 2) / (weights @ weights))
        if largest <= 1 + 1e-9:
            return cls(0.0, np.inf)

        def effect_of(residuals: Iterable[Vector]) -> float:
            together = alone = 0.0
            for residual in residuals:
                mean = np.bincount(codes, rows.weight * residual) / of_value
                moves = rows.weight * (residual - mean[codes])
                together += float(np.sum(np.bincount(pair, moves)[several] ** 2 / left))
                alone += float(moves[kept] @ moves[kept])
            return min(max(together / alone, 1.0), largest) if alone > 0 else largest

        level = _with_level(rows)
        numbers = (
            (level.labels == k) - level.probs[:, k].astype(np.float64) for k in range(level.probs.shape[1])
        )
        effect = max(effect_of(numbers), effect_of([rows.residual]))
        n_groups = n_groups[n_groups > 1]
        freedom, of_rows = float(np.sum(n_groups - 1)), len(weights) / effect - len(n_groups)
        known = 1 / freedom - 1 / of_rows if of_rows > freedom * (1 + 1e-9) else 0.0
        return cls((effect - 1) / (largest - 1), 1 / known if known else np.inf)

    def design(self, part: Predictions) -> Design:
        """Return the design effect of the rows with one value; infinite if no value has several groups."""
        if part.groups is None:
            return Design()
        sums, weight = np.bincount(part.groups, part.weight), part.weight
        others = float(sums @ sums / (weight @ weight)) - 1  # of groups of k rows, k - 1
        return Design(1 + others * self.value if np.isfinite(self.value) else np.inf, self.freedom)


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
