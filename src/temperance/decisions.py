"""From probabilities to decisions: which predictions need no person, what decisions cost, and thresholds.

**Which predictions need no person?** Sort the N held-out rows by their probability c, from the highest down.
At each of some counts k, fixed in advance (from N/20 on, each 2% larger), test the hypothesis "more than x
of the rows above t_k are wrong", where t_k is half-way, in log-odds, from c_k to the next lower probability
c_(k+1): rounding, as to float32 or to six digits in a file, then moves no row across it. Scores that differ
by rounding only are tied, and no t_k is between them. The test is exact (Clopper and Pearson): reject if
P(Binomial(k, x) <= errors) is at most the level. Begin at the first count at which k correct rows would
reject, go on while the tests reject, and stop at the first that does not: fixed-sequence testing, so each
test has the whole level. The last t_k that passed is the threshold.

A few mislabelled rows among the most confident ones would stop the sequence at once. So if rows are many (if
N/5 correct ones would reject at level delta/2), half of delta begins at the first count, and the other half
at 2N/5, where it is added to the first if that has come so far (the fallback procedure). For a positive
class, the sum of its probabilities replaces N in these shares.

Why a threshold that comes from the rows is valid:

1. At one count. Given c_(k+1) = c, the k rows above c are independent draws from the rows above c, so their
   errors are binomial with the error rate there. It is the one that is promised, or larger if errors become
   more frequent between t_k and c, where no held-out row is.
2. In sequence, given all c. Then thresholds, counts and the order of the tests are fixed, and errors are
   independent. Their sum is at most as spread as a binomial one with the same mean (Hoeffding, 1956), so each
   test keeps its level for the expected error rate of rows with these probabilities. A false promise
   requires that the first true hypothesis after a start is rejected. The levels of these tests add up to
   delta at most. This needs no assumption about how errors depend on c.
3. In sequence, for new rows. Let t* be where the error rate of all rows above it reaches x. If rows below t*
   are wrong at a rate of at least x, as they are where errors become more frequent as c falls, then, given
   how many rows lie above t*, the errors above each t_k < t* are stochastically larger than Binomial(k, x).
   So 2 holds for the error rate of new rows too.

With `groups`, rows of a group can depend on each other, and groups are independent. Let S_g be the sum of
w (wrong - x) over the rows of group g above t, and M the largest weight of a group there. If the hypothesis
holds, the product of 1 - f S_g / ((1 - x) M) over groups has a mean of at most 1, for any f from 0 to 1: the
factors are independent and not negative, and their means average to at most 1. So has its average over
several f, which exceeds 1 / delta with probability delta at most (Markov's inequality; it is the gain of bets
against the hypothesis). At the first count that could pass, any error stops the sequence, so the other half
of delta begins where the p-value would be smallest if errors were as frequent as the probabilities predict.
The promise is the same, about the share of wrong rows, but only 2 is proven. Weights of rows are treated the
same way. No test can promise much more: if groups can fail as a whole, with probability x - e each, G of them
show no such failure with probability (1 - x + e)^G, where e is the rate of other errors.

**Is it a rule?** With two classes, of which one is rare, a rule for the top class, or for the frequent one,
can keep its promise and be worth nothing. It raises an error if the frequent class, answered to every row,
keeps the promise too, or if the rule decides more than half of the rows of a class against it. Neither can be
if the promise is at most half of the frequency of the rare class; the advice is a quarter. With more classes
the second case is a warning.

**Costs.** The decision of least expected cost, see `formulas.automation`. The interval of what decisions have
cost includes a pseudo-error (see `metrics.intervals`), since rare, dear errors can be missing in the rows.
With groups it is a whole group: where one in thirty fails as a whole, twenty show neither the errors nor that
they come together.

References
----------
.. [1] Clopper and Pearson (1934). The use of confidence or fiducial limits illustrated in the case of the
   binomial. doi:10.1093/biomet/26.4.404
.. [2] Hoeffding (1956). On the distribution of the number of successes in independent trials.
   doi:10.1214/aoms/1177728178
.. [3] Angelopoulos et al. (2021). Learn then test: Calibrating predictive algorithms to achieve risk control.
   arXiv:2110.01052
.. [4] Wiens (2003). A fixed sequence Bonferroni procedure for testing multiple endpoints.
   doi:10.1002/pst.64
.. [5] Waudby-Smith and Ramdas (2024). Estimating means of bounded random variables by betting.
   doi:10.1093/jrsssb/qkad009
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temperance.core.arrays import Floats, Indices, Matrix, Vector
from temperance.errors import InputError, InputWarning, Remedy, percent, warn_user
from temperance.formulas.automation import Automation, ErrorCurve, check_costs, least_cost
from temperance.formulas.model import Model, apply_to_rows
from temperance.inputs.names import Names, class_in_words
from temperance.inputs.probabilities import MIN_FLOOR
from temperance.inputs.validation import check_number
from temperance.metrics.intervals import Estimate, PseudoRow, mean_interval
from temperance.metrics.predictions import Predictions, check_fraction, check_rows

__all__ = [
    "Automation",
    "CostEvaluation",
    "ErrorCurve",
    "automate",
    "evaluate_costs",
    "threshold_from_costs",
]

_FIRST_SHARE, _STEP = 0.05, 1.02  # of the counts that are tested
_SECOND_SHARE, _MANY_ROWS = 0.4, 0.2  # where half of delta begins, if so large a share could pass with half
_CURVE_POINTS = 50
# f, and the share of the capital behind each: most where errors are rare, since groups are few.
_BETS = np.array([0.08, 0.2, 0.45, 0.7, 1.0])
_STAKES = np.array([0.05, 0.1, 0.2, 0.25, 0.4])
_LIMIT_PRECISION = 1e-9  # of a limit that is found by search
# Scores that are closer are tied: six digits, but at most this share of their mean distance.
_CLOSE, _CLOSE_SHARE = 1e-6, 0.1
_MOST_LOST = 0.5  # share of the rows of a class that a rule can decide against it
_GRID_POINTS = 4001  # where a map of probabilities is examined


def automate(
    probs: Any,
    labels: ArrayLike,
    max_error: float = 0.02,
    delta: float = 0.05,
    *,
    positive: int | str | None = None,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    classes: Names | None = None,
    positions: bool = False,
    dim: int = -1,
    ignore_index: int | None = None,
) -> Automation:
    """Find the confidence above which predictions need no person, from held-out rows.

    Of future rows whose confidence is above the threshold at most `max_error` are wrong, except with
    probability `delta` (over the held-out rows). It holds for probabilities that are not calibrated too.
    The rows must be new to both the classifier and the calibrator. Of two classes, a rule for the top class
    or for the more frequent one raises an error if it is worth nothing: a constant answer keeps its promise,
    or most rows of a class are decided against it.

    Parameters
    ----------
    probs : array of shape (N, K), or (N,) for the second of two classes
    labels : integer array of shape (N,), or class names
    max_error : float
        The largest share of wrong rows among those above the threshold.
    delta : float
        The probability that the promise does not hold.
    positive : int or str, optional
        Column or name of a class: of the rows whose probability of this class is above the threshold, at most
        `max_error` are of another class. By default the rule is about the top class of each row.
    groups : array of shape (N,), optional
        One id per row, such as the patient or the document. Rows of a group can depend on each other;
        without it, all rows must be independent. It takes more rows to promise the same. Arrays with more
        axes have groups already: the entries of the first axis, such as images.
    sample_weight : array of shape (N,), optional
        How much a row counts.
    classes : sequence of str or int, optional
        Names of the columns, in their order, if labels are names. A DataFrame has its own.
    positions : bool
        Whether columns are places of answers, without a meaning, so that no class can be lost.
    dim : int
        Axis of the classes in `probs`: 1 for pixels, (N, K, H, W). `labels`, `sample_weight` and
        `groups` have the shape without it.
    ignore_index : int, optional
        Label of rows to leave out, such as 255 for pixels without a class.

    Returns
    -------
    Automation
        `threshold` is None if the rows cannot support a promise; `words` say how many might.

    References
    ----------
    .. [1] Angelopoulos et al. (2021). Learn then test: Calibrating predictive algorithms to achieve risk
       control. arXiv:2110.01052

    Examples
    --------
    >>> import temperance
    >>> task = temperance.data.demo_task()
    >>> cal = temperance.make_calibrator("bayes").fit(task.val_logits, task.val_labels)
    >>> rule = temperance.automate(cal.predict_proba(task.test_logits), task.test_labels, max_error=0.05)
    >>> print(rule.words)
    Above ...% confidence: ...% of the rows, at most 5% of them wrong (95% confidence).
    >>> few = temperance.automate([[0.9, 0.1]] * 50, [0] * 50)
    >>> few.threshold is None, few.rows_needed
    (True, 149)
    """
    check_fraction("max_error", max_error)
    check_fraction("delta", delta)
    rows = check_rows(
        *(probs, labels, sample_weight, classes),
        dim=dim,
        ignore_index=ignore_index,
        groups=groups,
        min_groups=1,
        examine=True,
        positive=positive,
    )
    n_classes, column, names = rows.probs.shape[1], rows.positive, rows.names
    about: dict[str, Any] = {"labels": rows.labels, "weight": rows.weight, "groups": rows.groups}
    promise: dict[str, Any] = {"max_error": float(max_error), "delta": float(delta), "class_names": names}
    totals = np.bincount(rows.labels, rows.weight, n_classes)
    if column is None:
        rule = find_rule(rows.confidence, 1 - rows.correct, n_classes, **about, **promise)
    else:
        score, wrong = rows.probs[:, column], (rows.labels != column).astype(np.float64)
        # Of a rare class there are few rows to decide on.
        expected = min(max(1.0, float(score.sum(dtype=np.float64))), len(score))
        rule = find_rule(score, wrong, n_classes, **about, **promise, expected=expected, positive=column)
    why = "" if positions else why_empty(rule, **about)
    if not why:
        return rule
    lost = rule.missed
    named = int(totals.argmin() if n_classes == 2 or lost is None else lost.argmax())
    of = "here" if n_classes == 2 else f"for {class_in_words(named, names)}"
    fact = f"a rule with at most {100 * max_error:g}% errors is no rule {of}: {why}."
    smaller, name = float(f"{totals[named] / rows.total / 4:.1g}"), named if names is None else names[named]
    remedy = Remedy("max_error", (smaller,), instead=Remedy("positive", (name,)))
    if n_classes == 2:
        one_class = {"advice": "Pass rows with labels of both classes."}
        raise InputError(fact, **({"remedy": remedy} if smaller else one_class))
    warn_user(InputWarning(fact, f"Pass max_error={smaller!r} or positive={name!r}.", remedy))
    return rule


def why_empty(rule: Automation, labels: Indices, weight: Vector, groups: Indices | None) -> str:
    """Say why a rule is worth nothing; nothing if it is worth something, or there is none.

    A rule for the more frequent of two classes is like one for the top class, which is mostly this class.
    """
    common = int(np.bincount(labels, weight).argmax())
    if rule.missed is None or rule.positive not in (None, common):
        return ""
    constant = _HeldOut.sort(np.ones(len(labels)), (labels != common).astype(np.float64), weight, groups)
    always = constant.part(len(labels))
    if len(rule.missed) == 2 and always.limit(rule.delta) <= rule.max_error:
        return (
            f"answering {class_in_words(common, rule.class_names)} to every row has {percent(always.error)}"
        )
    lost = int(rule.missed.argmax())
    name, share = class_in_words(lost, rule.class_names), rule.missed[lost]
    if share <= _MOST_LOST or (rule.positive is not None and len(rule.missed) > 2):
        return ""
    return f"it would decide {percent(share)} of the {name} rows against {name}"


def find_rule(
    score: Floats,
    wrong: Floats,
    n_classes: int,
    labels: Indices,
    weight: Vector,
    groups: Indices | None,
    max_error: float,
    delta: float,
    class_names: Names | None = None,
    expected: float | None = None,
    positive: int | None = None,
) -> Automation:
    """Find the rule from the score of each held-out row and whether deciding on it would be wrong.

    `expected` is the number of rows to decide on, by default all.
    """
    held_out = _HeldOut.sort(score.astype(np.float64), wrong.astype(np.float64), weight, groups)
    found = _last_passing(held_out, len(score) if expected is None else expected, max_error, delta)
    part = found if isinstance(found, _Part) else None
    missed = None
    if part is not None:
        lost = weight * wrong * (score > part.threshold)
        of_class = np.bincount(labels, weight, n_classes)
        missed = np.bincount(labels, lost, n_classes) / np.where(of_class > 0, of_class, 1.0)
    return Automation(
        None if part is None else part.threshold,
        0.0 if part is None else part.share,
        None if part is None else part.error,
        None if part is None else part.limit(delta),
        max_error,
        delta,
        len(score),
        positive=positive,
        groups=None if groups is None else int(groups.max()) + 1,
        rows_needed=None if isinstance(found, _Part) else found,
        curve=_curve(held_out, delta),
        class_names=class_names,
        missed=missed,
    )


@dataclass(frozen=True, eq=False)
class _HeldOut:
    """Rows in the order of decreasing scores: whether each is wrong, its weight, its group."""

    score: Vector
    wrong: Vector
    weight: Vector
    group: Indices | None

    @classmethod
    def sort(cls, score: Vector, wrong: Vector, weight: Vector, group: Indices | None) -> _HeldOut:
        order = np.argsort(-score, kind="stable")
        return cls(score[order], wrong[order], weight[order], None if group is None else group[order])

    @cached_property
    def cuts(self) -> tuple[Indices, Vector]:
        """By number of rows, how many of them are above the last gap, and the threshold in that gap."""
        from scipy.special import expit, logit

        close = min(_CLOSE, _CLOSE_SHARE / len(self.score))
        score = np.append(self.score, 0.0)
        odds = logit(np.clip(score, close / 2, 1 - close / 2))
        threshold = np.concatenate([[1.0], expit((odds[:-1] + odds[1:])[:-1] / 2), [0.0]])
        apart = np.append(True, -np.diff(score) > close)
        return np.maximum.accumulate(np.where(apart, np.arange(len(score)), 0)), threshold

    @cached_property
    def is_exact(self) -> bool:
        """Whether errors are binomial: rows are independent, with equal weights."""
        alone = self.group is None or len(self.group) == self.group.max() + 1
        return bool(alone and np.ptp(self.weight) == 0)

    def part(self, n_rows: int) -> _Part:
        """Return the first rows, without those that are tied with the next."""
        covered = int(self.cuts[0][n_rows])
        threshold = float(self.cuts[1][covered])
        wrong, weight = self.wrong[:covered], self.weight[:covered]
        if self.is_exact:
            return _Part(threshold, covered, covered / len(self.score), wrong.sum(keepdims=True))
        if self.group is None:
            sums = wrong * weight + 1j * weight
        else:
            group = self.group[:covered]
            sums = np.bincount(group, wrong * weight) + 1j * np.bincount(group, weight)
        alike, times = np.unique(sums[sums != 0], return_counts=True)
        share = float(weight.sum() / self.weight.sum())
        return _Part(threshold, covered, share, alike.real, alike.imag, times)


@dataclass(frozen=True, eq=False)
class _Part:
    """The rows above a threshold: how many are wrong, or both by group, for groups that differ.

    `weight` is the weight of all rows by group, or None where errors are binomial. `times` is how many groups
    are alike.
    """

    threshold: float
    n_rows: int
    share: float
    wrong: Vector
    weight: Vector | None = None
    times: Indices = field(default_factory=lambda: np.ones(1, np.intp))

    @property
    def error(self) -> float:
        """The share that is wrong."""
        if self.weight is None:
            return float(self.wrong[0]) / self.n_rows
        return float(self.times @ self.wrong / (self.times @ self.weight))

    def p_value(self, rate: float, *, above: bool = True) -> float:
        """Return the p-value of "the error rate is at least this", or of "at most"."""
        from scipy.special import bdtr, bdtrc

        if self.weight is None:
            wrong = float(self.wrong[0])
            return float(bdtr(wrong, self.n_rows, rate) if above else bdtrc(wrong - 1, self.n_rows, rate))
        excess = self.wrong - rate * self.weight
        most = (1 - rate if above else rate) * self.weight.max()  # excess, or lack, of one group
        left = np.maximum(1 - _BETS[:, None] * (excess if above else -excess) / most, 0.0)  # but for rounding
        with np.errstate(divide="ignore"):
            gain = np.log(_STAKES) + np.log(left) @ self.times
        return float(np.exp(min(0.0, -np.logaddexp.reduce(gain))))

    def could_pass(self, rate: float, level: float) -> bool:
        """Say whether the hypothesis would be rejected if all rows were correct."""
        return replace(self, wrong=0 * self.wrong).p_value(rate) <= level

    def limit(self, delta: float, *, upper: bool = True) -> float:
        """Return the confidence limit of the error rate: where its p-value is delta."""
        from scipy.optimize import brentq
        from scipy.special import betaincinv

        error, end = self.error, 1.0 if upper else 0.0
        if error == end:
            return end
        if self.weight is None:
            ends = self.wrong[0], self.n_rows - self.wrong[0]
            return float(betaincinv(ends[0] + upper, ends[1] + (not upper), 1 - delta if upper else delta))

        def distance(rate: float) -> float:
            return float(np.log(max(self.p_value(rate, above=upper), 1e-300) / delta))

        far = 1 - _LIMIT_PRECISION if upper else _LIMIT_PRECISION
        return float(brentq(distance, error, far, xtol=_LIMIT_PRECISION)) if distance(far) < 0 else end


def _last_passing(rows: _HeldOut, expected: float, max_error: float, delta: float) -> _Part | int | None:
    """Return the largest part that passes the tests in sequence, or how many rows would, if that is known.

    The tests begin at shares of the `expected` number of rows to decide on.
    """
    n_rows, sizes = len(rows.score), []
    size = max(1.0, _FIRST_SHARE * expected)
    while size < n_rows:
        sizes.append(int(size))
        size = max(size * _STEP, size + 1)
    parts = [part for part in map(rows.part, [*sizes, n_rows]) if part.n_rows]
    starts = _starts(rows, parts, expected, max_error, delta)
    p_values = [part.p_value(max_error) for part in parts]
    passed, level = None, 0.0
    for number, (part, p_value) in enumerate(zip(parts, p_values, strict=True)):
        level += starts.get(number, 0.0)
        if level > 0 and p_value <= level:  # a p-value can underflow to 0
            passed = part
        else:
            level = 0.0
    if passed is not None:
        return passed
    # p-values of rows like these fall exponentially with their number.
    tried = starts or dict.fromkeys(range(len(parts)), delta)
    ratios = [np.log(level) / np.log(p) for i, level in tried.items() if 0 < (p := p_values[i]) < 0.5]
    return int(np.ceil(n_rows * min(ratios))) if ratios else None


def _starts(
    rows: _HeldOut, parts: list[_Part], expected: float, max_error: float, delta: float
) -> dict[int, float]:
    """Return where sequences of tests begin, and the level of each; the labels have no part in it."""

    def first(level: float, share: float) -> int | None:
        able = (i for i, part in enumerate(parts) if part.n_rows >= share * expected)
        return next((i for i in able if parts[i].could_pass(max_error, level)), None)

    begin, again = first(delta / 2, 0.0), first(delta / 2, _SECOND_SHARE)
    if not rows.is_exact:
        as_predicted = replace(rows, wrong=1 - rows.score)
        again = int(np.argmin([as_predicted.part(part.n_rows).p_value(max_error) for part in parts]))
        if begin is None or begin == again:
            return {again: delta} if parts[again].could_pass(max_error, delta) else {}
        return {begin: delta / 2, again: delta / 2}
    if begin is None or again is None or parts[begin].n_rows > _MANY_ROWS * expected or begin == again:
        alone = first(delta, 0.0)
        return {} if alone is None else {alone: delta}
    return {begin: delta / 2, again: delta / 2}


def _curve(rows: _HeldOut, delta: float) -> ErrorCurve:
    """Return the error rate of the most confident rows, at shares that are equally spaced."""
    counts = np.unique(np.linspace(0, len(rows.score), _CURVE_POINTS + 1)[1:].astype(int))
    parts = {part.n_rows: part for part in map(rows.part, counts.tolist()) if part.n_rows}
    ends = [
        (part.threshold, part.share, part.error, part.limit(delta, upper=False), part.limit(delta))
        for part in parts.values()
    ]
    return ErrorCurve(*np.array(ends).reshape(-1, 5).T)


@dataclass(frozen=True)
class CostEvaluation:
    """What decisions of least expected cost have cost, and what the probabilities expected.

    Attributes
    ----------
    realised : Estimate
        Mean cost of the decisions on rows with these labels, with its interval.
    expected : Estimate
        Mean cost that the probabilities expect. It agrees with the other if they are calibrated.
    shares : tuple of float
        The share of the rows by decision.

    Examples
    --------
    >>> result = evaluate_costs([[0.9, 0.1]] * 10, [0] * 9 + [1], [[0, 1], [5, 0]])
    >>> round(result.realised.value, 3), round(result.expected.value, 3), result.shares
    (0.5, 0.5, (1.0, 0.0))
    """

    realised: Estimate
    expected: Estimate
    shares: tuple[float, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers, ready for JSON."""
        return asdict(self)


