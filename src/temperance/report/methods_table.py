"""The table of methods: a row for each with its scores and their intervals."""

from __future__ import annotations

from math import isnan
from statistics import median

from markupsafe import Markup

from temperance.calibrators import UNCALIBRATED
from temperance.comparison import Comparison, MethodResult
from temperance.metrics import METRICS
from temperance.metrics.intervals import Estimate
from temperance.report.markup import element, joined

_MAIN = ("nll", "ece", "accuracy")  # a narrow screen shows these columns until the reader wants all
_COLUMNS = sorted(  # losses and errors first, which a method is chosen by
    (name for name, metric in METRICS.items() if metric.tables != "evaluation"),
    key=lambda name: METRICS[name].best != "lowest",
)
_SMALL_PERCENTAGE = 0.1  # two decimals show less than two digits of it


def methods_table(comparison: Comparison) -> Markup:
    """Return the table and its description; the page's script sorts it by any column."""
    whole = element(
        "table",
        element("caption", "Methods and their scores", class_="unseen"),
        element("thead", element("tr", *_head(comparison))),
        element("tbody", *(_row(comparison, result) for result in comparison.results.values())),
        class_="methods",
    )
    scrolled = element("div", whole, class_="scroll", tabindex="0", role="region", aria_label="Methods")
    changes = [element("p", sentence) for sentence in comparison.decision_changes]
    failed = [
        element("p", f"{name} failed: {why}", class_="warning") for name, why in comparison.failures.items()
    ]
    return element("p", _about(comparison), class_="about") + scrolled + joined(changes) + joined(failed)


def _about(comparison: Comparison) -> str:
    first = comparison.results[UNCALIBRATED].scores
    return (
        f"{first.n_rows} rows, {first.n_classes} classes, {first.bins} bins, scores from "
        f"{comparison.evaluated_on}. Below a value: its {100 * first.confidence:g} % interval."
    )


def _head(comparison: Comparison) -> list[Markup]:
    method = element("th", element("span", "method"), scope="col", data_sort="words")
    heads = [("para\N{SOFT HYPHEN}meters", False)]
    heads += [(METRICS[key].heading(), key in _MAIN) for key in _COLUMNS]
    heads += [("decisions changed %", False)] * bool(comparison.decision_changes)
    heads += [(metric, False) for metric in comparison.outside_metrics] + [("fit, s", False)]
    return [method, *(_heading(label, main) for label, main in heads)]


def _heading(label: str, main: bool) -> Markup:
    return element("th", element("span", label), scope="col", data_sort="number", class_=_class(main))


def _class(main: bool) -> str | None:
    return None if main else "extra"


def _row(comparison: Comparison, result: MethodResult) -> Markup:
    chosen = result.method == comparison.recommended
    mark = element("span", "recommended", class_="tag") if chosen else ""
    cells = [element("th", result.method, mark, scope="row", data_value=result.method)]
    cells.append(_number(result.n_parameters, _count(result.n_parameters)))
    for key in _COLUMNS:
        digits = _digits(comparison, key)
        cells.append(_score(result.scores[key], METRICS[key].factor, digits, key in _MAIN))
    if comparison.decision_changes:
        cells.append(_number(result.changed_share, f"{100 * result.changed_share:.2f}"))
    for metric in comparison.outside_metrics:
        value = result.scores[metric].value
        cells.append(_number(value, f"{value:.4g}"))
    cells.append(_number(result.seconds, f"{result.seconds:.2f}"))
    return element("tr", *cells, class_="chosen" if chosen else None, data_row=result.method)


def _number(value: float, shown: str) -> Markup:
    return element("td", shown, data_value=str(value), class_=_class(False))


def _count(value: float) -> str:
    """Write a number of parameters: with a prior it need not be whole."""
    return f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.1f}"


def _digits(comparison: Comparison, key: str) -> int:
    """Return how many decimals a column has: more for small percentages, as of each of many classes."""
    metric = METRICS[key]
    middle = median(result.scores[key].value for result in comparison.results.values())
    return 4 if metric.unit and metric.factor * middle < _SMALL_PERCENTAGE else metric.decimals


def _score(estimate: Estimate, scale: float, digits: int, main: bool) -> Markup:
    value, low, high = (f"{scale * x:.{digits}f}" for x in (estimate.value, estimate.low, estimate.high))
    interval = [] if isnan(estimate.low) else [element("small", f"{low} .. {high}")]
    return element("td", value, *interval, data_value=str(estimate.value), class_=_class(main))
