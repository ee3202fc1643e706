"""The fields of a calibrator file: one record each, in the order in which they are written.

Fields and formulas are described in docs/file-format.md. A field says where its value is: in the `Model`, in
what the model holds (`record.date`), or in a part of the record that is an object of its own in the file.

Changing the format: a new optional field is an entry here and the attribute that holds it; it needs no new
version, since readers keep fields they do not know. For anything else add 1 to VERSION, keep files of the
old version in tests/calibrator_file/data, and teach `reading` both.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from temperance.core.arrays import Vector
from temperance.errors import InputError, excerpt
from temperance.formulas.fit_record import BASELINE_SHARES
from temperance.inputs.validation import check_temperatures
from temperance.json_fields import (
    Check,
    Field,
    check_flag,
    check_line,
    check_object,
    check_text,
    count,
    number,
    numbers,
)

FORMAT = "temperance calibrator"
VERSION = 2
KINDS = ("logits", "probabilities")
POINTS = len(BASELINE_SHARES)
MAX_MEAN = 1e300  # of what has no other limit, so that sums stay finite


def _check_quantiles(value: Any, where: str, n_classes: int) -> Vector:
    quantiles: Vector = numbers(3)(value, where, n_classes)
    check_temperatures(where, quantiles)
    if (np.diff(quantiles) < 0).any():
        raise InputError(f"{where} must not decrease; found {quantiles.tolist()}")
    return quantiles


def _check_hash(value: Any, where: str, n_classes: int) -> str:
    digest = check_line(value, where)
    if not re.fullmatch(r"[a-z0-9-]+:[0-9a-f]+", digest):
        raise InputError(f"{where} must have the form sha256:0a1b...; found {excerpt(digest)}")
    return digest


def _check_date(value: Any, where: str, n_classes: int) -> str:
    date = check_line(value, where)
    try:
        is_utc = datetime.fromisoformat(date).utcoffset() == timedelta(0)
    except ValueError:
        is_utc = False
    if not is_utc:
        example = datetime(2026, 1, 31, 12, tzinfo=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        raise InputError(f"{where} must be a time in UTC, such as {example}; found {excerpt(date)}")
    return date


def _check_names(value: Any, where: str, n_classes: int) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise InputError(f"{where} must be a list of text")
    if len(value) != n_classes:
        raise InputError(f"{where} must be one for each of {n_classes} classes; found {len(value)}")
    return tuple(value)


def _check_kind(value: Any, where: str, n_classes: int) -> str:
    if value not in KINDS:
        raise InputError(f"{where} must be one of {', '.join(KINDS)}; found {excerpt(value)}")
    return str(value)


def _or_null(check: Check) -> Check:
    return lambda value, where, n_classes: None if value is None else check(value, where, n_classes)


REQUIRED = ("format", "version", "method", "classes", "options", "parameters", "standard_errors", "fit")

FIT = (
    Field("rows", count(1), "n_rows"),
    Field("loss", number(), "solution.value"),
    Field("gradient_norm", number(), "solution.gradient_norm"),
    Field("iterations", count(0), "solution.iterations"),
    Field("passes", count(0), "solution.passes"),
    Field("converged", check_flag, "solution.converged"),
    Field("message", check_text, "solution.message"),
    Field("temperature_quantiles", _check_quantiles, optional=True),  # of methods that have a temperature
    Field("effective_parameters", number(0, MAX_MEAN), "n_parameters", optional=True),
    Field("class_counts", numbers("K", least=0), optional=True),
    Field("data_hash", _check_hash, "record.data_hash", optional=True),
    Field("date", _check_date, "record.date", optional=True),
    Field("library_version", check_line, "record.library_version", optional=True),
)
ADAPTATION = (
    Field("log_prior_ratio", numbers("K")),
    Field("rows", _or_null(count(1)), "adaptation_rows", optional=True),
    Field("frequency_errors", _or_null(numbers("K", least=0)), optional=True),
)
FITTED_ON = (
    Field("kind", _check_kind),
    Field("floor", number(0, 1), optional=True),
)
BASELINE = (
    Field("rows", count(1)),
    Field("effective_rows", number(0, MAX_MEAN)),
    Field("confidence_quantiles", numbers(POINTS, least=0)),
    Field("confidence_shares", numbers(POINTS, least=0)),
    Field("entropy_quantiles", numbers(POINTS, least=0)),
    Field("entropy_shares", numbers(POINTS, least=0)),
    Field("predicted_counts", numbers("K", least=0)),
    Field("mean_confidence", number(0, 1)),
    Field("mean_entropy", number(0, MAX_MEAN)),
    Field("accuracy", number(0, 1)),
    Field("mean_probabilities", numbers("K", least=0), optional=True),
)
NAMES = (Field("class_names", _check_names, "record.class_names", optional=True),)
NOTES = (Field("metadata", check_object, "record.metadata", optional=True),)

OBJECTS = {"fit": FIT, "fitted_on": FITTED_ON, "adaptation": ADAPTATION, "baseline": BASELINE}
"""The objects of a file that may have unknown fields, and the fields that are known."""
KNOWN = {*REQUIRED, *OBJECTS, *(field.name for field in (*NAMES, *NOTES))}
"""The known fields of the file itself."""
