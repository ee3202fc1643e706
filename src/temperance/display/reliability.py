"""The reliability diagram: how often predictions of each confidence are right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
from numpy.typing import ArrayLike

from temperance.comparison import Comparison
from temperance.display.axes import REFERENCE, add_legend, draw_band, pyplot
from temperance.display.colours import colour_of
from temperance.display.methods import before_and_after, weights_of
from temperance.metrics import Reliability, reliability
from temperance.metrics.bins import check_bins
from temperance.metrics.diagram import binned
from temperance.metrics.predictions import check_fraction

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class ReliabilityDisplay:
    """Accuracy against confidence, bin by bin: on the diagonal, a confidence is what it says.

    Attributes
    ----------
    diagrams : dict from name to Reliability
        The bins of each method, with Wilson intervals.

    Examples
    --------
    >>> display = ReliabilityDisplay.from_probs([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6]], [0, 1, 1], bins=2)
    >>> display.diagrams["classifier"].accuracy.round(3)
    array([  nan, 0.667])

    `display.plot()` draws it; so does `ReliabilityDisplay.from_comparison(temperance.compare(...)).plot()`.
    """

    diagrams: dict[str, Reliability]

    @classmethod
    def from_probs(
        cls,
        probs: ArrayLike,
        labels: ArrayLike,
        *,
        name: str = "classifier",
        bins: int = 15,
        strategy: str = "width",
        level: float = 0.95,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Bin the rows of one classifier; the options are those of `metrics.reliability`."""
        diagram = reliability(
            probs, labels, bins=bins, strategy=strategy, level=level, sample_weight=sample_weight
        )
        return cls({name: diagram})

    @classmethod
    def from_comparison(
        cls,
        comparison: Comparison,
        methods: Sequence[str] | None = None,
        *,
        bins: int = 15,
        level: float = 0.95,
    ) -> Self:
        """Bin the judged rows of some methods: by default the classifier itself and the recommended one."""
        bins, level, weights = check_bins(bins), check_fraction("level", level), weights_of(comparison)
        results = {name: comparison.results[name] for name in before_and_after(comparison, methods)}
        return cls(
            {
                name: binned(r.confidence, r.correct.astype(np.float64), weights, bins, "width", level)
                for name, r in results.items()
            }
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the diagrams on `ax`; on a figure of its own, with the share of rows in each bin below."""
        if ax is not None:
            return self._draw(ax, "confidence")
        _, (top, below) = pyplot().subplots(
            2, 1, sharex=True, height_ratios=(4, 1), figsize=(5.2, 5.8), layout="constrained"
        )
        self._draw(top, "")
        self._draw_shares(below)
        return top

    def _draw(self, ax: Axes, x_label: str) -> Axes:
        ax.plot([0, 1], [0, 1], linestyle="--", label="perfectly calibrated", **REFERENCE)
        for name, diagram in self.diagrams.items():
            _draw_diagram(ax, name, diagram)
        ax.set(xlim=(0, 1), ylim=(0, 1), xlabel=x_label, ylabel="share of right predictions")
        ax.set_title("Reliability diagram")
        add_legend(ax, loc="upper left")
        return ax

    def _draw_shares(self, ax: Axes) -> None:
        for name, diagram in self.diagrams.items():
            ax.stairs(diagram.share, diagram.edges, color=colour_of(name), linewidth=1.5)
            ax.stairs(diagram.share, diagram.edges, color=colour_of(name), fill=True, alpha=0.15)
        ax.set(xlabel="confidence", ylabel="share of rows")


def _draw_diagram(ax: Axes, name: str, diagram: Reliability) -> None:
    held = np.flatnonzero(diagram.count > 0)
    bins = (diagram.confidence, diagram.accuracy, diagram.low, diagram.high)
    draw_band(ax, name, *(numbers[held] for numbers in bins))
