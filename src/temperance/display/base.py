"""What all displays share: numbers, a chart of them, a plot of the chart, and the methods to show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from temperance.calibrators import UNCALIBRATED, Calibrator, TemperatureCalibrator
from temperance.comparison import Comparison
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

    @property
    def caption(self) -> str:
        """A description of the figure."""
        return self.chart().caption

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw with matplotlib on `ax`; without one, on a new figure with the caption below."""
        return plot_chart(self.chart(), ax)


def chosen(methods: Sequence[str] | None, known: Iterable[str], default: Sequence[str]) -> list[str]:
    """Return the given methods, after checking that they are known, or the default."""
    choices = tuple(known)
    for name in methods or ():
        check_choice("methods", name, choices)
    return list(dict.fromkeys(methods or default))


def before_and_after(comparison: Comparison, methods: Sequence[str] | None) -> list[str]:
    """Return the given methods; by default the classifier itself and the method of the verdict."""
    tried = comparison.verdict.tried
    return chosen(methods, comparison.results, [UNCALIBRATED] if tried is None else [UNCALIBRATED, tried])


def fitted_calibrators(comparison: Comparison, methods: Sequence[str] | None) -> dict[str, Any]:
    """Return the calibrators of the given methods, by default of all; None for the classifier itself."""
    names = chosen(methods, comparison.results, list(comparison.results))
    return {name: comparison.results[name].calibrator for name in names}


def with_temperature(calibrators: Mapping[str, Calibrator | None]) -> dict[str, TemperatureCalibrator]:
    """Leave out methods without T(z): ETS, and the classifier itself."""
    return {name: cal for name, cal in calibrators.items() if isinstance(cal, TemperatureCalibrator)}


def weights_of(comparison: Comparison) -> NDArray[np.float64]:
    """Return the weights of the test rows, ones if they have none."""
    weights = comparison.judged.weights
    return np.ones(len(comparison.judged)) if weights is None else weights
