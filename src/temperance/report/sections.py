"""The sections of the page: each computes its figure, then draws it with its numbers below.

`SECTIONS` has them in the order of the page. To add a figure, write its display in `temperance.display`, and
here a function from a `Report` to a title and HTML.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version

import numpy as np
from markupsafe import Markup
from scipy.special import stdtrit

import temperance
from temperance import display
from temperance.calibrators import CALIBRATORS, UNCALIBRATED
from temperance.comparison import Comparison, LearningCurve, Verdict
from temperance.comparison.result import MAX_CLASSES, MIN_ROWS
from temperance.comparison.verdict import Outcome, percent
from temperance.display.base import Display, before_and_after
from temperance.display.chart import written
from temperance.display.map import has_map
from temperance.display.reliability import MIN_BIN_ROWS
from temperance.metrics import METRICS
from temperance.report.markup import element, joined, table, unbroken
from temperance.report.methods_table import methods_table
from temperance.report.snippets import Snippets, snippet_blocks
from temperance.report.svg import figure

SYMBOLS = {
    Outcome.BETTER: "\N{CHECK MARK}",
    Outcome.IMPROVED: "\N{UPWARDS ARROW}",
    Outcome.PROBABLY_BETTER: "\N{ALMOST EQUAL TO}",
    Outcome.NO_DIFFERENCE: "=",
    Outcome.WORSE: "\N{MULTIPLICATION X}",
    Outcome.CHANCE: "!",
}
"""Symbols beside the word: colour alone does not reach every reader, nor every printer."""

_TESTS = {
    "spiegelhalter": "Spiegelhalter",
    "cox": "Cox, slope and intercept",
    "kuiper": "Kuiper, without bins",
    "kolmogorov_smirnov": "Kolmogorov-Smirnov, without bins",
    "cox_classes": "Cox, all classes",
}


@dataclass(frozen=True)
class Source:
    """A file that the comparison was made from, its number of rows, and what they were used for."""

    name: str
    role: str
    rows: int
    sha256: str


@dataclass(frozen=True, eq=False)
class Report:
    """What a page is made of; figures show the methods in `focus` until the reader chooses others."""

    comparison: Comparison
    sources: Sequence[Source]
    snippets: Snippets
    focus: Collection[str]


Section = tuple[str, Markup]


def shown_at_first(comparison: Comparison) -> set[str]:
    """Return the methods that the figures show until the reader chooses others.

    They are the recommended one (or the best one, if none is), the alternative that keeps all predictions,
    the one with the lowest NLL, the one with the fewest parameters, and the best one with a map, so that the
    figure of maps is not empty.
    """
    methods = {name: result for name, result in comparison.results.items() if name != UNCALIBRATED}
    if not methods:
        return set()
    by_nll = sorted(methods, key=lambda name: methods[name].scores["nll"].value)
    with_map = [name for name in by_nll if has_map(methods[name].calibrator)]
    simplest = min(methods, key=lambda name: methods[name].n_parameters)
    others = (comparison.verdict.tried, comparison.verdict.alternative)
    return {by_nll[0], simplest, *with_map[:1], *(name for name in others if name in methods)}


# ---- verdict


def _verdict(report: Report) -> Section:
    comparison = report.comparison
    advice = (element("li", sentence) for sentence in cautions(comparison))
    reason = element("p", comparison.reason)
    numbers = _key_numbers(comparison.verdict)
    return "Verdict", verdict_box(comparison.verdict) + numbers + reason + element("ul", *advice)


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


def _key_numbers(verdict: Verdict) -> Markup:
    """Return the numbers behind the verdict: before, after, and the difference with its interval."""
    before, after, gain = verdict.before, verdict.after, verdict.nll_gain
    lower = f"{gain.value:.4f} ({gain.low:.4f} to {gain.high:.4f})"
    rows = [
        ["mean confidence", percent(before.confidence), percent(after.confidence), ""],
        ["accuracy", percent(before.accuracy), percent(after.accuracy), ""],
        ["NLL", f"{before.nll:.4f}", f"{after.nll:.4f}", lower],
        [
            "ECE",
            f"{100 * before.ece:.2f} %",
            f"{100 * after.ece:.2f} %",
            f"{100 * verdict.ece_gain.value:.2f} %",
        ],
    ]
    rows = [[*map(unbroken, row)] for row in rows]
    if verdict.tried is None:
        return table(["", "the classifier"], [row[:2] for row in rows], "Key numbers")
    head = ["", "before", f"with {verdict.tried}", f"lower by ({100 * verdict.confidence:g} % interval)"]
    return table(head, rows, "Key numbers")


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


# ---- methods side by side


def _snippets(report: Report) -> Section:
    return "Use it in production", snippet_blocks(report.comparison, report.snippets)


def _reliability(report: Report) -> Section:
    """Draw accuracy against confidence, before and after."""
    shown = display.ReliabilityDisplay.from_comparison(report.comparison)
    numbers = []
    for method, diagram in shown.diagrams.items():
        columns = diagram.count, diagram.confidence, diagram.accuracy, diagram.low, diagram.high
        rows = [
            [f"{a:.2f} to {b:.2f}", f"{n:.0f}", f"{c:.3f}", f"{h:.3f}", f"{low:.3f} to {high:.3f}"]
            for a, b, n, c, h, low, high in zip(diagram.edges[:-1], diagram.edges[1:], *columns, strict=True)
            if n > 0
        ]
        head = ["bin", "rows", "confidence", "accuracy", "interval"]
        numbers.append(table(head, rows, f"Bins of {method}"))
    intro = (
        "Rows are binned by their confidence. In a bin on the dashed line, confidence equals accuracy; below "
        "the line, confidence is too high. Bands are 95 % intervals; the bars below show the share of the "
        "rows in each bin."
    )
    drawn = figure("reliability", shown.chart(), joined(numbers))
    return "Reliability before and after", element("p", intro) + drawn


def _methods(report: Report) -> Section:
    """List all scores, and draw the NLL of each method minus that of the recommended one."""
    shown = display.DifferencesDisplay.from_comparison(report.comparison)
    columns = shown.methods, shown.value, shown.low, shown.high
    rows = [[name, f"{v:+.4f}", f"{a:+.4f} to {b:+.4f}"] for name, v, a, b in zip(*columns, strict=True)]
    numbers = table(["method", "difference", "interval"], rows, "Differences of NLL")
    return "Methods", methods_table(report.comparison) + figure("differences", shown.chart(), numbers)


def _calibration_tests(report: Report) -> Section:
    """List statistic and p-value of each test, before and with the method of the verdict; Cox in words."""
    scores = {
        "before" if name == UNCALIBRATED else f"with {name}": report.comparison.results[name].scores
        for name in before_and_after(report.comparison, None)
    }
    cells: dict[str, list[str]] = {}
    for score in scores.values():
        for name, statistic, p_value in score.shown_tests():
            p = f"p {'' if p_value.startswith('<') else '= '}{p_value}".replace(" ", "\N{NO-BREAK SPACE}")
            cells.setdefault(_TESTS[name], []).append(f"{statistic}, {p}")
    rows = [[name, *found] for name, found in cells.items()]
    intro = (
        "The null hypothesis is that the confidence of every row is the probability that it is right; of "
        "the last test, that the probability of every class is that of its label. A "
        "small p-value rejects it; the verdict uses Cox's test alone, since one of five is often below 0.05 "
        "by chance. With many rows, even an error too small to matter is significant: the calibration error "
        "above shows its size."
    )
    told = [
        element("p", f"Cox, {when}: {score.tests['cox'].words}")
        for when, score in scores.items()
        if "cox" in score.tests
    ]
    head = ["test", *(f"{when}: statistic, p-value" for when in scores)]
    title = "Tests of calibration"
    return title, element("p", intro) + table(head, rows, title) + joined(told)


def _class_reliability(report: Report) -> Section:
    """Draw the share of single classes against their probability, before and after; of two, the second."""
    comparison, title = report.comparison, "Reliability by class"
    own = comparison.results[UNCALIBRATED]
    shown = [
        display.ClassReliabilityDisplay.from_comparison(comparison, column=column)
        for column in own.class_reliability
    ]
    if not shown:
        few = f"No class has at least {MIN_ROWS} test rows: too few for a diagram."
        return title, element("p", few)
    n_classes = own.scores.n_classes
    intro = "Among rows with a given probability of a class, how many are of that class?"
    if n_classes == 2:
        title = f"Reliability of class {shown[0].name}"
    elif len(shown) < n_classes:
        why = (
            "have the most test rows" if len(shown) == MAX_CLASSES else f"have at least {MIN_ROWS} test rows"
        )
        intro += f" Of {n_classes} classes, these {len(shown)} {why}."
    intro += f" Bins of fewer than {MIN_BIN_ROWS} rows are left out."
    panels = [figure(f"class-{one.column}", one.chart()) for one in shown]
    return title, element("p", intro) + element("div", *panels, class_="panels")


# ---- what the methods have learnt


def _figure_by_method(name: str, shown: Display, numbers: Markup, focus: Collection[str]) -> Markup:
    """Draw all methods, on axes that fit those in focus: a method that is hidden at first stretches none."""
    chart = shown.restricted_to(focus).chart()
    others = [mark for mark in shown.chart().marks if mark.method and mark.method not in focus]
    return figure(name, replace(chart, marks=[*chart.marks, *others]), numbers, by_method=True)


def _temperature(report: Report) -> Section:
    """Draw T(z) against the log entropy, and the best temperature of each bin of rows."""
    shown = display.TemperatureDisplay.from_comparison(report.comparison)
    bins = zip(shown.centre, shown.count, shown.optimum, shown.low, shown.high, strict=True)
    rows = [[f"{h:.2f}", f"{n}", f"{t:.3g}", f"{low:.3g} to {high:.3g}"] for h, n, t, low, high in bins]
    numbers = table(["log entropy", "rows", "best T", "interval"], rows, "Best temperature by entropy")
    note = Markup("")
    if report.comparison.judged is report.comparison.fitted:
        note = element("p", "There is no test set: these are the rows that the methods were fitted to.")
    drawn = _figure_by_method("temperature", shown, numbers, report.focus)
    return "Temperature by entropy", note + drawn


def _classes(report: Report) -> Section:
    """Draw the mean temperature of each true class, and the best one of its rows."""
    title = "Temperature by class"
    shown = display.ClassTemperatureDisplay.from_comparison(report.comparison)
    if not len(shown.classes):
        return title, element("p", "No class has enough rows to find its best temperature.")
    groups = zip(shown.classes, shown.count, shown.optimum, shown.low, shown.high, strict=True)
    rows = [[shown.name(k), f"{n}", f"{t:.3g}", f"{low:.3g} to {high:.3g}"] for k, n, t, low, high in groups]
    columns = {name: [f"{t:.3g}" for t in mean] for name, mean in shown.mean.items()}
    caption = "Temperature by class: the best one, and the mean of each method"
    numbers = table(["class", "rows", "best T", "interval"], rows, caption, columns)
    return title, _figure_by_method("classes", shown, numbers, report.focus)


def _map(report: Report) -> Section:
    """Draw the maps of probabilities, if a method has one."""
    title = "Map of probabilities"
    if not any(has_map(result.calibrator) for result in report.comparison.results.values()):
        return title, Markup("")
    shown, before = display.MapDisplay.from_comparison(report.comparison), np.geomspace(1e-6, 0.1, 6)
    columns = {name: [written(p) for p in one.apply(before)] for name, one in shown.maps.items()}
    rows = [[written(p)] for p in before]
    numbers = table(["probability at T0"], rows, "Probabilities after the map", columns)
    return title, _figure_by_method("map", shown, numbers, report.focus)


def _labels(report: Report) -> Section:
    """Draw the NLL by the number of calibration rows."""
    title, curve = "Would more labels help?", report.comparison.learning_curve
    if curve is None:
        return title, Markup("")
    if len(curve.sizes) < 2:
        return title, element("p", "There are too few rows to fit to subsets of them.")
    shown = display.LearningCurveDisplay.from_curve(curve)
    columns = {name: [f"{value:.4f}" for value in mean] for name, mean in shown.mean.items()}
    numbers = table(["rows"], [[str(size)] for size in shown.sizes], "NLL by labelled rows", columns)
    drawn = _figure_by_method("labels", shown, numbers, report.focus)
    return title, element("p", labels_in_words(report.comparison, curve)) + drawn


def labels_in_words(comparison: Comparison, curve: LearningCurve) -> str:
    """Say whether the method of the verdict was still improving, as far as the draws can show it."""
    tried = comparison.verdict.tried
    name = tried if tried in curve.nll else min(curve.nll, key=lambda one: float(curve.mean(one)[-1]))
    fell, error = curve.last_fall(name)
    n_draws, after = curve.nll[name].shape[1], float(curve.mean(name)[-1])
    if fell <= error * stdtrit(n_draws - 1, 0.975):  # the two-sided 95% quantile of Student's t
        answer = f"No gain that {n_draws} random draws could show"
    else:
        answer = "Hardly" if fell < 0.002 * after else "A little" if fell < 0.01 * after else "Yes"
    missing = [name for name in comparison.results if name not in (UNCALIBRATED, *curve.nll)]
    left_out = (
        f" Left out, as their fits take long with so many classes: {', '.join(missing)}." if missing else ""
    )
    smaller, larger = curve.sizes[-2:]
    before = float(curve.mean(name)[-2])
    return (
        f"{answer}: from {smaller} to {larger} rows the NLL of {name} went from {before:.4f} to {after:.4f}, "
        f"a fall of {fell:.4f} \u00b1 {error:.4f}.{left_out}"
    )


def _parameters(report: Report) -> Section:
    parts = []
    for name, result in report.comparison.results.items():
        if result.calibrator is None:
            continue
        warnings = [element("p", warning, class_="warning") for warning in result.warnings]
        # A method from outside need not have a summary.
        words = getattr(result.calibrator, "summary", result.calibrator.__repr__)()
        content = element("pre", words, tabindex="0")
        title = element("summary", f"{name}: {type(result.calibrator).__name__}")
        chosen = name == report.comparison.recommended
        parts.append(element("details", title, *warnings, content, open=chosen))
    return "What was learnt", joined(parts)


# ---- how the page was made


def _provenance(report: Report) -> Section:
    """List the files, and everything needed to make the same report again."""
    comparison = report.comparison
    files = [[source.name, source.role, str(source.rows), source.sha256] for source in report.sources]
    listed = table(["file", "used as", "rows", "SHA-256"], files, "Files") if files else Markup("")
    made = [["temperance", temperance.__version__], ["Python", platform.python_version()]]
    made += [[name, version(name)] for name in ("numpy", "scipy", "scikit-learn")]
    made += [[name.replace("_", " "), str(value)] for name, value in comparison.settings.items()]
    made += [
        ["rows fitted", str(len(comparison.fitted))],
        ["rows judged", str(len(comparison.judged))],
        ["methods", ", ".join(comparison.results)],
    ]
    if report.comparison.learning_curve is not None:
        made.append(["test rows of the learning curve", str(report.comparison.learning_curve.n_judged)])
    return "How this was made", listed + table(["what", "value"], made, "Versions, seeds and settings")


_MEANINGS = {
    **{metric.label: metric.help for metric in METRICS.values() if metric.tables != "evaluation"},
    "confidence": "the probability of the predicted class",
    "temperature T": "the number by which logits are divided: above 1 if the classifier is overconfident",
    "log entropy": "uncertainty of a row: 0 if all classes are equally likely, very low if one is certain",
    "standard error": "of the mean difference of two methods over the same rows",
    "gain that matters": "an NLL lower by at least 1% and two standard errors; 2% if predictions change",
    "prediction": "the class with the highest probability",
}

_VARIANTS = {
    "pts-ece": "fitted to the ECE, not to the NLL",
    "bayes-bias": "and with a bias for each class, which may change predictions",
}


def _glossary(report: Report) -> Section:
    """List the terms on the page, and the methods by their keys; one class may have several methods."""
    words = dict(_MEANINGS)
    for key, method in CALIBRATORS.items():
        if method.in_comparison:
            words[key] = f"{method.summary}, {_VARIANTS[key]}" if key in _VARIANTS else method.summary
    words[UNCALIBRATED] = "the classifier as it is"
    return "Glossary", element("dl", *(element("dt", k) + element("dd", v) for k, v in words.items()))


SECTIONS: dict[str, Callable[[Report], Section]] = {
    "verdict": _verdict,
    "production": _snippets,
    "reliability": _reliability,
    "methods": _methods,
    "tests": _calibration_tests,
    "class-reliability": _class_reliability,
    "temperature": _temperature,
    "classes": _classes,
    "map": _map,
    "labels": _labels,
    "parameters": _parameters,
    "provenance": _provenance,
    "glossary": _glossary,
}
"""The sections by their anchor; one without content is left out."""
