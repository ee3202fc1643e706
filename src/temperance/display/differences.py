"""How much worse each method is than the recommended one, row by row on the same rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from temperance.calibrators import method_style
from temperance.comparison import Comparison, Difference
from temperance.core.arrays import Vector
from temperance.display.chart import Chart
from temperance.display.method_intervals import MethodIntervals
from temperance.display.methods import weights_of


@dataclass(frozen=True, eq=False)
class DifferencesDisplay(MethodIntervals):
    """The NLL of each method minus that of the recommended one: above 0 it is worse.

    Hard rows are hard for all methods, so differences have far smaller errors than the scores themselves.

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
        """Use all methods."""
        weights = weights_of(comparison)
        share = weights / weights.sum()
        reference = comparison.results[comparison.recommended].row_nll
        found = [
            Difference.of(result.row_nll - reference, share).interval(comparison.confidence)
            for result in comparison.results.values()
        ]
        columns = (np.array([getattr(e, end) for e in found]) for end in ("value", "low", "high"))
        return cls(comparison.recommended, tuple(comparison.results), *columns)

    def chart(self) -> Chart:
        """Return a dot with its interval for each method, the first on top."""
        name = method_style(self.reference).label
        caption = (
            f"NLL of each method minus that of {name}, row by row, with intervals: below 0 is better. All "
            "methods are evaluated on the same rows, so differences are more certain than scores."
        )
        title, label = f"NLL minus that of {name}", "difference of NLL"
        return self.interval_chart(title, caption, label, "{:+.4f}", at=0.0)
