"""Which method to use, and why.

Methods are compared by NLL, a proper score: it rewards true probabilities and nothing else. A difference of
two methods is a mean over rows of paired differences, with its standard error; by cross-validation this
includes the noise of the fits.

Two classes: people act on P(positive), mostly not at 1/2, so a method that changes predictions there has no
price. The answer is `bayes-bias`, or `bayes` if its NLL is lower by more than one standard error; and the
classifier is left as it is if its NLL is lower than the answer's by more than one standard error. With
fewer than 10 rows of the rarer class the rows cannot compare more than these two: the answer is the one with
the lower NLL. Otherwise another candidate replaces the answer by 1% of the NLL and two standard errors.

More classes, and two without either method: `bayes` is recommended if it lowers the NLL by a quarter of a
standard error, unless the rows exclude that it gains 1%; otherwise the classifier is left as it is. Another
candidate replaces this answer only by a gain that matters: 1% of the NLL, or 2% if it changes predictions,
and two standard errors. Of `bayes-bias`, which has a prior as well, a quarter of a standard error is asked.
Without `bayes` among the candidates, the first answer is the method with the fewest parameters that keeps all
predictions, if it lowers the NLL by one standard error, and else the uncalibrated classifier.

The candidates are the methods that the user has named; if none were, `ts`, `bayes`, `bayes-bias` and the
uncalibrated classifier, whatever else was tried. No method is recommended for rows whose columns or labels
seem to be mixed up.

`benchmarks/recommendation.py` measures what following the rule gains and how often it does harm; the
constants were chosen by it and, for two classes, by `benchmarks/events.py`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from temperance.calibrators import UNCALIBRATED
from temperance.calibrators.registry import default_method
from temperance.comparison.method_result import Difference, MethodResult, ece_gain
from temperance.errors import on_one_line, percent
from temperance.inputs.containers import LabelledRows
from temperance.metrics.finding import State

DEFAULT, DEFAULT_OF_TWO = default_method(3), default_method(2)
WITH_PRIOR = (DEFAULT, DEFAULT_OF_TWO)
DEFAULT_METHODS = ("ts", *WITH_PRIOR)
"""The methods that are compared if the user names none, and the candidates among all methods."""

MIN_GAIN = 0.01  # of the NLL; less would not be noticed
MIN_GAIN_WITH_CHANGES = 0.02  # of a method that changes predictions, which has a price of its own
MIN_ERRORS = 2.0  # standard errors of the gain: by chance, one in forty
MIN_ERRORS_WITH_PRIOR = 0.25  # a prior is evidence of its own; with less, 20 rows recommend harm too often
MIN_ROWS_OF_CLASS = 10  # of the rarer of two; fewer cannot compare a method with the classifier
LEAST_SHOWN = 0.00005  # a smaller difference of the log loss is shown as 0.0000


@dataclass(frozen=True)
class Recommendation:
    """The method to use, and why.

    Attributes
    ----------
    method : str
        The method to use; "none" if none is needed.
    reason : str
        Why, as a sentence.
    alternative : str, or None
        If the method changes predictions of more than two classes: the one to use if they must stay the same.
    candidates : tuple of str
        The names among which it was chosen.
    chance_nll : float, or None
        The NLL of the frequencies of the labels, if neither a method nor the accuracy is better. Then the
        method is "none": the labels might belong to other rows.
    few : str, or None
        How many rows the rarer of two classes has, if they are too few to compare methods.

    Examples
    --------
    >>> from temperance import compare
    >>> from temperance.data import simulate
    >>> task = simulate(n_rows=400, n_classes=3)
    >>> comparison = compare(task.logits, task.labels, methods=["ts"], folds=2, draws=5)
    >>> comparison.recommendation.method, comparison.recommendation.candidates
    ('ts', ('none', 'ts'))
    """

    method: str
    reason: str
    alternative: str | None = None
    candidates: tuple[str, ...] = ()
    chance_nll: float | None = None
    few: str | None = None


def recommend(
    results: Mapping[str, MethodResult],
    candidates: Collection[str] | None = None,
    rows: LabelledRows | None = None,
) -> Recommendation:
    """Choose among the candidates (all by default), for two classes or for more.

    With the `rows` that the results are of, few rows of one of two classes count as such, and with enough of
    them no method is recommended if the classifier is no better than chance.
    """
    own = results[UNCALIBRATED]
    among = tuple(name for name in results if candidates is None or name in (UNCALIBRATED, *candidates))
    if own.scores.finding is not None and own.scores.finding.state is State.REVERSED:
        reason = "Calibration mends neither labels of other rows nor columns in another order."
        return Recommendation(UNCALIBRATED, reason, None, among)
    of_two = own.scores.n_classes == 2 and not (rows is not None and rows.positions)
    few = _few(rows) if of_two else None
    chance = None if rows is None or few is not None else _chance_nll(results, rows)
    if chance is not None:
        reason = f"No method has a lower log loss than the class frequencies, {chance:.4f}."
        return Recommendation(UNCALIBRATED, reason, None, among, chance)
    simplest_first = sorted(among, key=lambda name: (results[name].n_parameters, results[name].nll))
    answers = [name for name in WITH_PRIOR if name in among]
    if of_two and answers:
        return _of_two_classes(results, answers, simplest_first, few, among)
    keeping = [name for name in simplest_first if of_two or not results[name].changes_decisions]
    changing = [name for name in simplest_first if name not in keeping]
    methods = [name for name in keeping if name != UNCALIBRATED]
    usual = DEFAULT if DEFAULT in methods else next(iter(methods), UNCALIBRATED)

    gain = Difference.of_nll(own, results[usual])
    may_matter = gain.value + MIN_ERRORS * gain.error >= MIN_GAIN * own.nll
    needed = MIN_ERRORS_WITH_PRIOR if usual == DEFAULT else 1.0
    is_used = gain.value > needed * gain.error and (may_matter or usual != DEFAULT)
    default = usual if is_used else UNCALIBRATED
    kept = _improved(results, default, keeping, MIN_GAIN)
    chosen = _improved(results, kept, changing, MIN_GAIN_WITH_CHANGES)
    if chosen != kept:
        whose = "the choice among methods that keep all predictions"
        reason = _reason_of_gain(results, chosen, kept, whose, MIN_GAIN_WITH_CHANGES)
        return Recommendation(chosen, reason, _harmless(results, kept, methods), among)
    role = "the default" if usual == DEFAULT else "the simplest method"
    if kept != default:
        reason = _reason_of_gain(results, kept, default, "the default", MIN_GAIN)
    elif usual == UNCALIBRATED:
        reason = "No method that keeps all predictions was tried."
    elif is_used:
        reason = f"It is {role}; no other candidate is better by a gain that matters."
    elif gain.value > needed * gain.error:
        reason = f"{usual}, {role}, lowers the log loss by less than {MIN_GAIN:.0%} ({_in_words(gain)})."
    else:
        by = f"{needed:g} standard error{'s' * (needed != 1)}"
        reason = f"{usual}, {role}, does not lower the log loss by {by} ({_in_words(gain)})."
    return Recommendation(kept, reason + _reasons_against(results, kept, usual, among), None, among)


def _of_two_classes(
    results: Mapping[str, MethodResult],
    answers: Sequence[str],
    simplest_first: Iterable[str],
    few: str | None,
    among: tuple[str, ...],
) -> Recommendation:
    """Choose for two classes; `answers` are `bayes` and `bayes-bias`, or one of them."""
    if few is not None:
        chosen = min(answers, key=lambda name: results[name].nll)
        lower = f" Of {' and '.join(answers)} it has the lower log loss." if len(answers) > 1 else ""
        reason = (
            f"No rule can choose accurately with {few}, nor can these rows show that it does harm.{lower}"
        )
        return Recommendation(chosen, reason, None, among, few=few)
    first, usual = answers[0], answers[-1]
    lead = Difference.of_nll(results[usual], results[first])
    better = first if lead.value > lead.error else usual
    loss = Difference.of_nll(results[better], results[UNCALIBRATED])
    default = UNCALIBRATED if loss.value > loss.error else better
    others = [name for name in simplest_first if name not in (*WITH_PRIOR, UNCALIBRATED)]
    chosen = _improved(results, default, others, MIN_GAIN)
    if chosen != default:
        reason = _reason_of_gain(results, chosen, default, "the choice for two classes", MIN_GAIN)
    elif chosen == UNCALIBRATED:
        reason = f"{better} raises the log loss by more than one standard error ({_in_words(loss)})."
    elif chosen != usual:
        reason = (
            f"Its log loss is lower than with {usual}, the default for two classes, by {_in_words(lead)}."
        )
    else:
        reason = "It is the default for two classes; no other candidate is better by a gain that matters."
    return Recommendation(chosen, reason + _reasons_against(results, chosen, better, among), None, among)


def _few(rows: LabelledRows | None) -> str | None:
    """Say how many rows the rarer of two classes has, if they are few."""
    if rows is None:
        return None
    counts = np.bincount(rows.labels if rows.weights is None else rows.labels[rows.weights > 0], minlength=2)
    rarer, n_rows = int(counts.argmin()), int(counts.min())
    if n_rows >= MIN_ROWS_OF_CLASS:
        return None
    name = rarer if rows.class_names is None else on_one_line(rows.class_names[rarer])
    return f"{n_rows} row{'s' * (n_rows != 1)} of class {name}"


def _improved(results: Mapping[str, MethodResult], answer: str, names: Iterable[str], min_gain: float) -> str:
    """Return the answer after each of the methods, in this order, could replace it by a gain."""
    for name in names:
        gain = Difference.of_nll(results[answer], results[name])
        errors = MIN_ERRORS_WITH_PRIOR if name in WITH_PRIOR else MIN_ERRORS
        if gain.value > 0 and gain.value >= max(min_gain * results[answer].nll, errors * gain.error):
            answer = name
    return answer


def _harmless(results: Mapping[str, MethodResult], first: str, keeping: Iterable[str]) -> str:
    """Return the first choice unless it raises the NLL or, beyond one standard error, the ECE.

    Otherwise return the method with the lowest NLL that does neither. If there is none, the first choice
    stays as long as it lowers the NLL: the reader sees both of its scores.
    """
    own = results[UNCALIBRATED]
    for name in (first, *sorted(keeping, key=lambda name: results[name].nll)):
        calibration = ece_gain(own, results[name])
        if results[name].nll <= own.nll and calibration.value >= -calibration.error:
            return name
    return first if results[first].nll < own.nll else UNCALIBRATED


def _reason_of_gain(
    results: Mapping[str, MethodResult], chosen: str, other: str, whose: str, min_gain: float
) -> str:
    named = "the uncalibrated classifier" if other == UNCALIBRATED else other
    gain = _in_words(Difference.of_nll(results[other], results[chosen]))
    return f"Its log loss is lower than with {named}, {whose}, by {gain}, a gain of {min_gain:.0%} or more."


def _reasons_against(
    results: Mapping[str, MethodResult], kept: str, usual: str, candidates: Collection[str]
) -> str:
    """Say why methods with a lower NLL than the one kept were not chosen."""
    words, of_two = "", results[UNCALIBRATED].scores.n_classes == 2
    at_most = results[kept].nll - LEAST_SHOWN
    lower = [name for name in results if results[name].nll < at_most and name != usual]
    lower.sort(key=lambda name: results[name].nll)
    for rival in [name for name in lower if name in candidates][:1]:
        share = 0.0 if of_two else results[rival].changed_share
        changes = f" and would change {percent(share)} of predictions" if share else ""
        gain = Difference.of_nll(results[kept], results[rival])
        needed = MIN_GAIN_WITH_CHANGES if share else MIN_GAIN
        is_usual = of_two and rival in (UNCALIBRATED, *WITH_PRIOR)  # for which chance alone is asked
        is_small = gain.value < needed * results[kept].nll and not is_usual
        why = f"a gain of {needed:.0%} is needed" if is_small else "that is too uncertain"
        words += f" {rival} has a log loss lower by {_in_words(gain)}{changes}; {why}."
    for other in [name for name in lower if name not in candidates][:1]:
        words += f" {other} has a lower log loss, but is a candidate only if you name it."
    return words


def _chance_nll(results: Mapping[str, MethodResult], rows: LabelledRows) -> float | None:
    """Return the NLL of the label frequencies if neither a method nor the accuracy is better; else None.

    The same rows give the frequencies, so that no constant prediction is better. The accuracy must exceed the
    share of the most frequent class by two standard errors: a few accurate rows can have a high NLL.
    """
    own = results[UNCALIBRATED]
    frequencies = np.bincount(rows.labels, own.share)
    frequencies = frequencies[frequencies > 0]
    entropy = -float(frequencies @ np.log(frequencies))
    above = own.correct.astype(np.float64) - frequencies.max()
    accuracy = Difference.of(above, own.share, groups=own.groups)
    is_above = min(one.nll for one in results.values()) < entropy
    if len(frequencies) == 1 or is_above or accuracy.value > 2 * accuracy.error:
        return None
    return entropy


def _in_words(difference: Difference) -> str:
    return f"{difference.value:.4f} \u00b1 {difference.error:.4f}"
