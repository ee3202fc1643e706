"""The critical difference diagram: methods by mean rank, with bars over indistinguishable ones.

The layout is that of J. Demsar, JMLR 7, 2006: the best on the left, the critical difference above the axis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from temperance.calibrators import method_style
from temperance.study.average_figures import MARKER_AREAS, marker_edge
from temperance.study.comparisons import ALPHA, Ranks
from temperance.study.tables import unit_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STEP = 0.2  # inches from one label to the next
_BAR_STEP = 0.1  # inches from one bar to the next
_ABOVE, _BELOW = 0.55, 0.15  # inches over the axis, and under the last label
_WIDTH, _MARGIN = 7.0, 1.35  # inches; the margins hold the labels
_TITLE = 0.3  # inches
_MARKER_AREA = 42.0  # points squared
_INK, _GREY = "black", "0.45"
_THIN: dict[str, Any] = {"color": _GREY, "linewidth": 0.7, "clip_on": False}


def diagram_size(ranks: Ranks) -> tuple[float, float]:
    """Return width and height in inches."""
    return _WIDTH, _TITLE + _ABOVE + _depth(ranks) + _BELOW


def draw_diagram(figure: Figure, ranks: Ranks) -> None:
    """Draw the axis of ranks, the critical difference, the bars of groups and the labels."""
    figure.set_layout_engine("none")
    width, height = diagram_size(ranks)
    inside = width - 2 * _MARGIN
    ax = figure.add_axes((_MARGIN / width, 0.0, inside / width, (height - _TITLE) / height))
    k = len(ranks.methods)
    ax.set_xlim(1, k)
    ax.set_ylim(-_depth(ranks) - _BELOW, _ABOVE)  # inches, 0 at the axis
    ax.set_axis_off()
    ax.set_title(_title(ranks), parse_math=False)
    _draw_axis(ax, k)
    if len(ranks.groups) > 1:
        _draw_critical_difference(ax, min(ranks.critical_difference, k - 1.0))
    _draw_groups(ax, ranks)
    _draw_labels(ax, ranks, (k - 1) / inside)


def _bars(ranks: Ranks) -> list[tuple[float, float]]:
    """Return the ends of a bar for each group of two methods or more."""
    mean = dict(zip(ranks.methods, map(float, ranks.mean), strict=True))
    return [(mean[group[0]], mean[group[-1]]) for group in ranks.groups if len(group) > 1]


def _first_label(ranks: Ranks) -> float:
    return 0.15 + _BAR_STEP * len(_bars(ranks))


def _depth(ranks: Ranks) -> float:
    return _first_label(ranks) + _STEP * (-(-len(ranks.methods) // 2))


def _title(ranks: Ranks) -> str:
    scores = ranks.scores
    counted = f"{len(scores.tasks)} tasks of " if ranks.over == "tasks" else ""
    p = "p < 0.001" if ranks.p_value < 0.001 else f"p = {ranks.p_value:.3f}"
    metric = unit_of(scores.metric).title.replace(" in %", "")
    words = (
        f"mean rank by {metric}, N = {scores.n}, {counted}{scores.datasets} data sets (Friedman test: {p})"
    )
    return words if ranks.p_value < ALPHA else f"{words}: no difference"


def _draw_axis(ax: Axes, k: int) -> None:
    ax.plot([1, k], [0, 0], color=_INK, linewidth=0.8, clip_on=False)
    for rank in range(1, k + 1):
        ax.plot([rank, rank], [0, 0.06], color=_INK, linewidth=0.8, clip_on=False)
        ax.text(rank, 0.09, str(rank), ha="center", va="bottom", fontsize=7)


def _draw_critical_difference(ax: Axes, width: float) -> None:
    y = 0.36
    ax.plot([1, 1 + width], [y, y], color=_INK, linewidth=1.2, clip_on=False)
    for end in (1, 1 + width):
        ax.plot([end, end], [y - 0.03, y + 0.03], color=_INK, linewidth=1.2, clip_on=False)
    ax.text(1 + width / 2, y + 0.03, f"critical difference {width:.2f}", ha="center", va="bottom", fontsize=7)


def _draw_groups(ax: Axes, ranks: Ranks) -> None:
    for i, (first, last) in enumerate(_bars(ranks)):
        y = -0.1 - _BAR_STEP * i
        ax.plot([first, last], [y, y], color=_INK, linewidth=2.2, solid_capstyle="round", clip_on=False)


def _draw_labels(ax: Axes, ranks: Ranks, per_inch: float) -> None:
    """Draw a line from each mean rank to the method's name, with its marker: the better half on the left."""
    k, left = len(ranks.methods), -(-len(ranks.methods) // 2)
    for i, (method, mean) in enumerate(zip(ranks.methods, ranks.mean, strict=True)):
        on_left = i < left
        y = -_first_label(ranks) - _STEP * (i if on_left else k - 1 - i) - 0.05
        end, align = (1 - 0.07 * per_inch, "right") if on_left else (k + 0.07 * per_inch, "left")
        style = method_style(method)
        ax.plot([mean, mean, end], [0, y, y], zorder=1, **_THIN)
        ax.plot(mean, 0, marker="o", markersize=2.5, color=_INK, clip_on=False)
        area = _MARKER_AREA * MARKER_AREAS.get(style.marker, 1.0)
        look: dict[str, Any] = {"facecolor": style.colour, "edgecolor": marker_edge(style), "linewidth": 0.4}
        ax.scatter(end, y, area, marker=style.marker, zorder=3, clip_on=False, **look)
        words = f"{style.label}  {mean:.2f}" if on_left else f"{mean:.2f}  {style.label}"
        ax.text(end + np.copysign(0.1 * per_inch, end - mean), y, words, ha=align, va="center",
                parse_math=False)  # fmt: skip
