"""The sections of the page, in their order: each a function from what was measured to HTML."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version

from markupsafe import Markup

import temperance
from temperance.calibrators import CALIBRATORS, method_style
from temperance.comparison import UNCALIBRATED, Comparison, LearningCurve
from temperance.metrics import Estimate
from temperance.report import figures
from temperance.report.displays import ReportDisplays
from temperance.report.markup import element, joined, table
from temperance.report.words import labels_in_words, shipping_advice

_COLUMNS = (
    ("nll", "NLL", 1),
    ("brier", "Brier", 1),
    ("ece", "ECE %", 100),
    ("smooth_ece", "smooth ECE %", 100),
    ("classwise_ece", "class-wise ECE %", 100),
    ("accuracy", "accuracy %", 100),
)


@dataclass(frozen=True)
class Source:
    """A file that the comparison was made from.

    Attributes
    ----------
    name : str
        Of the file.
    role : str
        What its rows were used for.
    rows : int
        How many rows it has.
    sha256 : str
        Its digest.

    Examples
    --------
    >>> Source("val.npz", "fitted to", 5000, "9f86d081").rows
    5000
    """

    name: str
    role: str
    rows: int
    sha256: str


def sections(
    comparison: Comparison, displays: ReportDisplays, curve: LearningCurve | None, sources: Sequence[Source]
) -> dict[str, tuple[str, Markup]]:
    """Return title and content of each section, by its anchor; that of labels needs a curve."""
    parts = {
        "verdict": ("Verdict", _verdict(comparison)),
        "methods": ("Methods", methods_table(comparison) + figures.differences_figure(displays.differences)),
        "reliability": ("Does it mean what it says?", _reliability(comparison, displays)),
        "temperature": ("Temperature by entropy", _temperature(comparison, displays)),
        "classes": ("Temperature by class", _classes(displays)),
    }
    if displays.map is not None:
        parts["map"] = ("Map of probabilities", figures.map_figure(displays.map))
    parts["confidence"] = (
        "How sure it is",
        _panels(comparison, partial(figures.confidence_figure, displays.confidence)),
    )
    if curve is not None:
        parts["labels"] = ("Would more labels help?", _labels(comparison, curve, displays))
    return parts | {
        "parameters": ("What was learnt", _parameters(comparison)),
        "provenance": ("How this was made", _provenance(comparison, curve, sources)),
        "glossary": ("Words", _glossary()),
    }


def _verdict(comparison: Comparison) -> Markup:
    advice = (element("li", sentence) for sentence in shipping_advice(comparison))
    verdict = element("p", comparison.verdict, class_="verdict") + element("p", comparison.reason)
    return verdict + element("ul", *advice) + _ship(comparison)


def _ship(comparison: Comparison) -> Markup:
    """Return the lines that ship the recommended method."""
    if comparison.recommended not in CALIBRATORS:  # none, or a method from outside
        return Markup("")
    lines = (
        f"temperance fit VAL -m {comparison.recommended} -o cal.json     # once, on your validation file\n"
        'probs = temperance.load("cal.json").predict_proba(logits)    # in the service'
    )
    return element("p", "To ship it:") + element("pre", lines, tabindex="0")


def methods_table(comparison: Comparison) -> Markup:
    """Return the table of methods; the page's script sorts it by any column."""
    first = comparison.results[UNCALIBRATED].scores
    heads = [("method", "words"), ("para\u00admeters", "number")]
    heads += [(label, "number") for _, label, _ in _COLUMNS]
    show_changes = bool(comparison.decision_changes)
    heads += [("decisions changed %", "number")] * show_changes + [("fit, s", "number")]
    head = [element("th", element("span", label), scope="col", data_sort=kind) for label, kind in heads]
    body = []
    for name, result in comparison.results.items():
        mark = element("span", "recommended", class_="tag") if name == comparison.recommended else ""
        cells = [element("th", name, mark, scope="row", data_value=name)]
        cells.append(element("td", f"{result.n_parameters:.3g}", data_value=str(result.n_parameters)))
        cells += [_score(result.scores[key], scale) for key, _, scale in _COLUMNS]
        if show_changes:
            share = result.changed_share
            cells.append(element("td", f"{100 * share:.2f}", data_value=str(share)))
        cells.append(element("td", f"{result.seconds:.2f}", data_value=str(result.seconds)))
        chosen = "chosen" if name == comparison.recommended else None
        body.append(element("tr", *cells, class_=chosen, data_row=name))
    caption = (
        f"{first.n_rows} rows, {first.n_classes} classes, judged on {comparison.judged_on}, {first.bins} "
        f"bins. Below each value its {100 * first.confidence:g} % interval."
    )
    whole = element(
        "table",
        element("caption", "Methods and their scores", class_="unseen"),
        element("thead", element("tr", *head)),
        element("tbody", *body),
        class_="methods",
    )
    scrolled = element("div", whole, class_="scroll", tabindex="0", role="region", aria_label="Methods")
    failed = [
        element("p", f"{name} failed: {why}", class_="warning") for name, why in comparison.failures.items()
    ]
    changes = [element("p", sentence) for sentence in comparison.decision_changes]
    return element("p", caption, class_="about") + scrolled + joined(changes) + joined(failed)


