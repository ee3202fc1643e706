"""Fit times by the size of the array, as multiples of those of our TS, on logarithmic axes."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
from figure_style import GREY, ON_ANY_GROUND
from matplotlib.figure import Figure
from peers.plan import CONTENDERS, REFERENCE, SIZES
from peers_tables import Speed

COLOURS = ("#0072B2", "#56B4E9", "#009E73", "#CC79A7", "#A06CD5", "#E69F00", "#D55E00", "#8B6C42", "#7F7F7F")
# Two classes are another problem, and on another line.
SHOWN = [size for size in SIZES if size[1] > 2]


def draw(speed: Speed, path: Path) -> None:
    """Draw a line for each method, labelled at its right end."""
    with mpl.rc_context(ON_ANY_GROUND | {"font.size": 9, "svg.hashsalt": "peers", "svg.fonttype": "none"}):
        figure = Figure(figsize=(8.5, 5.2), layout="constrained")
        axes = figure.subplots()
        ends = []
        shown = [each for each in CONTENDERS if each.n_classes is None]
        for contender, colour in zip(shown, COLOURS, strict=True):
            points = [(n * k, speed.ratio(contender, (n, k), "fit_cpu")) for n, k in SHOWN]
            found = [(x, y) for x, y in points if y is not None]
            if not found:
                continue
            wrong = any(speed.mark(contender, size, "fit_cpu") for size in SHOWN)
            style = "--" if wrong else "-"
            thick = 2.6 if contender == REFERENCE else 1.5
            axes.plot(
                *zip(*found, strict=True), style, color=colour, linewidth=thick, marker="o", markersize=4
            )
            name = contender.label.replace("`", "") + (" (wrong T)" if wrong else "")
            ends.append((found[-1], name, colour))
        axes.set(xscale="log", yscale="log", xlabel="rows x classes")
        axes.set_ylabel("CPU time of a fit, as a multiple of temperance ts")
        axes.set_xticks(
            [n * k for n, k in SHOWN], [f"{n:,} x {k:,}" for n, k in SHOWN], rotation=20, ha="right"
        )
        axes.minorticks_off()
        axes.yaxis.set_major_formatter("{x:g}")
        axes.grid(color=GREY, alpha=0.3, linewidth=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        label_ends(axes, ends)
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None, dpi=120)


def label_ends(axes, ends) -> None:
    """Write each name beside the end of its line, moved apart where two would touch."""
    low, high = axes.get_ylim()
    gap = (high / low) ** 0.045
    right = max(point[0] for point, _, _ in ends)
    height = 0.0
    for (x, y), name, colour in sorted(ends, key=lambda end: end[0][1]):
        height = max(y, height * gap)
        axes.annotate(name, (x, y), (right * 1.35, height), color=colour, va="center", annotation_clip=False)
