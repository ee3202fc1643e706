"""The names of the fields of a calibrator file, and the JSON that it may hold."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from temperance.errors import InputError
from temperance.formulas.fit_record import Baseline

FORMAT = "temperance calibrator"
VERSION = 2

REQUIRED = ("format", "version", "method", "classes", "options", "parameters", "standard_errors", "fit")
OPTIONAL = ("class_names", "fitted_on", "adaptation", "baseline", "metadata")

SOLVER_FIELDS: dict[str, type] = {
    "rows": int,
    "loss": float,
    "gradient_norm": float,
    "iterations": int,
    "passes": int,
    "converged": bool,
    "message": str,
}
"""Required fields of `fit`; methods with a temperature also have its quantiles."""
QUANTILES_OF_T = "temperature_quantiles"
RECORD_FIELDS = ("class_counts", "data_hash", "date", "library_version")
"""Optional fields of `fit`."""
ADAPTATION_FIELDS = ("log_prior_ratio", "rows", "frequency_errors")
BASELINE_FIELDS = tuple(item.name for item in fields(Baseline))
LATER_BASELINE_FIELD = "mean_probabilities"
"""The one field of `baseline` that may be absent."""

DEEPEST = 32  # levels of nested lists and objects
_LARGEST = int(sys.float_info.max)


def plain_json(value: Any, where: str, depth: int = 0) -> Any:
    """Return a copy that JSON can hold: finite numbers, text, true, false, null, lists and objects.

    NumPy numbers become Python numbers, tuples become lists. Anything else is an error, which names it by
    `where` and has no full stop.
    """
    if depth > DEEPEST:
        raise InputError(f"{where[:40]}... must not be nested deeper than {DEEPEST} levels")
    if isinstance(value, Mapping):
        return {
            _checked_name(name, where): plain_json(item, f"{where}.{name}" if where else name, depth + 1)
            for name, item in value.items()
        }
    if isinstance(value, list | tuple):
        return [plain_json(item, where, depth + 1) for item in value]
    if value is None or isinstance(value, str | bool):
        return value
    return _plain_number(value.item() if isinstance(value, np.generic) else value, where)


def _checked_name(name: Any, where: str) -> str:
    if not isinstance(name, str):
        raise InputError(f"names in {where} must be text; found {type(name).__name__}")
    return name


def _plain_number(value: Any, where: str) -> Any:
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        if abs(value) > _LARGEST:
            raise InputError(f"{where} must be finite; found a whole number beyond the range of float64")
        return int(value)
    if not isinstance(value, float):
        raise InputError(
            f"{where} must be a number, text, true, false, null, a list or an object, as in JSON; "
            f"found {type(value).__name__}"
        )
    if not math.isfinite(value):
        raise InputError(f"{where} must be finite; found {value}")
    return float(value)