def evaluate_costs(
    probs: Any,
    labels: ArrayLike,
    costs: ArrayLike,
    *,
    confidence: float = 0.95,
    groups: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    classes: Names | None = None,
) -> CostEvaluation:
    """Decide by least expected cost, and compare the mean cost with what the probabilities expect.

    Parameters
    ----------
    probs : array of shape (N, K), or (N,) for the second of two classes
    labels : integer array of shape (N,), or class names
    costs : array of shape (K, D), D >= K
        costs[true class, decision]. The first K decisions are the classes, others your own, such as asking a
        person.
    confidence : float
        Level of the intervals.
    groups : array of shape (N,), optional
        One id per row, such as the patient: intervals then take groups as independent, not rows.
    sample_weight : array of shape (N,), optional
        How much a row counts.
    classes : sequence of str or int, optional
        Names of the columns, in their order, if labels are names. A DataFrame has its own.

    Examples
    --------
    Missing class 1 costs 5, a false alarm 1, and asking a person 0.3 in both cases:

    >>> costs = [[0, 1, 0.3], [5, 0, 0.3]]
    >>> result = evaluate_costs([[0.99, 0.01], [0.8, 0.2], [0.1, 0.9]], [0, 1, 1], costs)
    >>> round(result.realised.value, 2), round(result.expected.value, 2)
    (0.1, 0.15)
    """
    check_fraction("confidence", confidence)
    rows = check_rows(probs, labels, sample_weight, classes, groups=groups, examine=True)
    matrix = check_costs(costs, rows.probs.shape[1])
    decisions, expected = least_cost(rows.probs.astype(np.float64, copy=False), matrix)
    realised, limits = matrix[rows.labels, decisions], (confidence, matrix.min(), matrix.max())
    pseudo = _pseudo_error(rows, decisions, matrix)
    shares = np.bincount(decisions, rows.weight, matrix.shape[1]) / rows.total
    return CostEvaluation(
        mean_interval(realised, rows.weight, *limits, pseudo, rows.groups, whole_groups=True),
        mean_interval(expected, rows.weight, *limits, groups=rows.groups),
        tuple(shares.tolist()),
    )


