"""How confident the right and the wrong predictions are."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temperance.calibrators import method_style
from temperance.comparison import Comparison
from temperance.core.arrays import Vector
from temperance.display.base import Display
from temperance.display.chart import PANEL, Axis, Bars, Chart, Mark, Rule
from temperance.display.methods import before_and_after, weights_of
from temperance.display.ticks import tick_labels
from temperance.metrics.bins import assign, check_bins
from temperance.metrics.predictions import check_rows


@dataclass(frozen=True, eq=False)
class ConfidenceDisplay(Display):
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
        right, wrong, mean = dict[str, Vector](), dict[str, Vector](), dict[str, float]()
        for name, (confidence, correct) in rows.items():
            # Edges are compared in the type of the confidences, see `metrics._bins`.
            index = assign(confidence, edges.astype(confidence.dtype))
            right[name] = _sums(index, share * correct, bins)
            wrong[name] = _sums(index, share * (1 - correct), bins)
            mean[name] = float(share @ confidence)
        _, correct = next(iter(rows.values()))
        return cls(edges, right, wrong, mean, float(share @ correct))

    def chart(self, methods: Iterable[str] | None = None) -> Chart:
        """Return the shares, the right rows upwards and the wrong ones downwards."""
        shown = list(methods or self.right)
        marks = [mark for name in shown for mark in self._marks(name)]
        marks.append(Rule(self.accuracy, upright=True, label=f"accuracy {self.accuracy:.3f}"))
        marks.append(Rule(0.0))
        means = [
            f"{method_style(name).label} is {100 * self.mean_confidence[name]:.1f} % sure on average"
            for name in shown
        ]
        caption = (
            f"{', '.join(means)}; {100 * self.accuracy:.1f} % of the rows are right. "
            "Bars: shares of all rows, the right ones upwards and the wrong ones downwards."
        )
        x, y = Axis("confidence", (0.0, 1.0)), Axis("share of rows (wrong below 0)", *self._shares())
        return Chart("Right and wrong predictions", caption, x, y, marks, (PANEL, 3.8))

    def _marks(self, name: str) -> list[Mark]:
        right, wrong, mean = self.right[name], self.wrong[name], self.mean_confidence[name]
        ends = zip(self.edges[:-1], self.edges[1:], right, wrong, strict=True)
        tips = [
            f"confidence {a:.2f} to {b:.2f}: {100 * r:.1f} % of rows right, {100 * w:.1f} % wrong"
            for a, b, r, w in ends
        ]
        label = f"{method_style(name).label}: mean confidence {mean:.3f}"
        return [
            Bars(self.edges, right, method=name, tips=tips),
            Bars(self.edges, -wrong, method=name, tips=tips),
            Rule(mean, upright=True, method=name, label=label),
        ]

    def _shares(self) -> tuple[tuple[float, float], bool, tuple[tuple[float, str], ...]]:
        """Return limits and ticks for the shares of all methods: a share below 0 is written without sign."""
        low, high = (max(float(s.max()) for s in side.values()) for side in (self.wrong, self.right))
        limits = (-1.08 * max(low, 0.05 * high), 1.08 * max(high, 0.05 * low))
        return limits, False, tuple((at, words.lstrip("-")) for at, words in tick_labels(*limits))


def _sums(index: NDArray[Any], values: Vector, bins: int) -> Vector:
    return np.bincount(index, values, minlength=bins).astype(np.float64)
