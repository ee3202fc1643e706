"""The figures: each class computes its numbers and a chart of them, and `plot` draws it with matplotlib.

======================== ==========================================================================
ReliabilityDisplay       accuracy against confidence, bin by bin
ClassReliabilityDisplay  the share of a class against its predicted probability, bin by bin
TemperatureDisplay       the temperature against the entropy of a row: the best one, and each method's
LearningCurveDisplay     the log loss (NLL) by the number of labels
DifferencesDisplay       the log loss (NLL) of all methods minus the lowest, row by row
GapsDisplay              confidence minus accuracy by group, such as the hospital
======================== ==========================================================================

A chart has limits, labels, a caption and marks; the HTML report draws the same chart
without matplotlib. `plot(ax)` draws on the given axes, or on a new figure, and returns the axes.
"""

from __future__ import annotations

from temperance.display.losses import DifferencesDisplay, LearningCurveDisplay
from temperance.display.reliability import ClassReliabilityDisplay, GapsDisplay, ReliabilityDisplay
from temperance.display.temperature import TemperatureDisplay

__all__ = [
    "ClassReliabilityDisplay",
    "DifferencesDisplay",
    "GapsDisplay",
    "LearningCurveDisplay",
    "ReliabilityDisplay",
    "TemperatureDisplay",
]
