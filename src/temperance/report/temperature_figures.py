"""The paper's two figures of temperatures: by entropy and by class, against the best of the judged rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from temperance.core.arrays import Vector
from temperance.display import ClassTemperatureDisplay, TemperatureDisplay
from temperance.display.colours import colour_of
from temperance.report.figures import WIDE, figure
from temperance.report.markup import table
from temperance.report.svg import Plot

OPTIMUM = "var(--ink)"

_UNTOLD = 1e5  # an interval as wide as this says nothing


def temperature_figure(display: TemperatureDisplay) -> str:
    """Draw T(z) against the log entropy, and the best temperature of each bin of rows."""
    x = np.concatenate([display.log_entropy, display.centre])
    margin = 0.03 * float(np.ptp(x)) or 0.1
    labels = ("log of the normalised entropy (the unsure on the right)", "temperature")
    ends = (float(x.min()) - margin, float(x.max()) + margin), _range(display, *display.temperature.values())
    plot = Plot(*ends, labels, size=WIDE, log=(False, True))
    plot.rule(1.0, "T = 1: the logits as they are")
    for name, temperature in display.temperature.items():
        plot.points(display.log_entropy, temperature, colour_of(name), method=name, radius=2)
    columns = display.count, display.optimum, display.low, display.high
    tips = [f"{n} rows: best temperature {_interval(*t)}" for n, *t in zip(*columns, strict=True)]
    _draw_optimum(plot, display.centre, display, tips)
    words = f"The best single temperature is {display.single:.3g}."
    told = display.optimum[_known(display)]
    if len(told) > 1:
        words += f" By entropy it goes from {told[0]:.3g} for sure rows to {told[-1]:.3g} for unsure ones."
    caption = (
        f"{words} Rings: the best temperature of each bin of judged rows, with its interval. A method whose "
        "dots follow the rings has learnt what the entropy can tell."
    )
    rows = [
        [f"{centre:.2f}", f"{n}", f"{t:.3g}", _ends(low, high)]
        for centre, n, t, low, high in zip(display.centre, *columns, strict=True)
    ]
    numbers = table(["log entropy", "rows", "best T", "interval"], rows, "Best temperature by entropy")
    return figure(
        "temperature", plot, "T against entropy", words, caption, numbers, legend=display.temperature
    )


def class_figure(display: ClassTemperatureDisplay) -> str:
    """Draw the mean temperature of each true class against the best one of its rows."""
    shown = len(display.classes)
    at = np.arange(shown, dtype=np.float64)
    ends = (-0.6, shown - 0.4), _range(display, *display.mean.values())
    ticks = [(float(i), str(k)) for i, k in enumerate(display.classes)]
    plot = Plot(*ends, ("true class", "temperature"), size=WIDE, log=(False, True), x_ticks=ticks)
    plot.rule(display.single, f"one for all: {display.single:.3g}")
    for name, mean in display.mean.items():
        tips = [f"{name}, class {k}: mean T {t:.3g}" for k, t in zip(display.classes, mean, strict=True)]
        plot.line(at, mean, colour_of(name), name)
        plot.points(at, mean, colour_of(name), tips, name, radius=4)
    columns = display.classes, display.count, display.optimum, display.low, display.high
    tips = [
        f"class {k}, {n} rows: best temperature {_interval(*t)}" for k, n, *t in zip(*columns, strict=True)
    ]
    _draw_optimum(plot, at, display, tips)
    order = [i for i in np.argsort(display.optimum, kind="stable") if _known(display)[i]]
    words = f"The best single temperature is {display.single:.3g}."
    if len(order) > 1:
        (k, t), (most, highest) = ((display.classes[i], display.optimum[i]) for i in (order[0], order[-1]))
        words = f"Class {most} needs the highest temperature, {highest:.3g}, class {k} the lowest, {t:.3g}."
    caption = (
        f"{words} Rings: the best temperature of the judged rows of each class, with its interval; lines: "
        "the mean temperature that a method gives to them."
    )
    if shown < display.n_classes:
        caption += f" Of {display.n_classes} classes these {shown} differ most from the rest."
    rows = [
        [
            f"{k}",
            f"{n}",
            f"{t:.3g}",
            _ends(low, high),
            *(f"{m[i]:.3g}" for m in display.mean.values()),
        ]
        for i, (k, n, t, low, high) in enumerate(zip(*columns, strict=True))
    ]
    head = ["class", "rows", "best T", "interval", *(f"mean T, {name}" for name in display.mean)]
    numbers = table(head, rows, "Temperature by class")
    return figure("classes", plot, "T by true class", words, caption, numbers, legend=display.mean)


def _draw_optimum(
    plot: Plot, x: Vector, display: TemperatureDisplay | ClassTemperatureDisplay, tips: list[str]
) -> None:
    known = _known(display)
    plot.whiskers(x[known], display.low[known], display.high[known], OPTIMUM)
    told = [tip for tip, drawn in zip(tips, known, strict=True) if drawn]
    plot.rings(x[known], display.optimum[known], OPTIMUM, told)


def _known(display: TemperatureDisplay | ClassTemperatureDisplay) -> NDArray[np.bool_]:
    """Say where the rows tell a best temperature: not where all of them are right, for example."""
    known: NDArray[np.bool_] = display.high < _UNTOLD * display.low
    return known


def _interval(value: float, low: float, high: float) -> str:
    return f"{value:.3g} ({_ends(low, high)})"


def _ends(low: float, high: float) -> str:
    return f"{low:.3g} to {high:.3g}" if high < _UNTOLD * low else "the rows do not tell"


def _range(display: TemperatureDisplay | ClassTemperatureDisplay, *others: Vector) -> tuple[float, float]:
    """Return an axis that holds the rings and nearly all dots; 1 is on it if it is near."""
    values = np.concatenate(others) if others else np.ones(1)
    ends = [*np.quantile(values, [0.003, 0.997]), *display.optimum[_known(display)]]
    low, high = float(min(ends)), float(max(ends))
    low, high = min(low, 1.0) if low < 1.3 else low, max(high, 1.0) if high > 0.75 else high
    return 0.92 * low, 1.09 * high
