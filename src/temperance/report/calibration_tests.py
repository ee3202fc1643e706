"""The tests of calibration on the page: before, and after with the method of the verdict."""

from __future__ import annotations

from markupsafe import Markup

from temperance.comparison import UNCALIBRATED, Comparison
from temperance.report.markup import element, table

_NO_BREAK = "\N{NO-BREAK SPACE}"
_NAMES = {
    "spiegelhalter": "Spiegelhalter",
    "cox": "Cox, slope and intercept",
    "kuiper": "Kuiper, without bins",
    "kolmogorov_smirnov": "Kolmogorov-Smirnov, without bins",
}


def calibration_tests(comparison: Comparison) -> Markup:
    """Return statistic and p-value of each test, and the result of Cox's regression in words."""
    tried = comparison.verdict.tried
    shown = {"before": UNCALIBRATED} | ({} if tried is None else {f"with {tried}": tried})
    scores = {when: comparison.results[name].scores for when, name in shown.items()}
    columns = [{name: cells for name, *cells in score.shown_tests()} for score in scores.values()]
    rows = [[_NAMES[name], *(_cell(*column[name]) for column in columns)] for name in columns[0]]
    intro = (
        "The null hypothesis is that the confidence of every row is the probability that it is right. A "
        "small p-value rejects it. With many rows, even an error too small to matter is significant: the "
        "calibration error above shows its size."
    )
    told = [
        element("p", f"Cox, {when}: {score.tests['cox'].words}")
        for when, score in scores.items()
        if "cox" in score.tests
    ]
    head = ["test", *(f"{when}: statistic, p-value" for when in scores)]
    return element("p", intro) + table(head, rows, "Tests of calibration") + Markup("").join(told)


def _cell(statistic: str, p_value: str) -> str:
    words = f"p {'' if p_value.startswith('<') else '= '}{p_value}"
    return f"{statistic}, {words.replace(' ', _NO_BREAK)}"
