"""A fitted model as the text of a calibrator file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from temperance.calibrator_file.fields import (
    BASELINE_FIELDS,
    FORMAT,
    QUANTILES_OF_T,
    SOLVER_FIELDS,
    VERSION,
    plain_json,
)
from temperance.errors import InputError, excerpt
from temperance.formulas.fit_record import Baseline, FitRecord, FittedOn
from temperance.formulas.model import Model

Json = dict[str, Any]


def to_text(model: Model, metadata: Mapping[str, Any] | None) -> str:
    """Return the file of a model, with `metadata` in place of its own if some is given."""
    own = model.record.metadata if metadata is None else _checked_metadata(metadata)
    content: Json = {
        "format": FORMAT,
        "version": VERSION,
        "method": model.key,
        "classes": model.n_classes,
        "options": model.options,
        "parameters": {name: value.tolist() for name, value in model.formula.arrays().items()},
        "standard_errors": {name: np.asarray(e).tolist() for name, e in model.standard_errors.items()},
        "fit": _fit(model),
    }
    content |= _known(
        class_names=model.record.class_names,
        fitted_on=_fitted_on(model.record.fitted_on),
        adaptation=_adaptation(model),
        baseline=_baseline(model.record.baseline),
        metadata=own or None,
    )
    _add_unknown_fields(content, model.record)
    return json.dumps(content, indent=1, allow_nan=False, default=_plain) + "\n"


def _known(**values: Any) -> Json:
    return {name: value for name, value in values.items() if value is not None}


def _plain(option: Any) -> Any:
    if isinstance(option, np.generic):
        return option.item()
    raise InputError(f"options must be numbers or strings to be saved; found {excerpt(option)}.")


def _checked_metadata(metadata: Any) -> Json:
    if not isinstance(metadata, Mapping):
        raise InputError(f"metadata must be a mapping of names to values; found {type(metadata).__name__}.")
    try:
        checked: Json = plain_json(dict(metadata), "metadata")
    except InputError as error:
        raise InputError(f"{error}. Convert it, or leave it out.") from None
    return checked


def _fit(model: Model) -> Json:
    solution, record = model.solution, model.record
    fit: Json = {"rows": model.n_rows, "loss": solution.value}
    fit |= {name: getattr(solution, name) for name in SOLVER_FIELDS if name not in fit}
    quantiles = model.temperature_quantiles
    return fit | _known(
        **{QUANTILES_OF_T: None if quantiles is None else quantiles.tolist()},
        class_counts=None if model.class_counts is None else model.class_counts.tolist(),
        data_hash=record.data_hash,
        date=record.date,
        library_version=record.library_version,
    )


def _fitted_on(fitted_on: FittedOn | None) -> Json | None:
    return None if fitted_on is None else _known(kind=fitted_on.kind, floor=fitted_on.floor)


def _adaptation(model: Model) -> Json | None:
    if model.log_prior_ratio is None:
        return None
    errors = model.frequency_errors
    return {"log_prior_ratio": model.log_prior_ratio.tolist(), "rows": model.adaptation_rows} | _known(
        frequency_errors=None if errors is None else errors.tolist()
    )


def _baseline(baseline: Baseline | None) -> Json | None:
    if baseline is None:
        return None
    values = {name: getattr(baseline, name) for name in BASELINE_FIELDS}
    return _known(**{name: v.tolist() if isinstance(v, np.ndarray) else v for name, v in values.items()})


def _add_unknown_fields(content: Json, record: FitRecord) -> None:
    for name, unknown in record.unknown_fields.items():
        if name in content:
            content[name] |= unknown
    content |= record.unknown_fields.get("", {})
