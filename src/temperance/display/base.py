"""What all displays share: numbers, a chart of them, a plot of the chart, and the methods to show."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from temperance.display.axes import plot_chart
from temperance.display.chart import Chart
from temperance.inputs.validation import check_choice

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class Display:
    """A figure as plain numbers; numbers of methods are in dicts by method name."""

    def chart(self) -> Chart:
        """Return the chart to draw."""
        raise NotImplementedError

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw with matplotlib on `ax`; without one, on a new figure with the caption below."""
        return plot_chart(self.chart(), ax)


def chosen(methods: Sequence[str] | None, known: Iterable[str]) -> list[str]:
    """Return the given methods, after checking that they are known; by default all."""
    choices = tuple(known)
    for name in methods or ():
        check_choice("methods", name, choices)
    return list(dict.fromkeys(methods or choices))
