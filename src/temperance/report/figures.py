"""Displays of scores, reliability, confidence and labels as figures of the page."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from temperance.comparison import UNCALIBRATED
from temperance.display import (
    ConfidenceDisplay,
    DifferencesDisplay,
    LearningCurveDisplay,
    ReliabilityDisplay,
)
from temperance.display.colours import colour_of
from temperance.metrics import Reliability
from temperance.report.markup import element, table, text
from temperance.report.svg import Plot

WIDE, SMALL, FLAT = (900, 440), (440, 410), (440, 300)
RIGHT, WRONG = "#4a86c5", "#c8553d"


def figure(
    name: str,
    plot: Plot,
    title: str,
    words: str,
    caption: str,
    numbers: str = "",
    *,
    method: str | None = None,
    legend: Iterable[str] = (),
) -> str:
    """Frame a plot: `words` tell it to those who cannot see it, `numbers` are its table."""
    shape = "picture wide" if plot.size[0] > SMALL[0] else "picture"
    details = element("details", element("summary", "Numbers"), numbers) if numbers else ""
    return element(
        "figure",
        element("h3", text(title)),
        element("div", plot.svg(f"picture-{name}", title, words), class_=shape),
        _legend(legend),
        element("figcaption", text(caption)),
        details,
        id=f"figure-{name}",
        data_panel=method,
    )


def _legend(methods: Iterable[str]) -> str:
    """Return the colours of the methods; the page hides those of methods that it hides."""
    marks = [
        element(
            "span",
            element("span", class_="swatch", style=f"background:{colour_of(name)}"),
            text(name),
            data_method=name,
        )
        for name in methods
    ]
    return element("p", *marks, class_="legend") if marks else ""


def _spoken(method: str) -> str:
    return "The classifier as it is" if method == UNCALIBRATED else method


def differences_figure(display: DifferencesDisplay) -> str:
    """NLL of every method against the recommended one."""
    names = display.methods
    of_methods = [i for i, name in enumerate(names) if name != UNCALIBRATED] or [0]
    low, high = float(display.low.min()), float(display.high[of_methods].max())
    # The classifier itself is often so far off that it would flatten all others.
    if float(display.high.max()) < 3 * max(high, 1e-12):
        high = float(display.high.max())
    margin = 0.08 * (high - low) or 1e-3
    ticks = [(float(i), name) for i, name in enumerate(names)]
    labels = ("method", f"NLL less that of {display.reference}")
    ends = (-0.6, len(names) - 0.4), (low - margin, high + margin)
    plot = Plot(*ends, labels, size=(900, 340), x_ticks=ticks)
    plot.rule(0.0, display.reference)
    for i, name in enumerate(names):
        at, part, colour = np.array([float(i)]), slice(i, i + 1), colour_of(name)
        plot.whiskers(at, display.low[part], display.high[part], colour)
        tip = f"{name}: {display.value[i]:+.4f} ({display.low[i]:+.4f} to {display.high[i]:+.4f})"
        plot.points(at, display.value[part], colour, [tip], radius=5)
    outside = [name for i, name in enumerate(names) if display.value[i] > high + margin]
    words = f"Differences of NLL to {display.reference}, row by row, with intervals: above 0 is worse."
    caption = (
        f"{words} All methods are judged on the same rows, so that differences are far surer than scores."
    )
    if outside:
        caption += (
            f" Beyond the top: {', '.join(f'{n} ({display.value[names.index(n)]:+.3f})' for n in outside)}."
        )
    rows = [
        [name, f"{value:+.4f}", f"{a:+.4f} to {b:+.4f}"]
        for name, value, a, b in zip(names, display.value, display.low, display.high, strict=True)
    ]
    numbers = table(["method", "difference", "interval"], rows, "Differences of NLL")
    return figure("differences", plot, f"NLL against {display.reference}", words, caption, numbers)


def reliability_figure(display: ReliabilityDisplay, method: str, title: str) -> str:
    """Accuracy against confidence of one method, with bands and the rows behind each bin."""
    diagram, colour = display.diagrams[method], colour_of(method)
    plot = Plot((0, 1), (0, 1), ("confidence", "accuracy"), size=SMALL)
    tips = [f"{n:.0f} rows" for n in diagram.count]
    heights = 0.3 * diagram.share / diagram.share.max()
    plot.bars(diagram.edges, np.zeros(len(heights)), heights, colour, tips, shade="count")
    plot.diagonal()
    plot.band(diagram.confidence, diagram.low, diagram.high, colour)
    plot.line(diagram.confidence, diagram.accuracy, colour)
    plot.points(diagram.confidence, diagram.accuracy, colour, _bin_tips(diagram), radius=4)
    error = float(diagram.share @ np.abs(diagram.gap))
    words = (
        f"{_spoken(method)}: {100 * error:.2f} % away from the diagonal on average, {_direction(diagram)}."
    )
    columns = diagram.count, diagram.confidence, diagram.accuracy, diagram.low, diagram.high
    rows = [
        [f"{a:.2f} to {b:.2f}", f"{n:.0f}", f"{c:.3f}", f"{h:.3f}", f"{low:.3f} to {high:.3f}"]
        for a, b, n, c, h, low, high in zip(diagram.edges[:-1], diagram.edges[1:], *columns, strict=True)
        if n > 0
    ]
    numbers = table(["bin", "rows", "confidence", "accuracy", "interval"], rows, f"Bins of {method}")
    return figure(f"reliability-{method}", plot, title, words, words, numbers, method=method)


def _direction(diagram: Reliability) -> str:
    gap = float(diagram.share @ diagram.gap)
    if abs(gap) < 0.002:
        return "neither over- nor under-confident on the whole"
    return f"{'under' if gap > 0 else 'over'}-confident by {100 * abs(gap):.2f} % on the whole"


def _bin_tips(diagram: Reliability) -> list[str]:
    columns = diagram.count, diagram.confidence, diagram.accuracy, diagram.low, diagram.high
    return [
        f"{n:.0f} rows: says {100 * c:.1f} %, is right {100 * a:.1f} % ({100 * low:.1f} to {100 * high:.1f})"
        for n, c, a, low, high in zip(*columns, strict=True)
    ]


def confidence_figure(display: ConfidenceDisplay, method: str, title: str) -> str:
    """How sure the method is, and how often right: rows by confidence."""
    right, wrong = 100 * display.right[method], 100 * display.wrong[method]
    top = 100 * max(float((display.right[m] + display.wrong[m]).max()) for m in display.right)
    plot = Plot((0, 1), (0, 1.05 * top), ("confidence", "share of rows, %"), size=FLAT)
    ends = zip(display.edges[:-1], display.edges[1:], right, wrong, strict=True)
    tips = [f"confidence {a:.2f} to {b:.2f}: {r + w:.1f} % of rows, {w:.1f} % wrong" for a, b, r, w in ends]
    plot.bars(display.edges, np.zeros(len(wrong)), wrong, WRONG, tips)
    plot.bars(display.edges, wrong, wrong + right, RIGHT, tips)
    words = (
        f"{_spoken(method)}: {100 * display.mean_confidence[method]:.1f} % sure on average, right in "
        f"{100 * display.accuracy:.1f} % of the rows."
    )
    caption = f"{words} Blue: right; red, at the bottom: wrong."
    return figure(f"confidence-{method}", plot, title, words, caption, method=method)


def learning_figure(display: LearningCurveDisplay) -> str:
    """NLL by the number of calibration rows."""
    sizes = np.array(display.sizes, np.float64)
    plot = Plot(
        (sizes[0] / 1.15, sizes[-1] * 1.15),
        _range_of_losses(display),
        ("labelled rows for calibration", "NLL"),
        size=WIDE,
        log=(True, False),
        x_ticks=[(float(size), f"{size:.0f}") for size in sizes],
    )
    plot.rule(display.uncalibrated, "uncalibrated")
    for name, mean in display.mean.items():
        colour = colour_of(name)
        plot.band(sizes, display.low[name], display.high[name], colour, name)
        plot.line(sizes, mean, colour, name)
        pairs = zip(display.sizes, mean, strict=True)
        plot.points(sizes, mean, colour, [f"{name}, {n} rows: NLL {v:.4f}" for n, v in pairs], name, radius=4)
    best = min(display.mean, key=lambda name: float(display.mean[name][-1]))
    words = f"With {display.sizes[-1]} rows the lowest NLL is that of {best}, {display.mean[best][-1]:.4f}."
    caption = (
        "Each line is the mean over random draws of the calibration rows, its band one standard error. Where "
        "a line leaves the picture at the top, the method needs more rows; the table has its numbers."
    )
    rows = [[name, *(f"{value:.4f}" for value in mean)] for name, mean in display.mean.items()]
    numbers = table(["method", *(f"{size} rows" for size in display.sizes)], rows, "NLL by labelled rows")
    return figure("labels", plot, "NLL by labelled rows", words, caption, numbers, legend=display.mean)


def _range_of_losses(display: LearningCurveDisplay) -> tuple[float, float]:
    """Return an axis on which the good methods differ: those that break down on few rows may leave it."""
    lowest = min(float(mean.min()) for mean in display.mean.values())
    last = [float(mean[-1]) for mean in display.mean.values()]
    worst = max(float(mean.max()) for mean in display.mean.values())
    highest = min(worst, 1.3 * max(last), max(display.uncalibrated, 1.05 * max(last)))
    margin = 0.06 * (highest - lowest) or 0.01
    return lowest - margin, highest + margin
