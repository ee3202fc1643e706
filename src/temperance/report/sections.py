"""The sections of the page, in their order: each a function from what was measured to HTML."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

import temperance
from temperance.calibrators import CALIBRATORS
from temperance.comparison import UNCALIBRATED, Comparison, LearningCurve
from temperance.display import (
    ClassTemperatureDisplay,
    ConfidenceDisplay,
    DifferencesDisplay,
    LearningCurveDisplay,
    ReliabilityDisplay,
    TemperatureDisplay,
)
from temperance.metrics import Estimate
from temperance.report import figures
from temperance.report.markup import element, table, text
from temperance.report.temperature_figures import class_figure, temperature_figure
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
    """A file that the comparison was made from."""

    name: str
    role: str
    rows: int
    sha256: str


def sections(
    comparison: Comparison, curve: LearningCurve, sources: Sequence[Source]
) -> dict[str, tuple[str, str]]:
    """Return title and content of each section, by its anchor."""
    return {
        "verdict": ("Verdict", _verdict(comparison)),
        "methods": ("Methods", _methods(comparison)),
        "reliability": ("Does it mean what it says?", _reliability(comparison)),
        "temperature": ("Temperature by entropy", _temperature(comparison)),
        "classes": ("Temperature by class", _classes(comparison)),
        "confidence": ("How sure it is", _confidence(comparison)),
        "labels": ("Would more labels help?", _labels(comparison, curve)),
        "parameters": ("What was learnt", _parameters(comparison)),
        "provenance": ("How this was made", _provenance(comparison, curve, sources)),
        "glossary": ("Words", _glossary()),
    }


def _verdict(comparison: Comparison) -> str:
    advice = "".join(element("li", text(sentence)) for sentence in shipping_advice(comparison))
    return (
        element("p", text(comparison.verdict), class_="verdict")
        + element("p", text(comparison.reason))
        + element("ul", advice)
        + _ship(comparison)
    )


def _ship(comparison: Comparison) -> str:
    """Return the lines that ship the recommended method."""
    if comparison.recommended == UNCALIBRATED:
        return ""
    lines = (
        f"temperance fit VAL -m {comparison.recommended} -o cal.json     # once, on your validation file\n"
        'probs = temperance.load("cal.json").predict_proba(logits)    # in the service'
    )
    return element("p", "To ship it:") + element("pre", text(lines), tabindex="0")


def _methods(comparison: Comparison) -> str:
    return methods_table(comparison) + figures.differences_figure(
        DifferencesDisplay.from_comparison(comparison)
    )


def methods_table(comparison: Comparison) -> str:
    """Return the table of methods; the page's script sorts it by any column."""
    first = comparison.results[UNCALIBRATED].scores
    heads = [("method", "words"), ("para\u00admeters", "number")]
    heads += [(label, "number") for _, label, _ in _COLUMNS] + [("fit, s", "number")]
    head = "".join(
        element("th", element("span", text(label)), scope="col", data_sort=kind) for label, kind in heads
    )
    body = []
    for name, result in comparison.results.items():
        mark = element("span", "recommended", class_="tag") if name == comparison.recommended else ""
        cells = [element("th", text(name), mark, scope="row", data_value=name)]
        cells.append(element("td", f"{result.n_parameters:.3g}", data_value=str(result.n_parameters)))
        cells += [_score(result.scores[key], scale) for key, _, scale in _COLUMNS]
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
        element("thead", element("tr", head)),
        element("tbody", *body),
        class_="methods",
    )
    scrolled = element("div", whole, class_="scroll", tabindex="0", role="region", aria_label="Methods")
    return element("p", text(caption), class_="about") + scrolled


def _score(estimate: Estimate, scale: float) -> str:
    value, low, high = (scale * x for x in (estimate.value, estimate.low, estimate.high))
    digits = 4 if scale == 1 else 2
    interval = element("small", f"{low:.{digits}f} .. {high:.{digits}f}")
    return element("td", f"{value:.{digits}f}", interval, data_value=str(estimate.value))


def _reliability(comparison: Comparison) -> str:
    display = ReliabilityDisplay.from_comparison(comparison, [*comparison.results])
    panels = [
        figures.reliability_figure(display, name, _panel_title(comparison, name))
        for name in comparison.results
    ]
    intro = (
        "Rows are binned by how sure the classifier says it is; a bin on the dashed line is right as often "
        "as it says. Below the line it claims too much. Bands are 95 % intervals; the bars at the bottom "
        "show how many rows a bin has."
    )
    return element("p", text(intro)) + element("div", *panels, class_="panels")


def _panel_title(comparison: Comparison, name: str) -> str:
    if name == UNCALIBRATED:
        return "Before: uncalibrated"
    return f"After: {name}" + (" (recommended)" if name == comparison.recommended else "")


def _confidence(comparison: Comparison) -> str:
    display = ConfidenceDisplay.from_comparison(comparison, [*comparison.results])
    panels = [
        figures.confidence_figure(display, name, _panel_title(comparison, name))
        for name in comparison.results
    ]
    return element("div", *panels, class_="panels")


def _temperature(comparison: Comparison) -> str:
    note = ""
    if comparison.judged is comparison.fitted:
        note = element("p", text("There is no test set: these are the rows that the methods were fitted to."))
    return note + temperature_figure(TemperatureDisplay.from_comparison(comparison))


def _classes(comparison: Comparison) -> str:
    display = ClassTemperatureDisplay.from_comparison(comparison)
    if len(display.classes) == 0:
        return element("p", text("No class has enough rows to find its best temperature."))
    return class_figure(display)


def _labels(comparison: Comparison, curve: LearningCurve) -> str:
    if len(curve.sizes) < 2:
        return element("p", text("There are too few rows to fit to parts of them."))
    return element("p", text(labels_in_words(comparison, curve))) + figures.learning_figure(
        LearningCurveDisplay.from_curve(curve)
    )


def _parameters(comparison: Comparison) -> str:
    parts = []
    for name, result in comparison.results.items():
        if result.calibrator is None:
            continue
        warnings = "".join(element("p", text(warning), class_="warning") for warning in result.warnings)
        content = element("pre", text(result.calibrator.summary()), tabindex="0")
        title = element("summary", text(f"{name}: {type(result.calibrator).__name__}"))
        parts.append(element("details", title, warnings, content, open=name == comparison.recommended))
    return "".join(parts)


def _provenance(comparison: Comparison, curve: LearningCurve, sources: Sequence[Source]) -> str:
    files = [[source.name, source.role, str(source.rows), source.sha256] for source in sources]
    listed = table(["file", "used as", "rows", "SHA-256"], files, "Files") if files else ""
    made = [["temperance", temperance.__version__], ["Python", platform.python_version()]]
    made += [[name, version(name)] for name in ("numpy", "scipy", "scikit-learn")]
    made += [[name.replace("_", " "), str(value)] for name, value in comparison.settings.items()]
    made += [
        ["rows fitted", str(len(comparison.fitted))],
        ["rows judged", str(len(comparison.judged))],
        ["rows judged in the curve of labels", str(curve.n_judged)],
        ["methods", ", ".join(comparison.results)],
    ]
    return listed + table(["what", "value"], made, "Versions, seeds and settings")


def _glossary() -> str:
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
        "method is preferred",
        **{key: method.summary for key, method in CALIBRATORS.items() if method.in_comparison},
        UNCALIBRATED: "the classifier as it is",
    }
    return element("dl", *(element("dt", text(k)) + element("dd", text(v)) for k, v in words.items()))
