"""The calibrators, one file each, and the table of methods.

The table is light, and so is this module: `temperance.serving` reads it without scikit-learn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from temperance.calibrators.registry import CALIBRATORS as CALIBRATORS
from temperance.calibrators.registry import UNCALIBRATED as UNCALIBRATED
from temperance.calibrators.registry import Method as Method
from temperance.calibrators.registry import make_calibrator as make_calibrator
from temperance.calibrators.registry import method_style as method_style
from temperance.loaders import load_object

if TYPE_CHECKING:
    from temperance.calibrators.estimator import Calibrator

__all__ = ["Calibrator"]


_PLACES: dict[str, str] = {
    place.partition(":")[2]: place
    for place in (
        "estimator:Calibrator",
        *(str(method.estimator) for method in CALIBRATORS.values()),
    )
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'temperance.calibrators' has no attribute {name!r}")
    return load_object(f"temperance.calibrators.{_PLACES[name]}")
