"""How confident the right and the wrong predictions are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from temperance.calibrators import method_style
from temperance.comparison import Comparison
from temperance.comparison.verdict import percent
from temperance.core.arrays import Vector
from temperance.core.ece_loss import assign_bins, equal_width_edges
from temperance.display.base import Display, before_and_after, focused, weights_of
from temperance.display.chart import (
    PANEL,
    Axis,
    Band,
    Bars,
    Chart,
    Mark,
    Rule,
    Text,
    Whiskers,
    robust_limits,
    tick_labels,
)
from temperance.metrics.bins import check_bins
from temperance.metrics.intervals import wilson_interval
from temperance.metrics.predictions import check_rows

_MAX_CUT = 0.1  # the share of bars that may be cut


@dataclass(frozen=True, eq=False)
class ConfidenceDisplay(Display):
    """The shares of rows that are right and wrong, by confidence.

    Attributes
    ----------
    edges : array of shape (bins + 1,)
        Bin b holds confidences above `edges[b]`, up to and including `edges[b + 1]`.
    right, wrong : dict from name to array of shape (bins,)
        Shares of all rows; those of a method, right and wrong together, sum to 1.
    mean_confidence : dict from name to float
        A method is overconfident if this is above its accuracy.
    accuracy : float
        Accuracy of the first method; of the others too, unless they change decisions.
    accuracies : dict from name to float
        Accuracy of each method.
    effective_rows : float
        The number of rows; with weights w, (sum w)^2 / sum w^2.

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
    accuracies: dict[str, float]
    effective_rows: float

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
        """Bin the test rows of some methods: by default the classifier itself and the recommended one."""
        results = [comparison.results[name] for name in before_and_after(comparison, methods)]
        rows = {r.method: (r.confidence, r.correct.astype(np.float64)) for r in results}
        return cls._of(rows, weights_of(comparison), bins)

    @classmethod
    def _of(cls, rows: dict[str, tuple[NDArray[Any], Vector]], weight: Vector, bins: int) -> Self:
        """Bin the confidence of each row, and whether it is right, by name."""
        edges: Vector = equal_width_edges(check_bins(bins)).astype(np.float64)
        share = weight / weight.sum()
        right, wrong = dict[str, Vector](), dict[str, Vector]()
        mean, accuracies = dict[str, float](), dict[str, float]()
        for name, (confidence, correct) in rows.items():
            index = assign_bins(confidence, equal_width_edges(bins, confidence.dtype))
            for side, part in ((right, correct), (wrong, 1 - correct)):
                side[name] = np.bincount(index, share * part, minlength=bins).astype(np.float64)
            mean[name], accuracies[name] = float(share @ confidence), float(share @ correct)
        return cls(edges, right, wrong, mean, accuracies, float(1 / (share @ share)))

    @property
    def accuracy(self) -> float:
        """The accuracy of the first method."""
        return next(iter(self.accuracies.values()))

    def chart(self, methods: Iterable[str] | None = None, focus: Collection[str] | None = None) -> Chart:
        """Return the shares with their intervals, the right rows upwards and the wrong ones downwards.

        The methods in focus set the limits, by default all, so that their charts can be compared.
        """
        shown = list(methods or self.right)
        right, wrong = (np.concatenate([*focused(side, focus).values()]) for side in (self.right, self.wrong))
        keep = [0.0, -float(self._interval(wrong)[1][wrong > 0].max(initial=0.0))]
        low, high = (np.where(right > 0, end, 0.0) for end in self._interval(right))
        # Without bars far higher than the others:
        limits = robust_limits(right, low, high, rare=_MAX_CUT, keep=keep)
        marks: list[Mark] = []
        for accuracy in dict.fromkeys(self.accuracies[name] for name in shown):  # once if they are the same
            marks.append(Band(np.array(self._interval(np.array(accuracy))), *np.tile(limits, (2, 1)).T))
            marks.append(Rule(accuracy, upright=True, label=f"accuracy {percent(accuracy)}"))
        for name in shown:
            marks += self._marks(name)
        cut_bars = self._cut_bars(shown, limits)
        marks += [Rule(0.0), *cut_bars]
        cut = " The height of a bar that does not fit is written in a corner." if cut_bars else ""
        caption = (
            f"{' '.join(map(self._in_words, shown))} Bars: shares of all rows, the right ones upwards and "
            "the wrong ones downwards, with 95 % intervals. Grey band: 95 % interval of the accuracy."
            f"{cut}"
        )
        ticks = tuple((at, words.lstrip("-")) for at, words in tick_labels(*limits))
        y = Axis("share of rows (wrong below 0)", limits, ticks=ticks)
        return Chart(
            "Right and wrong predictions", caption, Axis("confidence", (0.0, 1.0)), y, marks, (PANEL, 3.8)
        )

    def _interval(self, share: Vector) -> tuple[Vector, Vector]:
        return wilson_interval(share, np.full(np.shape(share), self.effective_rows), 0.95)

    def _in_words(self, name: str) -> str:
        low, high = self._interval(np.array(self.accuracies[name]))
        return (
            f"{method_style(name).label}: mean confidence {percent(self.mean_confidence[name])}, accuracy "
            f"{percent(self.accuracies[name])} ({percent(float(low))} to {percent(float(high))})."
        )

    def _marks(self, name: str) -> list[Mark]:
        right, wrong, mean = self.right[name], self.wrong[name], self.mean_confidence[name]
        ends = zip(self.edges[:-1], self.edges[1:], right, wrong, strict=True)
        tips = [
            f"confidence {a:.2f} to {b:.2f}: {100 * r:.1f} % of rows right, {100 * w:.1f} % wrong"
            for a, b, r, w in ends
        ]
        label = f"{method_style(name).label}: mean confidence {percent(mean)}"
        bars: list[Mark] = [Bars(self.edges, side, method=name, tips=tips) for side in (right, -wrong)]
        for shares, sign in ((right, 1), (wrong, -1)):
            held = shares > 0
            low, high = self._interval(shares[held])
            bars.append(Whiskers((self.edges[:-1] + self.edges[1:])[held] / 2, sign * low, sign * high))
        return [*bars, Rule(mean, upright=True, method=name, label=label)]

    def _cut_bars(self, shown: Sequence[str], limits: tuple[float, float]) -> list[Mark]:
        """Return the height of each bar that does not fit, written in a corner where bars are low."""
        (bottom, top), step = limits, 0.1 * limits[1]
        marks: list[Mark] = []
        for side, limit, arrow, first, down in (
            (self.right, top, "\N{UPWARDS ARROW}", 0.93 * top, -step),
            (self.wrong, -bottom, "\N{DOWNWARDS ARROW}", bottom + 0.7 * step, step),
        ):
            words = [
                f"{100 * share:.1f} % of rows at {low:.2f} to {high:.2f} {arrow}"
                for name in shown
                for low, high, share in zip(self.edges[:-1], self.edges[1:], side[name], strict=True)
                if share > limit
            ]
            marks += [Text(0.02, first + i * down, text) for i, text in enumerate(words)]
        return marks
