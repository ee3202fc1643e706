"""One check as a line of a history: sums, digests and the evidence so far, as plain JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from temperance.errors import InputError
from temperance.monitoring.predictions import PredictionSums
from temperance.monitoring.residuals import LabelledSums

VERSION = 1
OPENING = f'{{"temperance_history": {VERSION},'
"""The beginning of every line, by which an incomplete one is recognised."""


@dataclass(frozen=True, eq=False)
class Record:
    """One check.

    Attributes
    ----------
    calibrator : str
        Digest of the calibrator.
    date : str
        Date of the check, ISO 8601 in UTC.
    name : str
        Name of the rows, such as their file name.
    rows_digest : str
        Digest of the logits.
    tolerance, alpha : float
        Settings of the evidence.
    predictions : PredictionSums
        Counts of what needs no labels.
    labelled : LabelledSums or None
        Sums of what needs labels.
    log_e, highest_log_e : float
        Logarithm of the e-value after this check, and the highest so far.
    shift_alarm : bool
        Whether the predictions differ from those at the fit.
    action : str
        What the check advised.
    """

    calibrator: str
    date: str
    name: str
    rows_digest: str
    tolerance: float
    alpha: float
    predictions: PredictionSums
    labelled: LabelledSums | None
    log_e: float
    highest_log_e: float
    shift_alarm: bool
    action: str


def write_record(record: Record) -> bytes:
    """Return a record as one line."""
    plain = {name: value for name, value in vars(record).items() if name not in ("predictions", "labelled")}
    plain["predictions"] = _plain(record.predictions)
    plain["labelled"] = None if record.labelled is None else _plain(record.labelled)
    text = json.dumps(plain, allow_nan=False)
    return f"{OPENING} {text[1:]}\n".encode()


def read_record(line: bytes) -> Record:
    """Return the record of a line; raise InputError if it is not one."""
    try:
        plain = json.loads(line)
        if plain.pop("temperance_history") != VERSION:
            raise ValueError("another version of the format")
        labelled = plain.pop("labelled")
        return Record(
            predictions=_sums(PredictionSums, plain.pop("predictions")),
            labelled=None if labelled is None else _sums(LabelledSums, labelled),
            **plain,
        )
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(f"must be a check written by this version; found {error}.") from None


def _plain(sums: PredictionSums | LabelledSums) -> dict[str, Any]:
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in vars(sums).items()
    }


def _sums(kind: Any, plain: dict[str, Any]) -> Any:
    """Return sums of the right shapes, all of them finite."""
    arrays = {
        item.name: np.asarray(plain[item.name], np.float64)
        if isinstance(plain[item.name], list)
        else plain[item.name]
        for item in fields(kind)
    }
    if set(arrays) != set(plain) or not all(np.isfinite(value).all() for value in arrays.values()):
        raise ValueError("other sums than a check has")
    return kind(**arrays)
