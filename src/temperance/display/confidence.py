"""How confident the right and the wrong predictions are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temperance.comparison import Comparison
from temperance.core.arrays import Vector
from temperance.display.axes import REFERENCE, add_legend, axes_or_new, label_of
from temperance.display.colours import colour_of
from temperance.display.methods import before_and_after, weights_of
from temperance.metrics.bins import assign, check_bins
from temperance.metrics.predictions import check_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class ConfidenceDisplay:
    """The share of all rows that have a confidence and are right, or wrong.

    Attributes
    ----------
    edges : array of shape (bins + 1,)
        Bin b holds confidences above `edges[b]`, up to and including `edges[b + 1]`.
    right, wrong : dict from name to array of shape (bins,)
        Shares of all rows; those of a method, right and wrong together, sum to 1.
    mean_confidence : dict from name to float
        Above the accuracy, a method is over-confident.
    accuracy : float
        The same for all methods, as none changes a decision.

    Examples
    --------
    >>> display = ConfidenceDisplay.from_probs([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6]], [0, 1, 1], bins=4)
    >>> display.right["classifier"].round(3), display.wrong["classifier"].round(3)
    (array([0.   , 0.   , 0.333, 0.333]), array([0.   , 0.   , 0.   , 0.333]))
    >>> round(display.mean_confidence["classifier"], 3), round(display.accuracy, 3)
    (0.767, 0.667)
    """

    edges: Vector
    right: dict[str, Vector]
    wrong: dict[str, Vector]
    mean_confidence: dict[str, float]
    accuracy: float

    @classmethod
    def from_probs(
        cls,
        probs: ArrayLike,
        labels: ArrayLike,
        *,
        name: str = "classifier",
        bins: int = 20,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Bin the rows of one classifier."""
        rows = check_rows(probs, labels, sample_weight)
        return cls._of({name: (rows.confidence, rows.correct)}, rows.weight, bins)

    @classmethod
    def from_comparison(
        cls, comparison: Comparison, methods: Sequence[str] | None = None, *, bins: int = 20
    ) -> Self:
        """Bin the judged rows of some methods: by default the classifier itself and the recommended one."""
        results = [comparison.results[name] for name in before_and_after(comparison, methods)]
        rows = {r.method: (r.confidence, r.correct.astype(np.float64)) for r in results}
        return cls._of(rows, weights_of(comparison), bins)

    @classmethod
    def _of(cls, rows: dict[str, tuple[NDArray[Any], Vector]], weight: Vector, bins: int) -> Self:
        """Bin the confidence of each row, and whether it is right, by name."""
        edges, share = np.arange(check_bins(bins) + 1) / bins, weight / weight.sum()
        right: dict[str, Vector] = {}
        wrong: dict[str, Vector] = {}
        mean: dict[str, float] = {}
        for name, (confidence, correct) in rows.items():
            # Edges are compared in the type of the confidences, see `metrics._bins`.
            index = assign(confidence, edges.astype(confidence.dtype))
            right[name] = _sums(index, share * correct, bins)
            wrong[name] = _sums(index, share * (1 - correct), bins)
            mean[name] = float(share @ confidence)
        _, correct = next(iter(rows.values()))
        return cls(edges, right, wrong, mean, float(share @ correct))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the shares, the right rows upwards and the wrong ones downwards."""
        ax = axes_or_new(ax)
        for name in self.right:
            colour, label = colour_of(name), label_of(name)
            for shares in (self.right[name], -self.wrong[name]):
                ax.stairs(shares, self.edges, color=colour, fill=True, alpha=0.2)
                ax.stairs(shares, self.edges, color=colour, linewidth=1.5)
            mean = self.mean_confidence[name]
            ax.axvline(mean, color=colour, linestyle="--", label=f"{label}: mean confidence {mean:.3f}")
        ax.axvline(self.accuracy, label=f"accuracy {self.accuracy:.3f}", **REFERENCE)
        ax.axhline(0, **REFERENCE)
        ax.yaxis.set_major_formatter(lambda share, _: f"{abs(share):g}")
        ax.set(xlim=(0, 1), xlabel="confidence", ylabel="share of all rows: wrong below, right above 0")
        ax.set_title("Confidence of right and wrong predictions")
        add_legend(ax, loc="upper left")
        return ax


def _sums(index: NDArray[Any], values: Vector, bins: int) -> Vector:
    return np.bincount(index, values, minlength=bins).astype(np.float64)
