"""The reliability diagram of one class: its frequency by its predicted probability."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from temperance.calibrators import UNCALIBRATED, method_style
from temperance.comparison import Comparison
from temperance.comparison.class_reliability import LEAST_ROWS
from temperance.display.base import Display
from temperance.display.chart import SMALL, Axis, Chart, Line, Mark
from temperance.display.labels import shorten
from temperance.display.methods import before_and_after
from temperance.display.reliability import FEWEST_IN_BIN, diagram_marks
from temperance.errors import InputError
from temperance.metrics import Reliability

_LONGEST_NAME = 32  # in a title, which then has two lines at most


@dataclass(frozen=True, eq=False)
class ClassReliabilityDisplay(Display):
    """The frequency of a class against its predicted probability: equal on the diagonal.

    A comparison keeps the diagrams of the ten classes with the most test rows, at least 30; of two classes,
    that of the second one. The figure leaves out bins of fewer than five rows.

    Attributes
    ----------
    column : int
        The class.
    name : str
        What it is called.
    diagrams : dict from name to Reliability
        The bins of each method, with Wilson intervals.

    Examples
    --------
    >>> from temperance import compare
    >>> from temperance.data import simulate
    >>> task = simulate(1000, 3, random_state=0)
    >>> comparison = compare(task.logits, task.labels, methods=["ts"], classes=["cat", "dog", "emu"])
    >>> display = ClassReliabilityDisplay.from_comparison(comparison, column=1)
    >>> display.name, list(display.diagrams), float(display.diagrams["ts"].count.sum())
    ('dog', ['none', 'ts'], 1000.0)
    """

    column: int
    name: str
    diagrams: dict[str, Reliability]

    @classmethod
    def from_comparison(
        cls, comparison: Comparison, methods: Sequence[str] | None = None, *, column: int | None = None
    ) -> Self:
        """Use the diagrams of a class, by default the first that the comparison keeps."""
        kept = [*comparison.results[UNCALIBRATED].class_reliability]
        if not kept:
            raise InputError(
                f"a class must have {LEAST_ROWS} test rows for its diagram; found none. Pass more test rows."
            )
        if column is None:
            column = kept[0]
        if column not in kept:
            columns = ", ".join(map(str, kept))
            raise InputError(f"column must be a class with many test rows: {columns}; found {column}.")
        diagrams = {
            name: comparison.results[name].class_reliability[column]
            for name in before_and_after(comparison, methods)
        }
        names = comparison.class_names
        return cls(column, str(column) if names is None else names[column], diagrams)

    def chart(self) -> Chart:
        """Return the diagrams of all methods on the same axes."""
        ends = np.array([0.0, 1.0])
        marks: list[Mark] = [Line(ends, ends)]
        for name, diagram in self.diagrams.items():
            marks += diagram_marks(name, diagram, fewest=FEWEST_IN_BIN)
        x, y = Axis("probability of the class", (0.0, 1.0)), Axis("share of the class", (0.0, 1.0))
        return Chart(
            f"Class {shorten(self.name, _LONGEST_NAME)}", self._in_words(), x, y, marks, (SMALL, SMALL)
        )

    def _in_words(self) -> str:
        found = [
            f"{method_style(name).label} {100 * diagram.error:.2f} %"
            for name, diagram in self.diagrams.items()
        ]
        whole = f"Class {self.name}. " if len(self.name) > _LONGEST_NAME else ""
        return f"{whole}Mean distance from the diagonal: {', '.join(found)}."
