"""A fitted model as a calibrator file: one JSON object, versioned, exact to the bit, and data only.

Numbers are written with enough digits to read back the same float64.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from temperance.calibrator_file.fields import (
    ADAPTATION,
    BASELINE,
    FIT,
    FITTED_ON,
    FORMAT,
    NAMES,
    VERSION,
)
from temperance.errors import InputError, excerpt
from temperance.files import write_atomically
from temperance.formulas.model import Model
from temperance.json_fields import plain_json, write_fields


def save(
    model: Model, path: str | Path, *, metadata: Mapping[str, Any] | None = None, overwrite: bool = False
) -> None:
    """Write a fitted model to a file, with `metadata` in place of its own if some is given."""
    own = model.record.metadata if metadata is None else _checked_metadata(metadata)
    record = model.record
    content: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "method": model.key,
        "classes": model.n_classes,
        "options": model.options,
        "parameters": {name: value.tolist() for name, value in model.formula.arrays().items()},
        "standard_errors": {name: np.asarray(e).tolist() for name, e in model.standard_errors.items()},
        "fit": write_fields(model, FIT),
        **write_fields(model, NAMES),
    }
    if record.fitted_on is not None:
        content["fitted_on"] = write_fields(record.fitted_on, FITTED_ON)
    if model.log_prior_ratio is not None:
        content["adaptation"] = write_fields(model, ADAPTATION)
    if record.baseline is not None:
        content["baseline"] = write_fields(record.baseline, BASELINE)
    if own:
        content["metadata"] = own
    for place, unknown in record.unknown_fields.items():
        if place in content:
            content[place] |= unknown
    content |= record.unknown_fields.get("", {})
    text = json.dumps(content, indent=1, allow_nan=False, default=_plain) + "\n"
    write_atomically(path, text.encode(), overwrite=overwrite)


def _plain(option: Any) -> Any:
    if isinstance(option, np.generic):
        return option.item()
    raise InputError(f"options must be numbers or strings to be saved; found {excerpt(option)}.")


def _checked_metadata(metadata: Any) -> dict[str, Any]:
    if not isinstance(metadata, Mapping):
        raise InputError(f"metadata must be a mapping of names to values; found {type(metadata).__name__}.")
    try:
        checked: dict[str, Any] = plain_json(dict(metadata), "metadata")
    except InputError as error:
        raise InputError(f"{error}. Convert it, or leave it out.") from None
    return checked