def _pseudo_error(rows: Predictions, decisions: Indices, costs: Matrix) -> PseudoRow:
    """Return the cost of each label and decision, and the chance that the pseudo-error is there.

    It is in proportion to sqrt(p_k) times what label k costs above the best label for the decision. If each
    error costs 1, this is the pseudo-error of `metrics.predictions`. So that decisions that were not taken
    count, one row more can have any.
    """
    chance = costs - costs.min(axis=0)
    for column, p in enumerate(rows.probs.T):
        roots = rows.weight * np.sqrt(np.maximum(p, np.finfo(p.dtype).tiny), dtype=np.float64)  # or all are 0
        chance[column] *= np.bincount(decisions, roots, costs.shape[1]) + roots.mean()
    return costs.ravel(), (chance / max(float(chance.sum()), np.finfo(np.float64).tiny)).ravel()


def threshold_from_costs(false_positive: float, false_negative: float) -> float:
    """Return the probability above which the positive class is the cheaper decision, for two classes.

    Parameters
    ----------
    false_positive : float
        Cost of deciding for the positive class where it is not the true one.
    false_negative : float
        Cost of deciding against the positive class where it is the true one.

    Examples
    --------
    If a miss costs nine times as much as a false alarm, decide for the positive class above 10%:

    >>> threshold_from_costs(false_positive=1, false_negative=9)
    0.1
    """
    for name, cost in (("false_positive", false_positive), ("false_negative", false_negative)):
        check_number(name, cost, "> 0", lambda given: given > 0)
    return float(false_positive / (false_positive + false_negative))


