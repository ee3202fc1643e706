"""What all displays are: numbers, a chart of them, and a plot of the chart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from temperance.display.axes import plot_chart
from temperance.display.chart import Chart

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Display:
    """A figure as plain numbers."""

    def chart(self) -> Chart:
        """Return the chart to draw."""
        raise NotImplementedError

    @property
    def caption(self) -> str:
        """What the figure shows, in words."""
        return self.chart().caption

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw with matplotlib on `ax`; without one, on a new figure with the caption below."""
        return plot_chart(self.chart(), ax)
