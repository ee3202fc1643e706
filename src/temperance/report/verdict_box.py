"""The verdict as the page and a notebook show it: what to do, and what it gains."""

from __future__ import annotations

from markupsafe import Markup

from temperance.comparison import Outcome, Verdict
from temperance.comparison.verdict import percent
from temperance.metrics import Estimate
from temperance.report.markup import element, table, unbroken

SYMBOLS = {
    Outcome.BETTER: "\N{CHECK MARK}",
    Outcome.PROBABLY_BETTER: "\N{ALMOST EQUAL TO}",
    Outcome.NO_DIFFERENCE: "=",
    Outcome.WORSE: "\N{MULTIPLICATION X}",
}
"""Symbols beside the word: colour alone does not reach every reader, nor every printer."""


def verdict_box(verdict: Verdict) -> Markup:
    """Return a box in the colour of the outcome, with the sentences of the verdict."""
    symbol = element("span", SYMBOLS[verdict.outcome], aria_hidden="true")
    outcome = element("span", symbol, f" Calibration: {verdict.outcome}", class_="outcome")
    others = [
        sentence for sentence in verdict.sentences if sentence not in (verdict.advice, verdict.headline)
    ]
    return element(
        "div",
        element("p", element("strong", verdict.advice), " ", outcome, class_="advice"),
        element("p", unbroken(verdict.headline), class_="headline"),
        *(element("p", unbroken(sentence)) for sentence in others),
        class_=f"verdict {verdict.outcome.replace(' ', '-')}",
    )


def key_numbers(verdict: Verdict) -> Markup:
    """Return the numbers behind the verdict: before, after, and the difference with its interval."""
    before, after = verdict.before, verdict.after
    rows = [
        ["mean confidence", percent(before.confidence), percent(after.confidence), ""],
        ["accuracy", percent(before.accuracy), percent(after.accuracy), ""],
        ["NLL", f"{verdict.nll_before:.4f}", f"{verdict.nll_after:.4f}", _lower(verdict.nll_gain)],
        [
            "ECE",
            f"{100 * verdict.ece_before:.2f} %",
            f"{100 * verdict.ece_after:.2f} %",
            f"{100 * verdict.ece_gain.value:.2f} %",
        ],
    ]
    rows = [[*map(unbroken, row)] for row in rows]
    if verdict.tried is None:
        return table(["", "the classifier"], [row[:2] for row in rows], "Key numbers")
    head = ["", "before", f"with {verdict.tried}", f"lower by ({100 * verdict.confidence:g} % interval)"]
    return table(head, rows, "Key numbers")


def _lower(gain: Estimate) -> str:
    return f"{gain.value:.4f} ({gain.low:.4f} to {gain.high:.4f})"
