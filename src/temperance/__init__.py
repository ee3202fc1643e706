"""temperance: post-hoc calibration with adaptive temperatures.

    cal = temperance.EntropyTemperatureScaling().fit(val_logits, val_labels)
    probs = cal.predict_proba(logits)

Calibrators, `compare`, `automate`, `load`, `metrics`, `data`, `display`, `monitoring` and `serving` are all
here; frameworks are imported when they are used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from temperance import data, decisions, display, metrics, monitoring, serving
    from temperance.calibrator_file import load
    from temperance.calibrators.bayes import BayesianTemperatureScaling
    from temperance.calibrators.bts import BinwiseTemperatureScaling
    from temperance.calibrators.ets import EnsembleTemperatureScaling
    from temperance.calibrators.hnlts import (
        EntropyLinearTemperatureScaling,
        EntropyTemperatureScaling,
        LinearTemperatureScaling,
    )
    from temperance.calibrators.mono import MonotoneScaling
    from temperance.calibrators.pts import ParametrizedTemperatureScaling
    from temperance.calibrators.registry import CALIBRATORS, make_calibrator
    from temperance.calibrators.ts import TemperatureScaling
    from temperance.comparison import compare
    from temperance.decisions import automate, threshold_from_costs
    from temperance.errors import InputError
    from temperance.inputs.probabilities import logits_from_probs, probability_floor
    from temperance.sklearn import CalibratedClassifier

__version__ = "0.3.0"

__all__ = [
    "CALIBRATORS",
    "BayesianTemperatureScaling",
    "BinwiseTemperatureScaling",
    "CalibratedClassifier",
    "EnsembleTemperatureScaling",
    "EntropyLinearTemperatureScaling",
    "EntropyTemperatureScaling",
    "InputError",
    "LinearTemperatureScaling",
    "MonotoneScaling",
    "ParametrizedTemperatureScaling",
    "TemperatureScaling",
    "automate",
    "compare",
    "data",
    "decisions",
    "display",
    "load",
    "logits_from_probs",
    "make_calibrator",
    "metrics",
    "monitoring",
    "probability_floor",
    "serving",
    "threshold_from_costs",
]

# Names are imported on first use, so that `temperance --help` and shell completion need not wait for
# scikit-learn. A name that is not listed here is a calibrator: the class of a method in the table.
_PLACES = {
    "CalibratedClassifier": "sklearn",
    "InputError": "errors",
    "automate": "decisions",
    "compare": "comparison",
    "load": "calibrator_file",
    "logits_from_probs": "inputs.probabilities",
    "probability_floor": "inputs.probabilities",
    "threshold_from_costs": "decisions",
}
_MODULES = ("data", "decisions", "display", "metrics", "monitoring", "serving")


def __getattr__(name: str) -> Any:
    if name not in __all__ and not name.endswith("Scaling"):
        raise AttributeError(f"module 'temperance' has no attribute {name!r}")
    if name in _MODULES:
        return import_module(f"temperance.{name}")
    value = getattr(import_module(f"temperance.{_PLACES.get(name, 'calibrators')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
