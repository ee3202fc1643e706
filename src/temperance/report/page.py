"""The report of a comparison: sections, each a function from a `Report` to HTML; empty ones are left out.

`SECTIONS` and `DIAGNOSTICS`, which are folded at first, have them in the order of the page. To add one, write
its function and an entry there. A figure is a display of `temperance.display`; no number is shown by two
sections.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from scipy.special import stdtrit

import temperance
from temperance import display
from temperance.calibrators import CALIBRATORS, UNCALIBRATED
from temperance.comparison import Comparison, LearningCurve, MethodResult, Verdict
from temperance.comparison.method_result import MIN_ROWS
from temperance.comparison.table import MINUS, numbers
from temperance.comparison.verdict import Outcome
from temperance.decisions import Automation, find_rule, why_empty
from temperance.display.reliability import MAX_DRAWN_VALUES, MIN_BIN_ROWS
from temperance.errors import percent
from temperance.files import check_writable, utc_now, write_atomically
from temperance.metrics import METRICS
from temperance.metrics.finding import p_in_words, rates
from temperance.metrics.intervals import Estimate
from temperance.report.markup import element, html_document, joined, table
from temperance.report.snippets import Snippets, snippet_blocks
from temperance.report.svg import figure

TITLE = "Calibration report"

SYMBOLS = {
    Outcome.BETTER: "\N{CHECK MARK}",
    Outcome.IMPROVED: "\N{UPWARDS ARROW}",
    Outcome.PROBABLY_BETTER: "\N{ALMOST EQUAL TO}",
    Outcome.POSSIBLY_BETTER: "?",
    Outcome.NO_DIFFERENCE: "=",
    Outcome.WORSE: "\N{MULTIPLICATION X}",
    Outcome.CHANCE: "!",
    Outcome.REVERSED: "\N{RIGHTWARDS ARROW OVER LEFTWARDS ARROW}",
}
"""Symbols beside the word: colour alone does not reach every reader, nor every printer."""

MAX_PANELS = 6  # classes whose reliability is drawn
MAX_ERRORS = (0.01, 0.02, 0.05, 0.1)  # shares of wrong predictions that the page promises
PROMISE_DELTA = 0.05  # probability that one of these promises does not hold


@dataclass(frozen=True)
class Source:
    """A file that the comparison was made from, its number of rows, and what they were used for."""

    name: str
    role: str
    rows: int
    sha256: str


@dataclass(frozen=True, eq=False)
class Report:
    """What a page is made of."""

    comparison: Comparison
    sources: Sequence[Source]
    snippets: Snippets

    @property
    def n_classes(self) -> int:
        """K; of two classes, the page shows the probability of the second one, not the confidence."""
        return self.comparison.results[UNCALIBRATED].scores.n_classes

    @property
    def shown(self) -> list[str]:
        """The classifier itself and, if one is recommended, the method to use."""
        used = self.comparison.recommended
        return [UNCALIBRATED] if used == UNCALIBRATED else [UNCALIBRATED, used]


# ---- verdict


def _verdict(report: Report) -> Markup:
    """Return the verdict, the picture before and after beside it, and the tiles below."""
    comparison = report.comparison
    verdict, result = comparison.verdict, comparison.results[comparison.recommended]
    if verdict.is_mixed_up:
        return element("div", verdict_box(verdict, [verdict.headline]), _reliability(report), class_="pair")
    told = [verdict.remaining_in_words or verdict.headline]
    if verdict.outcome in (Outcome.PROBABLY_BETTER, Outcome.POSSIBLY_BETTER):
        told.append("More labelled rows would help to decide.")
    told += verdict.notes
    if comparison.judged is comparison.fitted:
        told.append("There was no test set: each row was evaluated by a fit to the other folds.")
    told += [comparison.why, *(f"Warning of the fit: {warning}" for warning in result.warnings)]
    box = verdict_box(verdict, [sentence for sentence in told if sentence])
    pair = element("div", box, _reliability(report), class_="pair")
    return pair + element("div", *_tiles(report), class_="tiles")


def verdict_box(verdict: Verdict, sentences: Sequence[str]) -> Markup:
    """Return a box in the colour of the outcome, with the advice and some sentences."""
    symbol = element("span", SYMBOLS[verdict.outcome], aria_hidden="true")
    return element(
        "div",
        element("p", element("strong", verdict.advice), class_="advice"),
        element("p", element("span", symbol, f" Calibration: {verdict.outcome}", class_="outcome")),
        *(element("p", sentence) for sentence in sentences),
        class_=f"verdict {verdict.outcome.replace(' ', '-')}",
    )


def _reliability(report: Report) -> Markup:
    """Draw accuracy against confidence, before and after; of two classes, P(positive) and its frequency."""
    if report.n_classes == 2:
        chart = display.ClassReliabilityDisplay.from_comparison(report.comparison, report.shown).chart()
        caption = "Bins hold about the same number of rows. Below the dashed diagonal, P is too high."
    else:
        chart = display.ReliabilityDisplay.from_comparison(report.comparison, report.shown).chart()
        caption = "Below the dashed line, confidence is too high. Bars: the share of the rows in each bin."
    return figure("reliability", chart, f"{caption} Bands: 95% intervals.")


def _tiles(report: Report) -> list[Markup]:
    """Return what the finding is about, the log loss and the ECE: before, after, and the interval."""
    comparison, verdict = report.comparison, report.comparison.verdict
    results = [comparison.results[name] for name in report.shown]
    level = f"{100 * verdict.confidence:g}% interval"
    gain, of_ece = verdict.nll_gain, verdict.ece_gain.interval(verdict.confidence)
    ece = [one.scores["ece"] for one in results]
    calibration_error = _interval(ece[-1], "{:.2%}".format, level, bound=True)
    log_loss = f"Lower by {gain.value:.4f}; {_interval(gain, '{:.4f}'.format, level)}"
    rise = Estimate(-gain.value, -gain.high, -gain.low)
    interval = _interval(rise, _signed, level)
    if gain.value < 0:
        log_loss = f"Change: {_signed(rise.value)}; {interval}"
    if len(results) == 1:
        best = f"Best candidate, {verdict.tried}: {_signed(rise.value)}; {interval}"
        log_loss = "No method was tried." if verdict.tried is None else best
    elif of_ece.low <= 0 <= of_ece.high:
        calibration_error += "; no change that these rows can show"
    return [
        _average(report),
        _tile("Log loss", [f"{one.scores['nll'].value:.4f}" for one in results], log_loss),
        _tile("ECE", [f"{one.value:.2%}" for one in ece], calibration_error),
    ]


def _average(report: Report) -> Markup:
    """Return the tile of O/E or, of more than two classes, of confidence minus accuracy."""
    verdict = report.comparison.verdict
    findings = [verdict.before.finding, verdict.after.finding][: len(report.shown)]
    last, level = findings[-1], "95% interval"
    if last.of_event:
        *means, observed = rates(*(one.mean for one in findings), last.rate)
        ratios = [one.ratio for one in findings]
        words = f"Mean {_arrow(means)}, observed {observed}; {_interval(ratios[-1], '{:.2f}'.format, level)}"
        return _tile(f"P({last.name}): O/E", [f"{one.value:.2f}" for one in ratios], words)
    *said, accuracy = rates(*(one.confidence for one in findings), last.accuracy)
    words = f"Mean confidence {_arrow(said)}"
    if last.accuracy == findings[0].accuracy:  # else the verdict tells how it changes
        words += f", accuracy {accuracy}"
    gaps = [one.gap for one in findings]

    def points(gap: float) -> str:
        return _signed(100 * gap, 1)

    words = f"{words}; {_interval(gaps[-1], points, level)}"
    return _tile("Confidence minus accuracy", [points(gap.value) for gap in gaps], words, " points")


def _tile(title: str, values: Sequence[str], words: str, unit: str = "") -> Markup:
    *before, last = values
    arrow = [element("span", f"{value} \N{RIGHTWARDS ARROW} ", class_="before") for value in before]
    number = element("p", *arrow, last, element("small", unit) if unit else "", class_="value")
    return element("div", element("h3", title), number, element("p", words), class_="tile")


def _arrow(values: Sequence[str]) -> str:
    return " \N{RIGHTWARDS ARROW} ".join(values)


def _signed(number: float, decimals: int = 4) -> str:
    """Return a number with its sign; one that is shown as 0 has none."""
    shown = f"{number:+z.{decimals}f}".replace("-", MINUS)
    return shown if any(digit in "123456789" for digit in shown) else shown.lstrip("+")


def _interval(one: Estimate, written: Callable[[float], str], level: str = "", *, bound: bool = False) -> str:
    """Return the interval as text; with `bound`, a single bound if the interval ends at the value.

    That happens to calibration errors: noise only adds to them, so their intervals can end at the value or,
    often, begin at 0. A single row has no interval.
    """
    if not np.isfinite([one.low, one.high]).all():
        return "no interval" if level else ""
    value, low, high = (written(number) for number in (one.value, one.low, one.high))
    words = f"{low} to {high}"
    if bound and value in (low, high):
        words = f"at least {low}" if low not in (value, written(0.0)) else f"at most {high}"
    return f"{level}: {words}" if level else words


# ---- methods, and how to use one


def _methods(report: Report) -> Markup:
    """Draw the log loss of each method minus the lowest."""
    comparison = report.comparison
    if comparison.verdict.is_mixed_up:
        return Markup("")
    shown = display.DifferencesDisplay.from_comparison(comparison)
    caption = (
        f"Paired over rows, with {100 * comparison.confidence:g}% intervals: more certain than the scores "
        "themselves."
    )
    drawn = figure("differences", shown.chart(), caption)
    failed = [
        element("p", f"{name} failed: {why}", class_="warning") for name, why in comparison.failures.items()
    ]
    return drawn + joined(failed)


def _snippets(report: Report) -> Markup:
    return snippet_blocks(report.comparison, report.snippets)


def _automation(report: Report) -> Markup:
    """List the confidence above which few predictions are wrong, and the share of the rows above it."""
    comparison = report.comparison
    judged = comparison.judged
    # By folds, each row has another calibrator.
    if comparison.verdict.is_mixed_up or judged is comparison.fitted:
        return Markup("")
    weights = np.ones(len(judged)) if judged.weights is None else judged.weights
    about: dict[str, Any] = {"labels": judged.labels, "weight": weights, "groups": judged.groups}
    promise: dict[str, Any] = {"delta": PROMISE_DELTA, "class_names": comparison.class_names}
    rows = []
    for most in MAX_ERRORS:
        words = []
        for one in (comparison.results[name] for name in report.shown):
            wrong = 1.0 - one.correct
            rule = find_rule(one.confidence, wrong, report.n_classes, **about, **promise, max_error=most)
            why = why_empty(rule, **about) if report.n_classes == 2 and not judged.positions else ""
            words.append(f"no rule: {why}" if why else _rule_in_words(rule))
        rows.append([f"{most:.0%}", *words])
    names = ["without calibration", *(f"with {name}" for name in report.shown[1:])]
    intro = (
        f"Above the confidence in a cell, at most the share in its row is wrong ({1 - PROMISE_DELTA:.0%} "
        "confidence each, if new rows are like these). Choose that share before you look. The command "
        "temperance automate stores the rule in a calibrator file."
    )
    return element("p", intro) + table(["at most wrong", *names], rows, "Predictions that need no person")


def _rule_in_words(rule: Automation) -> str:
    if rule.threshold is None:
        return "too few rows to promise it"
    share = f"{100 * rule.share:.3g}% of the rows"
    above = "any confidence" if rule.threshold == 0 else percent(rule.threshold)
    return f"{above}: {share}. {rule.missed_in_words}"


def _labels(report: Report) -> Markup:
    """Draw the log loss by the number of calibration rows, if it was requested."""
    curve = report.comparison.learning_curve
    if curve is None:
        return Markup("")
    if len(curve.sizes) < 2:
        return element("p", "There are too few rows to fit to subsets of them.")
    candidates = [name for name in report.comparison.verdict.candidates if name in curve.nll]
    shown = display.LearningCurveDisplay.from_curve(curve, candidates or None)
    return element("p", labels_in_words(report.comparison, curve)) + figure("labels", shown.chart())


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
        f"{answer}: from {smaller:,} to {larger:,} rows the log loss of {name} went from {before:.4f} to "
        f"{after:.4f}, a fall of {fell:.4f} \u00b1 {error:.4f}.{left_out}"
    )


def _class_reliability(report: Report) -> Markup:
    """Draw the frequency of single classes against their probability, before and after, the worst first."""
    comparison = report.comparison
    kept = comparison.results[UNCALIBRATED].class_reliability
    if report.n_classes == 2 or comparison.verdict.is_mixed_up or not kept:
        return Markup("")
    after = comparison.results[comparison.recommended].class_reliability
    worst = sorted(kept, key=lambda column: -after[column].error)[:MAX_PANELS]
    which = "" if len(kept) == report.n_classes else f", of the {len(kept)} with the most test rows"
    intro = (
        f"Among rows with a given probability of a class, how many are of that class? Worst first{which}. "
        f"Bins of fewer than {MIN_BIN_ROWS} rows and classes of fewer than {MIN_ROWS} are left out."
    )
    of_class = display.ClassReliabilityDisplay.from_comparison
    shown = (of_class(comparison, report.shown, column=column) for column in worst)
    panels = [figure(f"class-{one.column}", one.chart(), heading=True) for one in shown]
    return element("p", intro) + element("div", *panels, class_="panels")


def _by_group(report: Report) -> Markup:
    """Draw calibration per value of `by`, with the recommended method."""
    comparison = report.comparison
    scores = comparison.results[comparison.recommended].scores
    if comparison.verdict.is_mixed_up or scores.by_group is None:
        return Markup("")
    head, rows = scores.by_group.table()
    listed = table(head, rows[:MAX_DRAWN_VALUES], f"Calibration by group; {scores.by_group.about}")
    return figure("gaps", display.GapsDisplay.from_evaluation(scores).chart()) + listed


# ---- diagnostics


def _scores(report: Report) -> Markup:
    """List all scores of all methods, the lowest log loss first, with intervals."""
    comparison = report.comparison
    columns = sorted(  # losses and errors first, which a method is chosen by
        (name for name, metric in METRICS.items() if metric.in_report),
        key=lambda name: METRICS[name].best != "lowest",
    )
    head = ["method", *(METRICS[key].heading() for key in columns)]
    head += ["predictions changed %", *comparison.outside_metrics, "parameters", "fit, s"]
    rows = [_row(comparison, comparison.results[name], columns) for name in numbers(comparison)]
    level = f"{100 * comparison.confidence:g}% interval"
    about = f"{comparison.heading} Below a value: its {level}."
    return element("p", about, class_="about") + table(head, rows, "All scores")


def _row(comparison: Comparison, result: MethodResult, columns: list[str]) -> list[str]:
    cells: list[str] = [result.method]
    for key in columns:
        metric, score = METRICS[key], result.scores[key]
        interval = _interval(score, metric.shown, bound=metric.interval == "bootstrap")
        cells.append(joined([metric.shown(score.value), element("small", interval) if interval else ""]))
    cells.append(f"{100 * result.changed_share:.2f}")
    cells += [f"{result.scores[name].value:.4g}" for name in comparison.outside_metrics]
    n = result.n_parameters  # with a prior it need not be whole
    return [*cells, f"{n:,.0f}" if n >= 100 or n == int(n) else f"{n:.1f}", f"{result.seconds:.2f}"]


def _test(report: Report) -> Markup:
    """Say what the average and spread test found, before and with the recommended method."""
    verdict = report.comparison.verdict
    findings = {"before": verdict.before.finding, "after": verdict.after.finding}
    intro = (
        "The average and spread test, which the verdict uses, asks whether each class is as frequent as "
        "predicted, and whether predictions are too extreme or not extreme enough. With many rows, even an "
        "error too small to matter is significant."
    )
    rows = [
        [name, *("-" if p != p else p_in_words(p) for p in (found.p_value, found.level_p, found.spread_p))]
        for name, found in list(findings.items())[: len(report.shown)]
    ]
    return element("p", intro) + table(["", "both", "average", "spread"], rows, "Average and spread test")


def _temperature(report: Report) -> Markup:
    """Draw T(z) against the log entropy, and the best temperature of each bin of rows."""
    tried = report.comparison.verdict.tried
    shown = display.TemperatureDisplay.from_comparison(report.comparison, tried and [tried])
    return figure("temperature", shown.chart())


def _provenance(report: Report) -> Markup:
    """List the files, and everything needed to make the same report again."""
    comparison = report.comparison
    files = [[source.name, source.role, f"{source.rows:,}", source.sha256] for source in report.sources]
    listed = table(["file", "used as", "rows", "SHA-256"], files, "Files") if files else Markup("")
    made = [["temperance", temperance.__version__], ["Python", platform.python_version()]]
    made += [[name, version(name)] for name in ("numpy", "scipy", "scikit-learn")]
    made += [[name.replace("_", " "), str(value)] for name, value in comparison.settings.items()]
    if comparison.learning_curve is not None:
        made.append(["test rows of the learning curve", f"{comparison.learning_curve.n_judged:,}"])
    return listed + table(["what", "value"], made, "Versions, seeds and settings")


_MEANINGS = {
    **{metric.label: metric.help for metric in METRICS.values() if metric.in_report},
    "confidence": "the probability of the predicted class",
    "prediction": "the class with the highest probability",
    "temperature T": "the number by which logits are divided: above 1 if predictions are too extreme",
    "log entropy": "uncertainty of a row: 0 if all classes are equally likely, very low if one is certain",
    UNCALIBRATED: "the classifier as it is",
}
_OF_TWO = {
    "O/E": "observed over expected: the frequency of a class over its mean probability",
    "gain that matters": "a log loss lower by one standard error; of other methods, by 1% and two",
}
_OF_MORE = {
    "gain that matters": "a log loss lower by at least 1% and two standard errors; 2% if predictions change"
}

_VARIANTS = {
    "pts-ece": "fitted to the ECE, not to the log loss",
    "bayes-bias": "and with one bias per class, which can change predictions",
}


def _glossary(report: Report) -> Markup:
    """List the terms on the page, and its methods by their keys; one class can have several methods."""
    words = _MEANINGS | (_OF_TWO if report.n_classes == 2 else _OF_MORE)
    for key in report.comparison.results:
        if key in CALIBRATORS:
            summary = CALIBRATORS[key].summary
            words[key] = f"{summary}, {_VARIANTS[key]}" if key in _VARIANTS else summary
    return element("dl", *(element("dt", k) + element("dd", v) for k, v in words.items()))


SECTIONS: dict[str, tuple[str, Callable[[Report], Markup]]] = {
    "verdict": ("Verdict", _verdict),
    "methods": ("Methods", _methods),
    "production": ("Use it", _snippets),
    "labels": ("Would more labels help?", _labels),
    "class-reliability": ("Reliability by class", _class_reliability),
    "by-group": ("Calibration by group", _by_group),
}
"""The sections by their anchor: title and content."""

DIAGNOSTICS: dict[str, tuple[str, Callable[[Report], Markup]]] = {
    "automation": ("Predictions that need no person", _automation),
    "scores": ("All scores", _scores),
    "tests": ("Test of calibration", _test),
    "temperature": ("Temperature by entropy", _temperature),
    "provenance": ("How this was made", _provenance),
    "glossary": ("Glossary", _glossary),
}
"""The sections that are folded at first."""


# ---- the page


def write_report(
    comparison: Comparison,
    path: str | Path,
    *,
    overwrite: bool = False,
    title: str = TITLE,
    sources: Sequence[Source] = (),
    snippets: Snippets | None = None,
) -> None:
    """Write the comparison as one HTML file, with the options of `render_report`."""
    check_writable(path, overwrite=overwrite)
    page = render_report(comparison, title=title, sources=sources, snippets=snippets)
    write_atomically(path, page.encode(), overwrite=overwrite)


def render_report(
    comparison: Comparison,
    *,
    title: str = TITLE,
    sources: Sequence[Source] = (),
    snippets: Snippets | None = None,
) -> str:
    """Return the page as text.

    Parameters
    ----------
    comparison : Comparison
        The comparison to report. Without a learning curve, the page does not tell whether more labels would
        help.
    title : str
        Heading of the page, such as the model and the data.
    sources : sequence of Source
        The files that the comparison read.
    snippets : Snippets, optional
        Commands that fit and use the recommended method with these files; by default, lines of Python.
    """
    report = Report(comparison, sources, snippets or Snippets())
    folded = element("summary", "Diagnostics"), *_sections(report, DIAGNOSTICS, "h3")
    n_fitted, n_judged = len(comparison.fitted), len(comparison.judged)
    rows = f"{n_fitted:,} rows to fit, {n_judged:,} to evaluate"
    if comparison.judged is comparison.fitted:
        rows = f"{n_fitted:,} rows, {comparison.evaluated_on}"
    day, _, _ = utc_now().partition("T")
    made = element("time", day), f", temperance {temperance.__version__}."
    about = element("p", f"{rows}, {report.n_classes:,} classes. ", *made, class_="about")
    return html_document(
        title,
        element("header", element("h1", title), about),
        element("main", *_sections(report, SECTIONS, "h2"), element("details", *folded, id="diagnostics")),
        script="page.js",
    )


def _sections(
    report: Report, sections: dict[str, tuple[str, Callable[[Report], Markup]]], heading: str
) -> Iterator[Markup]:
    """Return the sections with content, under headings of a level."""
    for anchor, (title, content_of) in sections.items():
        content = content_of(report)
        if content:
            name = element(heading, title, id=f"{anchor}-title")
            yield element("section", name, content, id=anchor, aria_labelledby=f"{anchor}-title")
