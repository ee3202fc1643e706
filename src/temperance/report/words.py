"""Findings of a comparison in sentences: what to do, what to watch, whether more labels would help."""

from __future__ import annotations

from itertools import groupby

from temperance.comparison import UNCALIBRATED, Comparison, LearningCurve


def shipping_advice(comparison: Comparison) -> list[str]:
    """Say what a reader should know before shipping the recommended method."""
    name, result = comparison.recommended, comparison.results[comparison.recommended]
    gain, sentences = comparison.verdict.nll_gain, []
    if name == UNCALIBRATED:
        return ["Nothing needs to be shipped: the probabilities can be used as they are."]
    if gain.low > 0:
        sentences.append("The improvement is beyond chance: its interval lies above 0.")
    else:
        sentences.append(
            "The improvement may be chance: its interval reaches 0. More rows to judge on would tell."
        )
    error = result.scores["ece"]
    sentences.append(
        f"What remains: a confidence is off by {100 * error.value:.2f} % on average, at most "
        f"{100 * error.high:.2f} % by its interval, which counts the noise of the bins."
    )
    sentences.append(_decisions_in_words(comparison))
    if comparison.judged is comparison.fitted:
        sentences.append(
            "There was no test set: each row was judged by a fit to the other folds, which is fair, but a "
            "test set from where the classifier will be used is better."
        )
    sentences.extend(f"Warning of the fit: {warning}" for warning in result.warnings)
    sentences.append(
        "It holds for rows like these. Fit again when the classifier, or where its rows come from, changes."
    )
    return sentences


def _decisions_in_words(comparison: Comparison) -> str:
    """Say what the recommended method does to the predicted classes."""
    if comparison.methods[comparison.recommended].keeps_class:
        return "Every decision stays the same: the predicted class is never changed."
    alternative = comparison.recommendation.alternative
    if alternative is None:
        return "It may change decisions, but it changes none on the rows judged."
    instead = "leave the classifier as it is" if alternative == UNCALIBRATED else f"use {alternative} instead"
    return f"It changes decisions. If they must stay the same, {instead}."


def labels_in_words(comparison: Comparison, curve: LearningCurve) -> str:
    """Say whether the recommended method was still improving, and which method fewer rows would favour."""
    name = (
        comparison.recommended if comparison.recommended in curve.nll else curve.ranking(curve.sizes[-1])[0]
    )
    (before, after), (smaller, larger) = curve.mean(name)[-2:], curve.sizes[-2:]
    noise = float(max(curve.error(name)[-2:]))
    fell = before - after
    if fell <= 2 * noise or fell < 0.002 * after:
        answer = "Hardly"
    else:
        answer = "A little" if fell < 0.01 * after else "Yes"
    return (
        f"{answer}: from {smaller} to {larger} rows the NLL of {name} went from {before:.4f} to {after:.4f}. "
        f"Lowest NLL by sample size: {_leaders(curve)}.{_left_out(comparison, curve)}"
    )


def _left_out(comparison: Comparison, curve: LearningCurve) -> str:
    missing = [name for name in comparison.results if name not in (UNCALIBRATED, *curve.nll)]
    return (
        f" Left out, as their fits take long with so many classes: {', '.join(missing)}." if missing else ""
    )


def _leaders(curve: LearningCurve) -> str:
    """Name the best method by size: "ts (20 to 100 rows), hts (200 rows)"."""
    told = []
    for method, sizes in groupby(curve.sizes, key=lambda size: curve.ranking(size)[0]):
        ends = [*sizes]
        span = f"{ends[0]} to {ends[-1]}" if len(ends) > 1 else f"{ends[0]}"
        told.append(f"{method} ({span} rows)")
    return ", ".join(told)
