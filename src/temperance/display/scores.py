"""One metric of all methods side by side, with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from temperance.comparison import UNCALIBRATED, Comparison
from temperance.core.arrays import Vector
from temperance.display.axes import REFERENCE, axes_or_new, draw_whiskers
from temperance.validation import check_choice

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ACRONYMS = ("nll", "ece", "mce", "aurc")


@dataclass(frozen=True, eq=False)
class ScoresDisplay:
    """A metric of each method, with its interval.

    Attributes
    ----------
    metric : str
        Its name in `metrics`.
    methods : tuple of str
        M of them, in the order of the comparison.
    value, low, high : arrays of shape (M,)
        In natural units: an ECE of 2 % is 0.02.
    recommended : str or None
        The method to take.

    Examples
    --------
    >>> from temperance import compare
    >>> from temperance.data import simulate
    >>> task = simulate(1000, 3)
    >>> comparison = compare(task.logits, task.labels, methods=["ts"], draws=20)
    >>> display = ScoresDisplay.from_comparison(comparison, "brier")
    >>> display.methods, display.recommended
    (('none', 'ts'), 'ts')
    >>> bool((display.low <= display.value).all())
    True
    """

    metric: str
    methods: tuple[str, ...]
    value: Vector
    low: Vector
    high: Vector
    recommended: str | None

    @classmethod
    def from_comparison(cls, comparison: Comparison, metric: str = "nll") -> Self:
        """Take a metric of all methods."""
        check_choice("metric", metric, tuple(comparison.results[UNCALIBRATED].scores))
        scores = [result.scores[metric] for result in comparison.results.values()]
        return cls(
            metric,
            tuple(comparison.results),
            np.array([score.value for score in scores]),
            np.array([score.low for score in scores]),
            np.array([score.high for score in scores]),
            comparison.recommended,
        )

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw a dot with whiskers for each method, the first on top; the name of the recommended is bold."""
        ax = axes_or_new(ax, height=1.3 + 0.32 * len(self.methods))
        draw_whiskers(ax, self.methods, self.value, self.low, self.high)
        if self.recommended in self.methods:
            at = self.methods.index(self.recommended)
            ax.axvline(self.value[at], linestyle=":", zorder=0, **REFERENCE)
            ax.get_yticklabels()[at].set_fontweight("bold")
        ax.set(xlabel=_in_words(self.metric), title=f"{_in_words(self.metric)} of each method")
        return ax


def _in_words(metric: str) -> str:
    """Return the name of a metric as it is written: smooth_ece -> smooth ECE."""
    words = [word.upper() if word in _ACRONYMS else word for word in metric.split("_")]
    return " ".join(words)
