"""The paper's two figures of temperatures: by entropy and by class, against the best of the judged rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from temperance.display import ClassTemperatureDisplay, TemperatureDisplay
from temperance.display.colours import colour_of
from temperance.report.figures import WIDE, figure
from temperance.report.markup import table
from temperance.report.svg import Plot

__all__ = ["class_figure", "temperature_figure"]

Vector = NDArray[np.float64]

OPTIMUM = "var(--ink)"


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
    words = (
        f"The best single temperature is {display.single:.3g}. By entropy it goes from "
        f"{display.optimum[0]:.3g} for the surest rows to {display.optimum[-1]:.3g} for the least sure."
    )
    caption = (
        f"{words} Rings: the best temperature of each bin of judged rows, with its interval. A method whose "
        "dots follow the rings has learnt what the entropy can tell."
    )
    rows = [
        [f"{centre:.2f}", f"{n}", f"{t:.3g}", _ends(low, high)]
        for centre, n, t, low, high in zip(display.centre, *columns, strict=True)
    ]
    numbers = table(["log entropy", "rows", "best T", "interval"], rows, "Best temperature by entropy")
    return figure("temperature", plot, "T against entropy", words, caption, numbers)


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
    highest, lowest = int(np.argmax(display.optimum)), int(np.argmin(display.optimum))
    words = (
        f"Class {display.classes[highest]} needs the highest temperature, {display.optimum[highest]:.3g}, "
        f"class {display.classes[lowest]} the lowest, {display.optimum[lowest]:.3g}."
    )
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
    return figure("classes", plot, "T by true class", words, caption, numbers)


def _draw_optimum(
    plot: Plot, x: Vector, display: TemperatureDisplay | ClassTemperatureDisplay, tips: list[str]
) -> None:
    told = display.high < 1e5 * display.low
    plot.whiskers(x[told], display.low[told], display.high[told], OPTIMUM)
    plot.rings(x, display.optimum, OPTIMUM, tips)


def _interval(value: float, low: float, high: float) -> str:
    return f"{value:.3g} ({_ends(low, high)})"


def _ends(low: float, high: float) -> str:
    """Return the ends of an interval, or that the rows do not tell: where all of them are right, say."""
    return f"{low:.3g} to {high:.3g}" if high < 1e5 * low else "the rows do not tell"


def _range(display: TemperatureDisplay | ClassTemperatureDisplay, *others: Vector) -> tuple[float, float]:
    """Return an axis that holds nearly all temperatures; 1 is on it if it is near."""
    values = np.concatenate([display.optimum, *others])
    low, high = (float(v) for v in np.quantile(values[np.isfinite(values)], [0.003, 0.997]))
    low, high = min(low, 1.0) if low < 1.7 else low, max(high, 1.0) if high > 0.6 else high
    return 0.9 * low, 1.12 * high
