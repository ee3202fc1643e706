"""Displays as figures of the page: the chart, its legend and caption, and its numbers as a table."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np
from markupsafe import Markup

from temperance import display
from temperance.display.chart import Chart, Line, Mark, Rule
from temperance.display.labels import written
from temperance.report.markup import element, table, unbroken
from temperance.report.svg import colour_of_mark, draw_svg


def figure(
    name: str, chart: Chart, numbers: str = "", *, title: str = "", panel: str = "", by_method: bool = False
) -> Markup:
    """Frame a chart. A panel is shown if its method is selected; with `by_method`, so is each mark."""
    title = title or chart.title
    picture = draw_svg(chart, f"picture-{name}", title, by_method=by_method)
    entries = list(_legend(chart, by_method))
    return element(
        "figure",
        element("h3", title),
        element("div", picture, class_="picture"),
        element("p", *entries, class_="legend") if entries else "",
        element("figcaption", unbroken(chart.caption)),
        element("details", element("summary", "Numbers"), numbers) if numbers else "",
        id=f"figure-{name}",
        data_panel=panel or None,
    )


def _legend(chart: Chart, by_method: bool) -> Iterable[Markup]:
    for mark in chart.marks:
        if mark.label:
            symbol = element("span", class_=_symbol(mark), style=f"color:{colour_of_mark(mark)}")
            method = mark.method if by_method and mark.method else None
            yield element("span", symbol, mark.label, data_method=method)


def _symbol(mark: Mark) -> str:
    """Return how the legend shows a mark: dashed or hollow, as in the chart."""
    if isinstance(mark, Rule) or (isinstance(mark, Line) and not mark.method):
        return "dash"
    return "swatch" if mark.method else "swatch hollow"


def differences_figure(shown: display.DifferencesDisplay) -> Markup:
    """NLL of every method minus that of the recommended one."""
    columns = shown.methods, shown.value, shown.low, shown.high
    rows = [[name, f"{v:+.4f}", f"{a:+.4f} to {b:+.4f}"] for name, v, a, b in zip(*columns, strict=True)]
    numbers = table(["method", "difference", "interval"], rows, "Differences of NLL")
    return figure("differences", shown.chart(), numbers)


def reliability_figure(shown: display.ReliabilityDisplay, method: str, title: str) -> Markup:
    """Accuracy against confidence of one method."""
    diagram = shown.diagrams[method]
    columns = diagram.count, diagram.confidence, diagram.accuracy, diagram.low, diagram.high
    rows = [
        [f"{a:.2f} to {b:.2f}", f"{n:.0f}", f"{c:.3f}", f"{h:.3f}", f"{low:.3f} to {high:.3f}"]
        for a, b, n, c, h, low, high in zip(diagram.edges[:-1], diagram.edges[1:], *columns, strict=True)
        if n > 0
    ]
    numbers = table(["bin", "rows", "confidence", "accuracy", "interval"], rows, f"Bins of {method}")
    return figure(f"reliability-{method}", shown.chart([method]), numbers, title=title, panel=method)


def class_reliability_figure(shown: display.ClassReliabilityDisplay) -> Markup:
    """Return the share of one class against its probability, before and after."""
    return figure(f"class-{shown.column}", shown.chart())


def confidence_figure(
    shown: display.ConfidenceDisplay, focus: Collection[str], method: str, title: str
) -> Markup:
    """Return the confidences of one method, and how often it is right."""
    return figure(f"confidence-{method}", shown.chart([method], focus), title=title, panel=method)


def learning_figure(shown: display.LearningCurveDisplay, focus: Collection[str]) -> Markup:
    """NLL by the number of calibration rows."""
    columns = {name: [f"{value:.4f}" for value in mean] for name, mean in shown.mean.items()}
    numbers = table(["rows"], [[str(size)] for size in shown.sizes], "NLL by labelled rows", columns)
    return figure("labels", shown.chart(focus), numbers, by_method=True)


def temperature_figure(shown: display.TemperatureDisplay, focus: Collection[str]) -> Markup:
    """T(z) against the log entropy, and the best temperature of each bin of rows."""
    columns = enumerate(zip(shown.centre, shown.count, shown.optimum, strict=True))
    rows = [[f"{centre:.2f}", f"{n}", f"{t:.3g}", shown.ends(i)] for i, (centre, n, t) in columns]
    numbers = table(["log entropy", "rows", "best T", "interval"], rows, "Best temperature by entropy")
    return figure("temperature", shown.chart(focus), numbers, by_method=True)


def map_figure(shown: display.MapDisplay) -> Markup:
    """Return the maps of probabilities."""
    before = np.geomspace(1e-6, 0.1, 6)
    columns = {name: [written(p) for p in one.apply(before)] for name, one in shown.maps.items()}
    rows = [[written(p)] for p in before]
    numbers = table(["probability at T0"], rows, "Probabilities after the map", columns)
    return figure("map", shown.chart(), numbers, by_method=True)


def class_figure(shown: display.ClassTemperatureDisplay, focus: Collection[str]) -> Markup:
    """Return the mean temperature of each true class, and the best one of its rows."""
    places = enumerate(zip(shown.classes, shown.count, shown.optimum, strict=True))
    rows = [[shown.name(k), f"{n}", f"{t:.3g}", shown.ends(i)] for i, (k, n, t) in places]
    columns = {name: [f"{t:.3g}" for t in mean] for name, mean in shown.mean.items()}
    caption = "Temperature by class: the best one, and the mean of each method"
    numbers = table(["class", "rows", "best T", "interval"], rows, caption, columns)
    return figure("classes", shown.chart(focus), numbers, by_method=True)
