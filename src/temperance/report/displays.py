"""The displays of a report: all that it takes fits to know, computed before the page is rendered."""

from __future__ import annotations

from dataclasses import dataclass

from temperance.comparison import Comparison, LearningCurve
from temperance.display import (
    ClassTemperatureDisplay,
    ConfidenceDisplay,
    DifferencesDisplay,
    LearningCurveDisplay,
    ReliabilityDisplay,
    TemperatureDisplay,
)

__all__ = ["ReportDisplays"]


@dataclass(frozen=True, eq=False)
class ReportDisplays:
    """The pictures of the page; `labels` is None if there is no learning curve of two sizes or more."""

    differences: DifferencesDisplay
    reliability: ReliabilityDisplay
    temperature: TemperatureDisplay
    classes: ClassTemperatureDisplay
    confidence: ConfidenceDisplay
    labels: LearningCurveDisplay | None

    @classmethod
    def of(cls, comparison: Comparison, curve: LearningCurve | None) -> ReportDisplays:
        """Compute them; the best temperature of each bin and class is fitted here."""
        every = [*comparison.results]
        has_labels = curve is not None and len(curve.sizes) > 1
        return cls(
            DifferencesDisplay.from_comparison(comparison),
            ReliabilityDisplay.from_comparison(comparison, every),
            TemperatureDisplay.from_comparison(comparison),
            ClassTemperatureDisplay.from_comparison(comparison),
            ConfidenceDisplay.from_comparison(comparison, every),
            LearningCurveDisplay.from_curve(curve) if curve is not None and has_labels else None,
        )
