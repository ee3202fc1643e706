"""The calibrators, one file each, and their registry.

A new one is a file with a subclass of `TemperatureCalibrator` (or `Calibrator`) and a line here.
"""

from __future__ import annotations

from typing import Any

from temperance.calibrators.base import Calibrator, TemperatureCalibrator
from temperance.calibrators.bayesian import BayesianTemperatureScaling
from temperance.calibrators.binwise import BinwiseTemperatureScaling
from temperance.calibrators.ensemble import EnsembleTemperatureScaling
from temperance.calibrators.entropy import EntropyTemperatureScaling
from temperance.calibrators.entropy_linear import EntropyLinearTemperatureScaling
from temperance.calibrators.linear import LinearTemperatureScaling
from temperance.calibrators.parametrized import ParametrizedTemperatureScaling
from temperance.calibrators.temperature import TemperatureScaling
from temperance.validation import InputError

__all__ = [
    "CALIBRATORS",
    "BayesianTemperatureScaling",
    "BinwiseTemperatureScaling",
    "Calibrator",
    "EnsembleTemperatureScaling",
    "EntropyLinearTemperatureScaling",
    "EntropyTemperatureScaling",
    "LinearTemperatureScaling",
    "ParametrizedTemperatureScaling",
    "TemperatureCalibrator",
    "TemperatureScaling",
    "make_calibrator",
]

CALIBRATORS: dict[str, type[Calibrator]] = {
    "ts": TemperatureScaling,
    "lts": LinearTemperatureScaling,
    "hts": EntropyTemperatureScaling,
    "hnlts": EntropyLinearTemperatureScaling,
    "pts": ParametrizedTemperatureScaling,
    "pts-ece": ParametrizedTemperatureScaling,
    "bts": BinwiseTemperatureScaling,
    "ets": EnsembleTemperatureScaling,
    "bayes": BayesianTemperatureScaling,
}

# Options that a key implies.
_IMPLIED: dict[str, dict[str, Any]] = {"pts-ece": {"loss": "ece"}}


def make_calibrator(key: str, **options: Any) -> Calibrator:
    """Build the calibrator of a registry key.

    Examples
    --------
    >>> make_calibrator("bts", bins=20)
    BinwiseTemperatureScaling(bins=20)
    >>> make_calibrator("pts-ece")
    ParametrizedTemperatureScaling(loss='ece')
    """
    if key not in CALIBRATORS:
        raise InputError(f"the method must be one of {', '.join(CALIBRATORS)}; got {key!r}.")
    return CALIBRATORS[key](**{**_IMPLIED.get(key, {}), **options})