def moved_threshold(model: Model, threshold: float, *, inverse: bool = False) -> float:
    """Return the calibrated probability that decides as the classifier's does, or the inverse; two classes.

    The map of log-odds is examined on a fine grid, down to the floor to which the fit raised smaller
    probabilities: where calibrated log-odds are above those at the threshold for lower odds too, or below for
    higher ones, no threshold decides alike.
    """
    check_fraction("threshold", threshold)
    if model.n_classes != 2 or model.of_positions:
        found = "positions" if model.of_positions else f"{model.n_classes} classes"
        raise InputError(
            f"threshold_for is for two classes, where one probability decides; found {found}. Use decide."
        )
    given = float(np.log(threshold) - np.log1p(-threshold))
    read = model.record.fitted_on
    floor = MIN_FLOOR if read is None or read.floor is None else read.floor
    most = float(np.log1p(-floor) - np.log(floor))
    odds = given if not inverse else _crossing(model, given, most)
    calibrated = float(_log_odds(model, np.array([odds]))[0])
    grid = np.linspace(-most, most, _GRID_POINTS)
    others = grid[np.abs(grid - odds) > 1e-6]
    alike = np.sign(_log_odds(model, others) - calibrated) == np.sign(others - odds)
    if not alike.all():
        raise InputError(
            "calibrated probabilities must rise with the classifier's, so that a threshold decides alike; "
            f"found a {model.name} for which they do not at {threshold:g}. Use decide with costs, or fit "
            "ts or mono, for which they always do."
        )
    end = odds if inverse else calibrated
    return float(1 / (1 + np.exp(-end)))


def _log_odds(model: Model, odds: Vector) -> NDArray[np.float64]:
    """Return the calibrated log-odds of the second class."""
    rows = apply_to_rows(model, "transform", np.column_stack([np.zeros(len(odds)), odds]))
    return np.asarray(rows[:, 1] - rows[:, 0], np.float64)


def _crossing(model: Model, calibrated: float, most: float) -> float:
    """Return the classifier's log-odds, from -most to most, whose calibrated ones are these."""
    from scipy.optimize import brentq

    def distance(odds: float) -> float:
        return float(_log_odds(model, np.array([odds]))[0]) - calibrated

    if not distance(-most) < 0 < distance(most):
        ends = _log_odds(model, np.array([-most, most]))
        reached = " to ".join(f"{1 / (1 + np.exp(-x)):.3g}" for x in ends)
        raise InputError(
            f"threshold must be a calibrated probability that occurs, from {reached}; found "
            f"{1 / (1 + np.exp(-calibrated)):.3g}."
        )
    return float(brentq(distance, -most, most, xtol=1e-13))
