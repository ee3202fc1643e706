"""What a comparison found besides the verdict: what to watch, and whether more labels would help."""

from __future__ import annotations

from itertools import groupby

from temperance.comparison import UNCALIBRATED, Comparison, LearningCurve


def cautions(comparison: Comparison) -> list[str]:
    """Say what else a reader should know before relying on the recommended method."""
    result = comparison.results[comparison.recommended]
    error = result.scores["ece"]
    sentences = [
        f"Remaining error: a confidence is off by {100 * error.value:.2f} % on average "
        f"({100 * error.low:.2f} to {100 * error.high:.2f} %, including the noise of the bins)."
    ]
    if comparison.judged is comparison.fitted:
        sentences.append(
            "There was no test set: each row was evaluated by a fit to the other folds. That is fair, but "
            "rows from where the classifier will be used are better."
        )
    sentences.extend(f"Warning of the fit: {warning}" for warning in result.warnings)
    if comparison.recommended != UNCALIBRATED:
        sentences.append(
            "This holds for rows like these. Fit again when the classifier or the source of its rows changes."
        )
    return sentences


def labels_in_words(comparison: Comparison, curve: LearningCurve) -> str:
    """Say whether the recommended method was still improving, and which method fewer rows would favour."""
    tried = comparison.verdict.tried
    name = tried if tried in curve.nll else curve.ranking(curve.sizes[-1])[0]
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
