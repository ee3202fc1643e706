"""How much worse each method is than the recommended one, row by row on the same rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from temperance.comparison import Comparison, Difference
from temperance.core.arrays import Vector
from temperance.display.axes import REFERENCE, axes_or_new, draw_whiskers
from temperance.display.methods import weights_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class DifferencesDisplay:
    """The NLL of each method less that of the recommended one: above 0 it is worse.

    Hard rows are hard for all methods, so that differences are far surer than the scores themselves.

    Attributes
    ----------
    reference : str
        The recommended method, whose difference is 0.
    methods : tuple of str
        M of them, in the order of the comparison.
    value, low, high : arrays of shape (M,)
        Mean difference and its normal interval.

    Examples
    --------
    >>> from temperance import compare
    >>> from temperance.data import simulate
    >>> task = simulate(1000, 3)
    >>> display = DifferencesDisplay.from_comparison(compare(task.logits, task.labels, methods=["ts"]))
    >>> display.reference, display.methods, float(display.value[1])
    ('ts', ('none', 'ts'), 0.0)
    """

    reference: str
    methods: tuple[str, ...]
    value: Vector
    low: Vector
    high: Vector

    @classmethod
    def from_comparison(cls, comparison: Comparison) -> Self:
        """Take all methods."""
        weights = weights_of(comparison)
        share = weights / weights.sum()
        reference = comparison.results[comparison.recommended].row_nll
        found = [
            Difference.of(result.row_nll - reference, share).interval(comparison.confidence)
            for result in comparison.results.values()
        ]
        columns = (np.array([getattr(e, end) for e in found]) for end in ("value", "low", "high"))
        return cls(comparison.recommended, tuple(comparison.results), *columns)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw a dot with whiskers for each method, the first on top."""
        ax = axes_or_new(ax, height=1.3 + 0.32 * len(self.methods))
        ax.axvline(0, linestyle=":", zorder=0, **REFERENCE)
        draw_whiskers(ax, self.methods, self.value, self.low, self.high)
        title = f"NLL of each method less that of {self.reference}"
        ax.set(xlabel="difference of NLL (below 0 is better)", title=title)
        return ax
