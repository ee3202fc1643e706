"""The displays of a report: everything that needs fits, computed before the page is rendered."""

from __future__ import annotations

from dataclasses import dataclass

from temperance import display
from temperance.comparison import UNCALIBRATED, Comparison, LearningCurve
from temperance.display.map import has_map
from temperance.report.shown_methods import shown_at_first


@dataclass(frozen=True, eq=False)
class ReportDisplays:
    """The figures of the page. The methods in `focus` set the limits of axes: they are shown at first.

    `map` is None if no method has a map; `labels` is None if no learning curve has two sizes or more.
    """

    n_classes: int
    focus: frozenset[str]
    differences: display.DifferencesDisplay
    reliability: display.ReliabilityDisplay
    class_reliability: list[display.ClassReliabilityDisplay]
    temperature: display.TemperatureDisplay
    classes: display.ClassTemperatureDisplay
    map: display.MapDisplay | None
    confidence: display.ConfidenceDisplay
    labels: display.LearningCurveDisplay | None

    @classmethod
    def of(cls, comparison: Comparison, curve: LearningCurve | None) -> ReportDisplays:
        """Compute all displays, including fits of the best temperature of each bin and class."""
        every = [*comparison.results]
        with_map = any(has_map(result.calibrator) for result in comparison.results.values())
        own = comparison.results[UNCALIBRATED]
        methods = (
            [UNCALIBRATED] if comparison.verdict.tried is None else [UNCALIBRATED, comparison.verdict.tried]
        )
        return cls(
            own.scores.n_classes,
            frozenset({UNCALIBRATED, *shown_at_first(comparison)}),
            display.DifferencesDisplay.from_comparison(comparison),
            display.ReliabilityDisplay.from_comparison(comparison, every),
            [
                display.ClassReliabilityDisplay.from_comparison(comparison, methods, column=column)
                for column in own.class_reliability
            ],
            display.TemperatureDisplay.from_comparison(comparison),
            display.ClassTemperatureDisplay.from_comparison(comparison),
            display.MapDisplay.from_comparison(comparison) if with_map else None,
            display.ConfidenceDisplay.from_comparison(comparison, every),
            display.LearningCurveDisplay.from_curve(curve) if curve and len(curve.sizes) > 1 else None,
        )
