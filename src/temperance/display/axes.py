"""Axes, and what all pictures share on them. matplotlib is imported here first, when a picture is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from temperance.comparison import UNCALIBRATED
from temperance.core.arrays import Vector
from temperance.display.colours import colour_of, marker_of
from temperance.loaders import import_optional

if TYPE_CHECKING:
    from types import ModuleType

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

REFERENCE: dict[str, Any] = {"color": "0.4", "linewidth": 1.0}
"""The look of what belongs to no method: a grey that is seen on white and on black."""


def pyplot() -> ModuleType:
    """Return `matplotlib.pyplot`, or say how to get it."""
    return import_optional("matplotlib.pyplot", "plot", "a picture")


def blank_figure(width: float, height: float) -> Figure:
    """Return a figure to be saved, of which pyplot knows nothing: it has no window, and needs no closing."""
    module = import_optional("matplotlib.figure", "plot", "a picture")
    figure: Figure = module.Figure(figsize=(width, height), layout="constrained")
    return figure


def axes_or_new(ax: Axes | None, width: float = 6.4, height: float = 4.4) -> Axes:
    """Return the axes given, or those of a new figure that a notebook shows."""
    if ax is not None:
        return ax
    _, new = pyplot().subplots(figsize=(width, height), layout="constrained")
    return new


def label_of(name: str) -> str:
    """Return the name of a method as a reader knows it."""
    return "uncalibrated" if name == UNCALIBRATED else name


def method_style(name: str, *, size: float = 5.0) -> dict[str, Any]:
    """Return colour, marker and label of a method."""
    return {
        "color": colour_of(name),
        "marker": marker_of(name),
        "markersize": 1.5 * size if marker_of(name) == "*" else size,  # a star looks small
        "label": label_of(name),
    }


def draw_band(ax: Axes, name: str, x: ArrayLike, middle: Vector, low: Vector, high: Vector) -> None:
    """Draw a method's line with a band around it."""
    ax.fill_between(x, low, high, color=colour_of(name), alpha=0.16, linewidth=0)
    ax.plot(x, middle, **method_style(name))


def draw_whiskers(ax: Axes, methods: Sequence[str], value: Vector, low: Vector, high: Vector) -> None:
    """Draw a dot with whiskers for each method, one below the other."""
    for at, name in enumerate(methods):
        ax.plot([low[at], high[at]], [at, at], color=colour_of(name), linewidth=1.5)
        ax.plot(value[at], at, linestyle="", **method_style(name, size=6))
    ax.set_yticks(range(len(methods)), [label_of(name) for name in methods])
    ax.set_ylim(len(methods) - 0.5, -0.5)


def add_legend(ax: Axes, **options: Any) -> None:
    """Add a legend, in two columns if it is long."""
    entries = len(ax.get_legend_handles_labels()[0])
    ax.legend(fontsize="small", ncols=2 if entries > 5 else 1, framealpha=0.85, **options)
