"""temperance: post-hoc calibration with adaptive temperatures.

    cal = temperance.EntropyTemperatureScaling().fit(val_logits, val_labels)
    probs = cal.predict_proba(logits)

Calibrators, `compare`, `load` and `metrics` are all here; frameworks are imported when they are used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from temperance._validation import InputError
from temperance.calibrators import (
    CALIBRATORS,
    BayesianTemperatureScaling,
    BinwiseTemperatureScaling,
    EnsembleTemperatureScaling,
    EntropyLinearTemperatureScaling,
    EntropyTemperatureScaling,
    LinearTemperatureScaling,
    ParametrizedTemperatureScaling,
    TemperatureScaling,
    make_calibrator,
)
from temperance.containers import logits_from_probs

if TYPE_CHECKING:
    from temperance import data, metrics
    from temperance.comparison import compare
    from temperance.persistence import load

__version__ = "0.1.0"

__all__ = [
    "CALIBRATORS",
    "BayesianTemperatureScaling",
    "BinwiseTemperatureScaling",
    "EnsembleTemperatureScaling",
    "EntropyLinearTemperatureScaling",
    "EntropyTemperatureScaling",
    "InputError",
    "LinearTemperatureScaling",
    "ParametrizedTemperatureScaling",
    "TemperatureScaling",
    "compare",
    "data",
    "load",
    "logits_from_probs",
    "make_calibrator",
    "metrics",
]

# What not every user needs is imported when first asked for, so that `import temperance` stays quick.
_LATER = {
    "compare": ("temperance.comparison", "compare"),
    "load": ("temperance.persistence", "load"),
    "data": ("temperance.data", None),
    "metrics": ("temperance.metrics", None),
}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'temperance' has no attribute {name!r}")
    module, attribute = _LATER[name]
    value = import_module(module)
    return value if attribute is None else getattr(value, attribute)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
