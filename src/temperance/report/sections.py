"""The sections of the page, in order: each is a function from results to HTML."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from markupsafe import Markup

from temperance.calibrators import method_style
from temperance.comparison import UNCALIBRATED, Comparison, LearningCurve
from temperance.comparison.method_result import MAX_CLASSES, MIN_ROWS
from temperance.display.reliability import FEWEST_IN_BIN
from temperance.report import figures
from temperance.report.calibration_tests import calibration_tests
from temperance.report.displays import ReportDisplays
from temperance.report.glossary import glossary
from temperance.report.markup import element, joined
from temperance.report.methods_table import methods_table
from temperance.report.provenance import Source, provenance
from temperance.report.shipping import Shipping, shipping_section
from temperance.report.verdict_box import key_numbers, verdict_box
from temperance.report.words import cautions, labels_in_words

Sections = dict[str, tuple[str, Markup]]


def sections(
    comparison: Comparison,
    displays: ReportDisplays,
    curve: LearningCurve | None,
    sources: Sequence[Source],
    shipping: Shipping,
) -> Sections:
    """Return title and content of each section by its anchor, without empty sections."""
    parts = {
        "verdict": ("Verdict", _verdict(comparison)),
        "ship": ("What to ship", shipping_section(comparison, shipping)),
        "reliability": ("Reliability before and after", _reliability(comparison, displays)),
        "methods": ("Methods", methods_table(comparison) + figures.differences_figure(displays.differences)),
        "tests": ("Tests of calibration", calibration_tests(comparison)),
        "class-reliability": _class_reliability(displays),
        "confidence": ("How confident it is", _confidence(comparison, displays)),
        "temperature": ("Temperature by entropy", _temperature(comparison, displays)),
        "classes": ("Temperature by class", _classes(displays)),
        "map": (
            "Map of probabilities",
            Markup("") if displays.map is None else figures.map_figure(displays.map),
        ),
        "labels": ("Would more labels help?", _labels(comparison, curve, displays)),
        "parameters": ("What was learnt", _parameters(comparison)),
        "provenance": ("How this was made", provenance(comparison, curve, sources)),
        "glossary": ("Glossary", glossary()),
    }
    return {key: part for key, part in parts.items() if part[1]}


def _verdict(comparison: Comparison) -> Markup:
    advice = (element("li", sentence) for sentence in cautions(comparison))
    reason = element("p", comparison.reason)
    return verdict_box(comparison.verdict) + key_numbers(comparison.verdict) + reason + element("ul", *advice)


def _reliability(comparison: Comparison, displays: ReportDisplays) -> Markup:
    intro = (
        "Rows are binned by their confidence. In a bin on the dashed line, confidence equals accuracy; below "
        "the line, confidence is too high. Bands are 95 % intervals; the bars below show the share of the "
        "rows in each bin."
    )
    return element("p", intro) + _panels(
        comparison, partial(figures.reliability_figure, displays.reliability)
    )


def _confidence(comparison: Comparison, displays: ReportDisplays) -> Markup:
    return _panels(comparison, partial(figures.confidence_figure, displays.confidence, displays.focus))


def _panels(comparison: Comparison, figure: Callable[[str, str], Markup]) -> Markup:
    panels = (figure(name, _panel_title(comparison, name)) for name in comparison.results)
    return element("div", *panels, class_="panels")


def _panel_title(comparison: Comparison, name: str) -> str:
    if name == UNCALIBRATED:
        return "Before: uncalibrated"
    recommended = " (recommended)" if name == comparison.recommended else ""
    return f"After: {method_style(name).label}{recommended}"


def _class_reliability(displays: ReportDisplays) -> tuple[str, Markup]:
    """Return the diagrams of single classes; of two classes, that of the positive one."""
    shown, title = displays.class_reliability, "Reliability by class"
    if not shown:
        few = f"No class has at least {MIN_ROWS} test rows: too few for a diagram."
        return title, element("p", few)
    intro = "Among rows with a given probability of a class, how many are of that class?"
    if displays.n_classes == 2:
        title = f"Reliability of class {shown[0].name}"
    elif len(shown) < displays.n_classes:
        why = (
            "have the most test rows" if len(shown) == MAX_CLASSES else f"have at least {MIN_ROWS} test rows"
        )
        intro += f" Of {displays.n_classes} classes, these {len(shown)} {why}."
    intro += f" Bins of fewer than {FEWEST_IN_BIN} rows are left out."
    panels = element("div", *map(figures.class_reliability_figure, shown), class_="panels many")
    return title, element("p", intro) + panels


def _temperature(comparison: Comparison, displays: ReportDisplays) -> Markup:
    note = Markup("")
    if comparison.judged is comparison.fitted:
        note = element("p", "There is no test set: these are the rows that the methods were fitted to.")
    return note + figures.temperature_figure(displays.temperature, displays.focus)


def _classes(displays: ReportDisplays) -> Markup:
    if not displays.classes.identified.any():
        return element("p", "No class has enough rows to find its best temperature.")
    return figures.class_figure(displays.classes, displays.focus)


def _labels(comparison: Comparison, curve: LearningCurve | None, displays: ReportDisplays) -> Markup:
    if curve is None:
        return Markup("")
    if displays.labels is None:
        return element("p", "There are too few rows to fit to subsets of them.")
    return element("p", labels_in_words(comparison, curve)) + figures.learning_figure(
        displays.labels, displays.focus
    )


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
