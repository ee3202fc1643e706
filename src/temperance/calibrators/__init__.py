"""The calibrators, one file each, and their registry."""

from __future__ import annotations

from temperance.calibrators.base import Calibrator, TemperatureCalibrator
from temperance.calibrators.bayesian import BayesianTemperatureScaling
from temperance.calibrators.binwise import BinwiseTemperatureScaling
from temperance.calibrators.ensemble import EnsembleTemperatureScaling
from temperance.calibrators.entropy import EntropyTemperatureScaling
from temperance.calibrators.entropy_linear import EntropyLinearTemperatureScaling
from temperance.calibrators.linear import LinearTemperatureScaling
from temperance.calibrators.monotone import MonotoneScaling
from temperance.calibrators.parametrized import ParametrizedTemperatureScaling
from temperance.calibrators.registry import (
    CALIBRATORS,
    UNCALIBRATED,
    Method,
    MethodStyle,
    make_calibrator,
    method_style,
)
from temperance.calibrators.temperature import TemperatureScaling

__all__ = [
    "CALIBRATORS",
    "UNCALIBRATED",
    "BayesianTemperatureScaling",
    "BinwiseTemperatureScaling",
    "Calibrator",
    "EnsembleTemperatureScaling",
    "EntropyLinearTemperatureScaling",
    "EntropyTemperatureScaling",
    "LinearTemperatureScaling",
    "Method",
    "MethodStyle",
    "MonotoneScaling",
    "ParametrizedTemperatureScaling",
    "TemperatureCalibrator",
    "TemperatureScaling",
    "make_calibrator",
    "method_style",
]
