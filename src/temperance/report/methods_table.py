"""The table of methods: a row for each with its scores and their intervals."""

from __future__ import annotations

from math import isnan
from statistics import median

from markupsafe import Markup

from temperance.calibrators import UNCALIBRATED
from temperance.comparison import Comparison, MethodResult
from temperance.metrics import METRICS
from temperance.report.markup import element, joined

_MAIN = ("nll", "ece", "accuracy")  # a narrow screen shows these columns until the reader wants all
_COLUMNS = sorted(  # losses and errors first, which a method is chosen by
    (name for name, metric in METRICS.items() if metric.tables != "evaluation"),
    key=lambda name: METRICS[name].best != "lowest",
)


def methods_table(comparison: Comparison) -> Markup:
    """Return the table and its description; the page's script sorts it by any column."""
    first = comparison.results[UNCALIBRATED].scores
    about = (
        f"{first.n_rows} rows, {first.n_classes} classes, {first.bins} bins, scores from "
        f"{comparison.evaluated_on}. Below a value: its {100 * first.confidence:g} % interval."
    )
    heads = [("para\N{SOFT HYPHEN}meters", False)]
    heads += [(METRICS[key].heading(), key in _MAIN) for key in _COLUMNS]
    heads += [("predictions changed %", False)] * bool(comparison.decision_changes)
    heads += [(metric, False) for metric in comparison.outside_metrics] + [("fit, s", False)]
    headings = [element("th", element("span", "method"), scope="col", data_sort="words")]
    for label, main in heads:
        class_ = None if main else "extra"
        headings.append(element("th", element("span", label), scope="col", data_sort="number", class_=class_))
    whole = element(
        "table",
        element("caption", "Methods and their scores", class_="unseen"),
        element("thead", element("tr", *headings)),
        element("tbody", *(_row(comparison, result) for result in comparison.results.values())),
        class_="methods",
    )
    scrolled = element("div", whole, class_="scroll", tabindex="0", role="region", aria_label="Methods")
    changes = [element("p", sentence) for sentence in comparison.decision_changes]
    failed = [
        element("p", f"{name} failed: {why}", class_="warning") for name, why in comparison.failures.items()
    ]
    return element("p", about, class_="about") + scrolled + joined(changes) + joined(failed)


def _row(comparison: Comparison, result: MethodResult) -> Markup:
    chosen, n = result.method == comparison.recommended, result.n_parameters
    mark = element("span", "recommended", class_="tag") if chosen else ""
    cells = [element("th", result.method, mark, scope="row", data_value=result.method)]
    # With a prior the number of parameters need not be whole.
    cells.append(_cell(n, f"{n:.0f}" if n >= 100 or n == int(n) else f"{n:.1f}"))
    for key in _COLUMNS:
        metric, score = METRICS[key], result.scores[key]
        middle = median(one.scores[key].value for one in comparison.results.values())
        # Small percentages, as of each of many classes, need more decimals: two show less than two digits.
        digits = 4 if metric.unit and metric.factor * middle < 0.1 else metric.decimals
        value, low, high = (f"{metric.factor * x:.{digits}f}" for x in (score.value, score.low, score.high))
        interval = [] if isnan(score.low) else [element("small", f"{low} .. {high}")]
        cells.append(_cell(score.value, value, *interval, main=key in _MAIN))
    if comparison.decision_changes:
        cells.append(_cell(result.changed_share, f"{100 * result.changed_share:.2f}"))
    own = (result.scores[name].value for name in comparison.outside_metrics)
    cells += [_cell(value, f"{value:.4g}") for value in own]
    cells.append(_cell(result.seconds, f"{result.seconds:.2f}"))
    return element("tr", *cells, class_="chosen" if chosen else None, data_row=result.method)


def _cell(value: float, *shown: str, main: bool = False) -> Markup:
    return element("td", *shown, data_value=str(value), class_=None if main else "extra")