def _score(estimate: Estimate, scale: float) -> Markup:
    value, low, high = (scale * x for x in (estimate.value, estimate.low, estimate.high))
    digits = 4 if scale == 1 else 2
    interval = element("small", f"{low:.{digits}f} .. {high:.{digits}f}")
    return element("td", f"{value:.{digits}f}", interval, data_value=str(estimate.value))


def _reliability(comparison: Comparison, displays: ReportDisplays) -> Markup:
    intro = (
        "Rows are binned by how sure the classifier says it is; a bin on the dashed line is right as often "
        "as it says. Below the line it claims too much. Bands are 95 % intervals; the bars below show what "
        "share of the rows a bin has."
    )
    return element("p", intro) + _panels(
        comparison, partial(figures.reliability_figure, displays.reliability)
    )


def _panels(comparison: Comparison, figure: Callable[[str, str], Markup]) -> Markup:
    panels = (figure(name, _panel_title(comparison, name)) for name in comparison.results)
    return element("div", *panels, class_="panels")


def _panel_title(comparison: Comparison, name: str) -> str:
    if name == UNCALIBRATED:
        return "Before: uncalibrated"
    recommended = " (recommended)" if name == comparison.recommended else ""
    return f"After: {method_style(name).label}{recommended}"


def _temperature(comparison: Comparison, displays: ReportDisplays) -> Markup:
    note = Markup("")
    if comparison.judged is comparison.fitted:
        note = element("p", "There is no test set: these are the rows that the methods were fitted to.")
    return note + figures.temperature_figure(displays.temperature)


def _classes(displays: ReportDisplays) -> Markup:
    if len(displays.classes.classes) == 0:
        return element("p", "No class has enough rows to find its best temperature.")
    return figures.class_figure(displays.classes)


def _labels(comparison: Comparison, curve: LearningCurve, displays: ReportDisplays) -> Markup:
    if displays.labels is None:
        return element("p", "There are too few rows to fit to parts of them.")
    return element("p", labels_in_words(comparison, curve)) + figures.learning_figure(displays.labels)


def _parameters(comparison: Comparison) -> Markup:
    parts = []
    for name, result in comparison.results.items():
        if result.calibrator is None:
            continue
        warnings = [element("p", warning, class_="warning") for warning in result.warnings]
        # A method from outside need not have a summary.
        words = getattr(result.calibrator, "summary", result.calibrator.__repr__)()
        content = element("pre", words, tabindex="0")
        title = element("summary", f"{name}: {type(result.calibrator).__name__}")
        parts.append(element("details", title, *warnings, content, open=name == comparison.recommended))
    return joined(parts)


def _provenance(comparison: Comparison, curve: LearningCurve | None, sources: Sequence[Source]) -> Markup:
    files = [[source.name, source.role, str(source.rows), source.sha256] for source in sources]
    listed = table(["file", "used as", "rows", "SHA-256"], files, "Files") if files else Markup("")
    made = [["temperance", temperance.__version__], ["Python", platform.python_version()]]
    made += [[name, version(name)] for name in ("numpy", "scipy", "scikit-learn")]
    made += [[name.replace("_", " "), str(value)] for name, value in comparison.settings.items()]
    made += [
        ["rows fitted", str(len(comparison.fitted))],
        ["rows judged", str(len(comparison.judged))],
        ["methods", ", ".join(comparison.results)],
    ]
    if curve is not None:
        made.append(["rows judged in the curve of labels", str(curve.n_judged)])
    return listed + table(["what", "value"], made, "Versions, seeds and settings")


def _glossary() -> Markup:
    words = {
        "NLL": "mean negative log of the probability given to what happened: a proper score, lowest for true "
        "probabilities, and the judge here",
        "Brier": "mean squared distance from the probabilities to what happened, summed over classes",
        "ECE": "expected calibration error: how far confidence is from accuracy, in bins, on average",
        "smooth ECE": "the same without bins",
        "class-wise ECE": "the same for the probability of every class, not only the largest",
        "temperature T": "what the logits are divided by: above 1 the classifier claims too much",
        "log entropy": "how unsure a row is: 0 if all classes are alike, far below 0 if one is certain",
        "one standard error": "of the mean difference of two methods over the same rows; within it a simpler "
        "method is preferred, and one that keeps every decision",
        "decision": "the class with the highest probability; a method changes it where another class becomes "
        "the most probable",
        **{key: method.summary for key, method in CALIBRATORS.items() if method.in_comparison},
        UNCALIBRATED: "the classifier as it is",
    }
    return element("dl", *(element("dt", k) + element("dd", v) for k, v in words.items()))
